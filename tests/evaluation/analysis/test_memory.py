"""Comparison of runs on a real and a fictional graph by a model that remembers the real answers."""

from __future__ import annotations

import pytest

from kgqa.answer_json import answer_object
from kgqa.cache import Cache
from kgqa.evaluation.analysis.memory import memory_of
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion, read_questions, spread
from kgqa.evaluation.fictional.fictionalise import fictionalise
from kgqa.evaluation.fictional.invented_world import QUESTIONS, world_folder
from kgqa.evaluation.metrics.scores import score_record
from kgqa.evaluation.runs.records import record_of
from kgqa.graph.opening import open_graph
from kgqa.methods.ask import ask, open_resources
from kgqa.model import Question
from kgqa.settings import resolve
from kgqa.testing.gold_table import gold_for
from kgqa.testing.memory_oracle import MemoryOracle
from kgqa.testing.server import ScriptedServer

QUESTION_COUNT = 12


@pytest.fixture(scope="module")
def graphs(session_cache, tmp_path_factory):
    """A graph, its fictional version, and the same questions with the answers of each."""
    cache = Cache(session_cache)
    world, fiction = world_folder(cache), tmp_path_factory.mktemp("made") / "fiction"
    with open_graph(world, cache=cache) as graph:
        fictionalise(graph, read_questions(world / QUESTIONS), fiction, cache=cache)
    kept = spread(read_questions(fiction / QUESTIONS), QUESTION_COUNT)
    before = {question.id: question for question in read_questions(world / QUESTIONS)}
    with open_graph(world, cache=cache) as real, open_graph(fiction, cache=cache) as unreal:
        yield {"true": (real, [before[question.id] for question in kept]), "fictional": (unreal, kept)}


def run(graphs, method, **given):
    """Return the records of a run on each graph by a model that remembers the true answers."""
    memory = {question.text: [answer.name for answer in question.answers] for question in graphs["true"][1]}
    found = {}
    for name, (graph, questions) in graphs.items():
        oracle = MemoryOracle(memory=memory)
        with ScriptedServer(oracle, constrains="structured_outputs") as server:
            options = {"ask.method": method, "rank.embeddings": "off", "llm.model": f"{server.url}#oracle", **given}
            resources = open_resources(graph, settings=resolve(options))
            try:
                found[name] = [answered_record(question, resources, oracle) for question in questions]
            finally:
                resources.models.close()  # the graph is used again
    return found


def answered_record(question, resources, oracle):
    oracle.table = {"": gold_for(question, resources)}
    answer = ask(Question(question.text, id=question.id), topics=question.topics, resources=resources)
    data = answer_object(answer)
    return record_of(question, data, scores=score_record(data, [question.answers]))


@pytest.mark.parametrize("method", ["io", "cot", "top-1", "tog"])
def test_model_only_methods_score_zero_on_the_fictional_graph(graphs, method):
    found = memory_of(**run(graphs, method))["em"]
    assert found.n == QUESTION_COUNT and found.true == 1.0 and found.fictional == 0.0
    assert found.difference == 1.0 and found.low > 0.9 and found.p < 0.05


def test_graph_based_method_keeps_its_score(graphs):
    runs = run(graphs, "top-2")
    found = memory_of(**runs)["em"]
    assert found.true >= 0.9 and found.fictional >= 0.9
    assert found.low <= 0 <= found.high or abs(found.difference) < 0.1
    for record in runs["fictional"]:
        assert record.answer["grounding"] in ("graph", "none")


def record(ident, em, text="?"):
    question = GoldQuestion(text, ident, "t", 0, answers=(GoldAnswer("m.1", "One"),))
    return record_of(question, {"status": "answered"}, scores={"em": em, "f1": em / 2} if em is not None else {})


def test_only_shared_questions_count():
    true = [record("a", 1.0), record("b", 1.0), record("only here", 0.0), record("unscored", None)]
    fictional = [record("b", 0.0), record("a", 1.0), record("unscored", None)]
    found = memory_of(true, fictional)
    assert list(found) == ["em", "f1"]
    assert (found["em"].true, found["em"].fictional, found["em"].difference, found["em"].n) == (1.0, 0.5, 0.5, 2)
    assert found["em"].low <= 0.5 <= found["em"].high
    assert memory_of(true, []) == {}
    # equal ids with different texts are different questions
    assert memory_of([record("0", 1.0, "Who?")], [record("0", 0.0, "Where?")]) == {}
