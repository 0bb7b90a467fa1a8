"""Retrieval-augmented generation, the baseline over text: the best chunks of a corpus, and one call of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.llm.replies.quoted_answers import quoted_reply
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evidence import Exhibits, shown_passages
from kgqa.methods.grounding import ground
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import RagSettings
from kgqa.methods.text.searching import TextSearch, within_tokens
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
    corpus, settings = resources.corpus, resources.settings.of(RagSettings)
    assert isinstance(corpus, Corpus)
    empty = Answer(question, "no_answer", method="rag", notes=corpus.index.notes)
    search = TextSearch(resources, trace)
    (found,) = search.search([question.text], settings.chunks or MAX_CHUNKS, retriever=settings.retriever)
    pieces = found if settings.chunks else within_tokens(found, TOKENS)
    trace.record(PiecesKept(pieces=tuple(piece.iri for piece in pieces)))
    if not pieces:
        return replace(empty, reason="The corpus contains no text about this question.")
    prompt = resources.prompts.prompt(
        "rag/answer",
        "decide",
        quoted_reply(len(pieces)),
        question=question.text,
        passages=shown_passages(pieces, corpus),
        long=resources.settings.ask.answer_form == "long",
    )
    (read,) = resources.ask([prompt], trace)
    if read is None:
        return replace(empty, reason=UNREADABLE)
    return ground(Exhibits(corpus, pieces).check(read), empty, search.graph, trace, corpus=corpus)
