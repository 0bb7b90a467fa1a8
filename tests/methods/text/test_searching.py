"""Searches of one question: the graph may fail, but not the question."""

from __future__ import annotations

import pytest

from kgqa import open_resources
from kgqa.errors import StoreTimeout
from kgqa.methods.text.searching import TextSearch
from kgqa.settings.values import resolve
from kgqa.trace.trace import Budget, BudgetExhausted, Trace
from tests.small_corpus import write_corpus


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    folder = write_corpus(tmp_path_factory.mktemp("searching"))
    settings = resolve({"ask.method": "rag", "rank.embeddings": "off", "llm.model": "http://127.0.0.1:1#m"})
    with open_resources(folder, settings=settings) as opened:
        yield opened


def slow():
    raise StoreTimeout("The query took longer than 1 s.")


def test_failing_query_of_the_graph_is_an_event(resources):
    trace = Trace()
    search = TextSearch(resources, trace)
    (found,) = search.search(["Where was Mara Holt born?"], 3)
    assert search.tolerant(lambda: found) == found and not [e for e in trace.events() if e.kind == "gave_up"]
    assert search.tolerant(slow) == []
    assert [event.error for event in trace.events() if event.kind == "gave_up"] == ["The query took longer than 1 s."]
    with pytest.raises(BudgetExhausted):  # it is the time of the question that is over
        TextSearch(resources, Trace(Budget(seconds=1e-9))).tolerant(slow)
