"""The gold table: solutions of a question in a graph, in the words of the prompts."""

from __future__ import annotations

import pytest

from kgqa import ask, open_resources
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.graph.opening import open_graph
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.gold_table import gold_for
from kgqa.testing.model_oracle import WORST, ModelOracle
from kgqa.testing.server import ScriptedServer

ANTHEM = "[E1] -> national anthem of: country -> capital"


def question(text, topics, *answers):
    return GoldQuestion(text, "", "", 0, topics=topics, answers=tuple(GoldAnswer(*answer) for answer in answers))


CAPITAL = question(
    "Which city is the capital of the country whose anthem is Kimigayo?",
    ("m.demo_kimigayo",),
    ("m.demo_tokyo", "Tokyo"),
)


@pytest.fixture(scope="module")
def demo(session_cache):
    with open_graph(cache=Cache(session_cache)) as graph:
        yield graph


@pytest.fixture
def gold(demo):
    def gold(which, **given):
        settings = {"rank.embeddings": "off", **{name.replace("__", "."): value for name, value in given.items()}}
        return gold_for(which, open_resources(demo, settings=resolve(variants=settings)))

    return gold


def test_solutions_are_paths_with_exactly_the_gold_answers(gold):
    found = gold(CAPITAL)
    assert frozenset({ANTHEM}) in found.solutions
    assert found.answers == ("Tokyo",) and {"Japan", "Tokyo"} <= found.nodes
    assert found.rank(ANTHEM) == 0 and found.rank(ANTHEM.removesuffix(" -> capital")) == 1
    assert found.rank("[E1] -> anthem composer") == WORST


def test_words_follow_the_settings(gold):
    found = gold(CAPITAL, ask__method="top-2", ask__preset="as-published", llm__model="http://127.0.0.1:1/v1#m")
    paths = {path for solution in found.solutions for path in solution}
    assert any(path.startswith("[E1] -> government.national_anthem.national_anthem_of") for path in paths)
    unmasked = gold(CAPITAL, ask__method="top-1")
    assert all(path.startswith("Kimigayo -> ") for solution in unmasked.solutions for path in solution)


def test_paths_beyond_the_depth_are_no_solution(gold):
    found = gold(CAPITAL, explore__depth=1)
    assert found.solutions == () and found.answers == ("Tokyo",)


def test_wrong_or_missing_topics_leave_the_answer_names(gold):
    for topics in ((), ("m.nowhere",), ("not an id",)):
        found = gold(question("Who?", topics, ("m.demo_tokyo", "Tokyo"), ("", "354")))
        assert found.solutions == () and found.answers == ("Tokyo", "354")


def test_join_of_several_topics_is_one_solution(gold):
    which = question(
        "Which part did Julie Andrews play in The Sound of Music?",
        ("m.demo_julie_andrews", "m.demo_the_sound_of_music"),
        ("m.demo_maria_von_trapp", "Maria von Trapp"),
    )
    meeting = frozenset({"[E1] -> film", "[E2] -> starring: character"})
    assert meeting in gold(which).solutions
    alone = gold(which, explore__combine="separate").solutions
    assert alone and all(len(solution) == 1 for solution in alone)


@pytest.mark.parametrize("method", ["top", "top-1", "top-2", "tog"])
def test_oracle_with_the_table_answers_by_every_method(demo, method):
    oracle = ModelOracle({})
    with ScriptedServer(oracle, constrains="structured_outputs") as server:
        settings = {"ask.method": method, "rank.embeddings": "off", "llm.model": f"{server.url}#oracle"}
        resources = open_resources(demo, settings=resolve(settings))
        oracle.table = {"": gold_for(CAPITAL, resources)}
        try:
            answer = ask(CAPITAL.text, topics=CAPITAL.topics, resources=resources)
        finally:
            resources.models.close()
    assert [item.id for item in answer.answers] == ["m.demo_tokyo"], answer.reason
    assert answer.grounding == "graph" and not answer.defects
