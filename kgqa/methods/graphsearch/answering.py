"""GraphSearch (arXiv 2509.22009): sub-questions over two channels, a draft of the reasoning, its verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.llm.replies.quoted_answers import QuotedAnswer
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.graphsearch.history import StepAnswer
from kgqa.methods.graphsearch.ours import Search
from kgqa.methods.resources import Resources
from kgqa.methods.text.grounding import grounded
from kgqa.methods.text.pieces import quoted_answer
from kgqa.methods.text.searching import TextSearch
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.trace import BudgetExhausted, Trace

METHOD = "graphsearch"
NOT_VERIFIED = "The answer is not verified: no draft of the reasoning was accepted."
LAST_STEP = "This is the answer of the last sub-question that was answered."
DISPUTED = "The answers to a sub-question disagree: {}"
NOTHING = "The corpus contains no text about this question."


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by GraphSearch over a corpus; arguments and errors as in `top.answer`. Topics are ignored."""
    corpus = resources.corpus
    assert isinstance(corpus, Corpus)
    empty = Answer(question, "no_answer", method=METHOD, notes=corpus.index.notes)
    text_search = TextSearch(resources, trace)
    search = Search(question, resources, text_search, trace)
    try:
        search.run()
    except BudgetExhausted as error:
        with trace.grace():
            found = _best_answer(search, empty, text_search, corpus, trace)
        return replace(found, status="budget_exhausted", reason=error.reason, accepted=False)
    found = _best_answer(search, empty, text_search, corpus, trace)
    if found.answers and search.verified and not search.accepted:
        if resources.settings["ask.on_exhausted"] == "none":
            return replace(empty, reason=NOT_VERIFIED)
        return replace(found, accepted=False, notes=(*found.notes, NOT_VERIFIED))
    return found


def _best_answer(search: Search, empty: Answer, text_search: TextSearch, corpus: Corpus, trace: Trace) -> Answer:
    """Return the answer of the last draft, or else of the last answered sub-question, with its evidence."""
    draft, last = search.draft, search.history.last()
    disputed = [DISPUTED.format(step.query.text) for step in search.history.steps if step.disputed]
    empty = replace(empty, notes=(*empty.notes, *dict.fromkeys(disputed)))
    if draft is not None and (draft.read.answers or last is None):
        found = quoted_answer(empty, draft.read, draft.quotes)
        return grounded(found, _cited(draft.found.pieces, found), text_search.graph, corpus, trace)
    if last is None:
        retrieved = any(step.found.pieces for step in search.history.steps)
        return replace(empty, reason=UNREADABLE if retrieved else NOTHING)
    return _of_step(last, empty, text_search, corpus, trace)


def _of_step(step: StepAnswer, empty: Answer, text_search: TextSearch, corpus: Corpus, trace: Trace) -> Answer:
    noted = replace(empty, notes=(*empty.notes, LAST_STEP))
    found = quoted_answer(noted, QuotedAnswer(step.answers), step.quotes)
    return grounded(found, _cited(step.found.pieces, found), text_search.graph, corpus, trace)


def _cited(pieces: Sequence[Piece], found: Answer) -> list[Piece]:
    """Return the pieces that an answer cites."""
    cited = {each.piece for each in found.citations if each.verified}
    return [piece for piece in pieces if piece.iri in cited]
