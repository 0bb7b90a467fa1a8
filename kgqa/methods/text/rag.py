"""Retrieval-augmented generation, the baseline over text: the best chunks of a corpus, and one call of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.llm.replies.quoted_answers import quoted_reply
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evidence import Exhibits, shown_passages
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import NOTHING_FOUND, Rounds, RoundsOutcome, answer_in_rounds
from kgqa.methods.text.declarations import RagSettings
from kgqa.methods.text.searching import within_tokens
from kgqa.model import Answer, Named, Question, Value
from kgqa.trace import PiecesKept
from kgqa.trace.trace import Trace

TOKENS = 4000
"""About how many tokens the passages of a prompt have, if `rag.chunks` is not set."""
MAX_CHUNKS = 100


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer from the chunks that are found for the question; arguments and errors as in `top.answer`.

    Topics are ignored. Every quote is compared with the text that it is said to come from.
    """
    return answer_in_rounds("rag", Rounds(resources, trace, question), run)


def run(state: Rounds) -> RoundsOutcome:
    """Retrieve once, and ask once."""
    settings = state.resources.settings
    own = settings.of(RagSettings)
    (found,) = state.search([state.question], own.chunks or MAX_CHUNKS, retriever=own.retriever)
    shown = Exhibits(state.corpus, found if own.chunks else within_tokens(found, TOKENS))
    state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in shown)))
    if not shown:
        return RoundsOutcome(reason=NOTHING_FOUND)
    passages, long = shown_passages(shown, state.corpus), settings.ask.answer_form == "long"
    read = state.reply("rag/answer", "decide", quoted_reply(len(shown)), passages=passages, long=long)
    return RoundsOutcome(reason=UNREADABLE) if read is None else RoundsOutcome(shown.check(read))
