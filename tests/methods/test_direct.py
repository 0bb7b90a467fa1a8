"""The methods that ask a language model without a graph: io and cot."""

from __future__ import annotations

import pytest

from kgqa import open_resources
from kgqa.errors import SettingsError
from kgqa.methods.direct import answer_io
from kgqa.settings.values import resolve

from .scripted import run_scripted


@pytest.fixture(scope="module")
def graph(session_cache):
    from kgqa.graph.opening import open_graph
    from kgqa.storage.cache import Cache

    with open_graph(cache=Cache(session_cache)) as demo:
        yield demo


@pytest.fixture
def run(graph):
    """`run(*replies, question=..., **settings) -> (answer, requests)`."""

    def run(*replies, question="Who composed the unknown hymn of Nowhere?", method="io", topics=(), **given):
        done = run_scripted(list(replies), question, graph=graph, topics=topics, ask__method=method, **given)
        return done.answer, done.requests

    return run


@pytest.mark.parametrize("method", ["io", "cot"])
def test_answer_from_the_model_needs_no_topic(run, method):
    answer, requests = run('I think so.\n{"answers": ["Ada", "Bea", "Ada"]}', method=method)
    assert answer.status == "answered" and [item.name for item in answer.answers] == ["Ada", "Bea"]
    assert (answer.grounding, answer.query_class, answer.sparql, answer.paths) == ("model", "none", "", ())
    assert answer.method == method and answer.topics == () and all(item.id == "" for item in answer.answers)
    assert answer.usage.queries == 0 and answer.usage.calls == 1 == len(requests)
    assert any("own knowledge" in note and "name" in note for note in answer.notes)


@pytest.mark.parametrize("reply", ["[1]", "Answer: 1", '{"answers": ["two", 3]}'])
def test_bare_number_is_asked_again(run, reply):
    """A bare number could be a position in a list the model imagines."""
    answer, requests = run(reply, '{"answers": ["3"]}', question="How many moons has Mars?")
    assert str(answer) == "3" and len(requests) == 2 and "in quotes" in requests[1].messages[-1]["content"]
    answer, _ = run(reply, reply, question="How many moons has Mars?")
    assert (answer.status, answer.answers) == ("no_answer", ()) and "could not be read" in answer.reason
    answer, requests = run('Answer: "3"', question="How many moons has Mars?")
    assert str(answer) == "3" and len(requests) == 1


def test_misspelt_arguments_are_no_arguments():
    with pytest.raises(TypeError, match="topic"):
        answer_io(None, resources=None, trace=None, topic=())


@pytest.mark.parametrize("method", ["io", "cot", "tog"])
def test_missing_model_is_a_settings_error(graph, method):
    with pytest.raises(SettingsError, match="llm="):
        open_resources(graph, settings=resolve({"ask.method": method}))
