"""GraphSearch (arXiv 2509.22009): sub-questions over two channels, a draft of the reasoning, its verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.errors import StoreError
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.graphsearch.ours import Search
from kgqa.methods.graphsearch.published import PublishedSearch
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.grounding import grounded
from kgqa.methods.text.pieces import quoted_answer
from kgqa.methods.text.searching import TextSearch, within_budget
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.trace import GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

METHOD = "graphsearch"
NOT_VERIFIED = "The answer is not verified: no draft of the reasoning was accepted."
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
    corpus, settings = resources.corpus, resources.settings
    assert isinstance(corpus, Corpus)
    empty = Answer(question, "no_answer", method=METHOD, notes=corpus.index.notes)
    text_search = TextSearch(resources, trace)
    reading = PublishedSearch if settings.of(GraphSearchSettings).reading == "published" else Search
    search = reading(question, resources, text_search, trace)
    try:
        with within_budget(trace):
            search.run()
    except BudgetExhausted as error:
        with trace.grace():
            found = _best_answer(search, empty, text_search, trace)
        return replace(found, status="budget_exhausted", reason=error.reason, accepted=False)
    found = _best_answer(search, empty, text_search, trace)
    if not found.answers or search.accepted or not search.judged:
        return found
    if settings.ask.on_exhausted == "none":
        return replace(empty, reason=NOT_VERIFIED)
    return replace(found, accepted=False, notes=(*found.notes, NOT_VERIFIED))


def _best_answer(search: Search | PublishedSearch, empty: Answer, text_search: TextSearch, trace: Trace) -> Answer:
    """Return the best answer so far with its evidence and queries."""
    result = search.result()
    if result is None:
        return replace(empty, reason=UNREADABLE if search.retrieved else NOTHING)
    noted = replace(empty, notes=(*empty.notes, *result.notes))
    found = quoted_answer(noted, result.read, result.quotes)
    used = [*result.used, *_facts_used(search, text_search, trace)] if found.answers else []
    return grounded(found, used, text_search.graph, text_search.corpus, trace)


def _facts_used(search: Search | PublishedSearch, text_search: TextSearch, trace: Trace) -> Sequence[Piece]:
    try:
        return search.facts_used(text_search.graph)
    except (StoreError, BudgetExhausted) as error:
        trace.record(GaveUp(error=str(error)))
        return ()
