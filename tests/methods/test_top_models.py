"""Tournament on Path with a scripted language model, under each setting, budget and fault."""

from __future__ import annotations

import json
import re
from typing import ClassVar

import pytest

from kgqa.graph.opening import open_graph
from kgqa.methods.tournament.search import ENDS
from kgqa.model import Candidate, Entity
from kgqa.storage.cache import Cache
from kgqa.testing import faults
from kgqa.testing.model_oracle import Gold, ModelOracle

from .scripted import NS, asked_in, late_ends, loaded, prompt_kind, run_scripted

NAMES = {
    "m.zor": "Zorblax",
    "m.ann": "Ann Arkin",
    "m.bob": "Bob Bream",
    "m.carl": "Carl Crumb",
    "m.fre": "Freedonia",
    "m.sp1": "Springfield",
    "m.sp2": "Springfield",
    "m.ulm": "Ulmen",
    "m.quux": "Quuxville",
    "m.dora": "Dora Fenwick",
    "m.big": "Bigfilm",
    "m.lone": "Lonely Place",
    "m.jaw": "Jawdrop",
    "m.fran": "Frangia",
    "m.eve": "Eve Ember",
    "m.fay": "Fay Flint",
    "m.gus": "Gus Gill",
    "m.cath": "Ulmen Cathedral",
    **{f"m.actor{n:02}": f"Actor {n:02}" for n in range(25)},
}
FACTS = (
    "m.zor film.film.directed_by m.ann",
    "m.zor film.film.directed_by m.bob",
    "m.zor film.film.produced_by m.carl",
    "m.zor film.film.country m.fre",
    "m.ann people.person.place_of_birth m.sp1",
    "m.bob people.person.place_of_birth m.sp2",
    "m.carl people.person.place_of_birth m.ulm",
    "m.ann people.person.sibling m.bob",
    "m.ann people.person.spouse m.dora",
    "m.fre location.country.capital m.quux",
    *(f"m.big film.film.actor m.actor{n:02}" for n in range(25)),
    "m.jaw film.film.actor m.eve",
    "m.jaw film.film.actor m.fay",
    "m.jaw film.film.actor m.gus",
    "m.jaw film.film.writer m.gus",
    "m.fran location.country.people m.eve",
    "m.fran location.country.people m.fay",
    "m.fran location.country.president m.eve",
    "m.ulm location.location.contains m.cath",
    *(f"m.actor00 misc.thing.relation_{n:02} m.quux" for n in range(12)),
)
BORN = "Where was the director of Zorblax born?"
DIRECTED_BORN = "directed by -> place of birth"
BIRTHPLACES = ["m.sp1", "m.sp2"]
GOLD = Gold(
    (
        frozenset({f"[E1] -> {DIRECTED_BORN}"}),
        frozenset({f"Zorblax -> {DIRECTED_BORN}"}),
        frozenset({"[E1] -> film.film.directed_by -> people.person.place_of_birth"}),
        frozenset({"m.zor -> film.film.directed_by -> people.person.place_of_birth"}),
        frozenset({"Zorblax -> film.film.directed_by -> people.person.place_of_birth"}),
    ),
    frozenset({"Ann Arkin", "Bob Bream", "Springfield"}),
    ("Springfield",),
)
SYSTEM_1 = {"ask__method": "top-1", "ask__preset": "as-published", "explore__depth": 2}
SYSTEM_2 = {"ask__method": "top-2", "ask__preset": "as-published"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return loaded(tmp_path_factory.mktemp("films"), FACTS, NAMES)


@pytest.fixture(scope="module")
def films(folder, session_cache):
    with open_graph(folder, cache=Cache(session_cache)) as graph:
        yield graph


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("kgqa.llm.backends.exchange.FIRST_PAUSE", 0.01)


class Model:
    """An oracle that knows the gold path, with scripted replies by kind of prompt.

    A reply is a text, a list used in its order, or a function of the prompt; None gives the oracle's reply.
    """

    def __init__(self, gold=GOLD, **replies):
        self._oracle = ModelOracle({"": gold})
        self._replies = replies

    def __call__(self, messages):
        asked = asked_in(messages)
        reply = self._replies.get(prompt_kind(messages), self._replies.get("every"))
        if isinstance(reply, list):
            reply = reply.pop(0) if reply else None
        if callable(reply):
            reply = reply(asked)
        return self._oracle(messages) if reply is None else reply


def choosing(*wanted):
    """Select these entries of a numbered list by their text or its end; None if none is listed."""

    def reply(asked):
        listed = re.findall(r"^\[(\d+)\] (.*?)(?: = .*)?$", asked, re.MULTILINE)
        found = [int(number) for text in wanted for number, line in listed if line == text or line.endswith(f" {text}")]
        return json.dumps(found) if found else None

    return reply


@pytest.fixture
def run(films):
    """`run(reply, question=BORN, **settings) -> Run`."""

    def run(reply=None, question=BORN, *, graph=None, constrains="structured_outputs", **given):
        given = {"ask__on_exhausted": "none", **given}
        return run_scripted(reply or Model(), question, graph=graph or films, constrains=constrains, **given)

    return run


def path_ends(graph, answer):
    """Return the ids at the end of the answer's path, queried again."""
    path = answer.paths[0].path
    ends = graph.paths.ends([Candidate(path)])[0].values
    return {graph.schema.short_id(end.iri) if isinstance(end, Entity) else "" for end in ends}


class TestSystemOne:
    def test_only_selected_entities_are_expanded(self, run):
        done = run(Model(entities=choosing("Ann Arkin")), ask__method="top-1")
        second = done.prompts("pick")[1]
        assert "directed by -> spouse" in second and "country ->" not in second
        assert '"sibling" is it' not in second  # a relation of Bob
        assert done.prompts("answer")[0].count("] Springfield") == 1
        assert done.ids == ["m.sp1"] and done.answer.query_class == "restricted"
        assert "m.ann" in done.answer.sparql and "m.bob" not in done.answer.sparql

    def test_answers_by_number_or_name_are_grounded(self, run):
        for wanted, ids, query_class in (
            (["Ann Arkin", "Bob Bream"], ["m.ann", "m.bob"], "exact"),
            (["Ann Arkin"], ["m.ann"], "superset"),
        ):
            for reply in (numbers_of(wanted), json.dumps({"answers": [name.upper() for name in wanted]})):
                done = run(Model(answer=reply), **SYSTEM_1)
                assert (done.ids, done.answer.query_class, done.answer.grounding) == (ids, query_class, "graph")
                assert done.answer.sparql and done.answer.paths

    @pytest.mark.parametrize(
        ("replied", "names"),
        [
            (["Paris"], ["Paris"]),
            (["Springfield"], ["Springfield"]),  # a name of two entities
            ([1, "Paris"], ["Springfield", "Paris"]),
            (["1"], ["1"]),  # a quoted number is a text, not a position in the list
        ],
    )
    def test_answer_that_is_not_one_path_end_is_from_the_model(self, run, replied, names):
        done = run(Model(answer=json.dumps({"answers": replied})), ask__method="top-1")
        answer = done.answer
        assert answer.status == "answered" and [item.name for item in answer.answers] == names
        assert (answer.grounding, answer.query_class, answer.sparql, answer.paths) == ("model", "none", "", ())
        assert any("own knowledge" in note for note in answer.notes) and done.ids == [""] * len(names)


def numbers_of(names):
    def reply(asked):
        listed = re.findall(r"^\[(\d+)\] (.*)$", asked, re.MULTILINE)
        return json.dumps({"answers": [next(int(n) for n, line in listed if line == name) for name in names]})

    return reply


STUBBORN_REPLIES = (
    "The answer is [Ulmen].",
    "[YES]\n[A]\n[RELEVANT]",
    "ANSWER: Ulmen\nSELECT ?x WHERE { ?x ?y ?z }",
)


class TestSystemTwo:
    def test_topic_is_masked_in_every_prompt(self, run):
        question = BORN.replace("Zorblax", "the zorblax")
        done = run(question=question, ask__method="top-2", topics=["m.zor"], llm__compare="reasons")
        assert done.requests and not re.search("zorb", done.sent_text, re.IGNORECASE)
        assert [event["leaks"] for event in done.details("leaks")] == [0]
        assert all("[E1]" in prompt for prompt in done.prompts())

    def test_topic_is_masked_within_another_name(self, run):
        question, given = "What does Ulmen contain?", {"ask__method": "top-2", "explore__depth": 1}
        done = run(question=question, **given)
        assert "Ulmen" not in done.sent_text and "[E1] Cathedral" in done.sent_text
        assert done.details("leaks")[0]["leaks"] == 0
        assert (
            run(question=question, **given, explore__mask="none").details("leaks")[0]["leaks"] == 0
        )  # nothing to mask

    @pytest.mark.parametrize("stubborn", STUBBORN_REPLIES)
    def test_answers_are_always_ends_of_the_accepted_path(self, run, films, stubborn):
        for settings in (SYSTEM_2, {"ask__on_exhausted": "best"}):
            done = run(lambda messages: stubborn, constrains="none", **settings)
            if done.answer.status != "answered":
                assert done.answer.status == "no_answer" and not done.answer.answers and not done.answer.sparql
                continue
            assert set(done.ids) == path_ends(films, done.answer)
            assert (done.answer.grounding, done.answer.query_class) == ("graph", "exact")


def prefer(text):
    """Prefer this candidate of a pair."""

    def reply(asked):
        fields = dict(re.findall(r"^(Candidate [AB]): (.*)$", asked, re.MULTILINE))
        return next((f"[{name[-1]}]" for name, candidate in fields.items() if candidate == text), None)

    return reply


PRESIDENT = "Which actor of Jawdrop was president of Frangia?"
TWO_TOPIC_GOLD = Gold((frozenset({"[E1] -> actor", "[E2] -> president"}),), answers=("Eve Ember",))


def verdict(path, text):
    """Accept the path with these words."""

    def reply(asked):
        listed = re.findall(r"^Path (\d+): (.*)$", asked, re.MULTILINE)
        return next((json.dumps({"verdict": "complete", "path": int(n)}) for n, line in listed if path in line), text)

    return reply


class TestSeveralTopics:
    def test_joined_path_is_accepted(self, run):
        done = run(Model(TWO_TOPIC_GOLD), PRESIDENT)
        assert done.ids == ["m.eve"] and done.answer.query_class == "exact" and done.answer.grounding == "graph"
        assert {evidence.path.topic.iri for evidence in done.answer.paths} == {NS + "m.jaw", NS + "m.fran"}
        assert done.answer.usage.hops == 1 and " AND [E" in done.prompts("judge")[-1]
        assert "Jawdrop" not in done.sent_text and "Frangia" not in done.sent_text


class TestClauses:
    CLAUSES: ClassVar = {"[E1]": "Which actor played in [E1]?", "[E2]": "Who was president of [E2]?"}

    def test_each_topic_is_ranked_by_its_clause(self, run):
        done = run(
            Model(TWO_TOPIC_GOLD, clauses=json.dumps({"clauses": self.CLAUSES})), PRESIDENT, explore__clauses="on"
        )
        assert done.kinds[0] == "clauses" and done.details("clauses") == [{"clauses": self.CLAUSES}]
        first = [prompt for prompt in done.prompts("pick") if "(which" not in prompt]
        for mark, clause in self.CLAUSES.items():
            own = [prompt for prompt in first if f"Question: {clause}" in prompt]
            assert own and all(f"] {mark} " in prompt for prompt in own)
            assert all(f"] {other} ->" not in prompt for prompt in own for other in self.CLAUSES if other != mark)
        assert "Question: Which actor of [E1] was president of [E2]?" in done.prompts("judge")[0]
        assert done.ids == ["m.eve"] and done.stage("clauses").calls == 1


class TestStop:
    def test_unchanged_answers_end_the_search(self, run):
        reply = Model(pick=choosing("Zorblax -> country", "[E1] -> country"), judge=verdict("country", None))
        done = run(reply, explore__stop="converged", explore__depth=4)
        assert done.details("accepted") == [{"why": "the answers no longer change", "path": "film country"}]
        assert done.answer.usage.hops == 2 and done.ids == ["m.fre"] and done.kinds.count("judge") == 1

    def test_ends_that_cannot_be_read_are_noted(self, run, monkeypatch):
        late_ends(monkeypatch, ENDS)
        done = run(Model(judge=verdict("country", None)), explore__stop="converged", explore__depth=2)
        assert done.answer.usage.hops == 2 and done.answer.approximate
        assert any(note.startswith("A query failed during the search (film") for note in done.answer.notes)


class TestBudgets:
    def test_call_budget_returns_the_best_answer_so_far(self, run):
        done = run(ask__method="top-1", budget__calls=2)
        assert len(done.requests) == 2 and done.answer.status == "budget_exhausted"
        assert sorted(done.ids) == ["m.ann", "m.bob"] and done.answer.query_class == "exact"
        assert any("not finished" in note for note in done.answer.notes)


@pytest.mark.parametrize("method", ["top-1", "top-2"])
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (faults.rate_limited(100_000), "failed"),
        (faults.wrong_key(), "failed"),
        (faults.dropped(), "answered"),
        (faults.refusal(), "answered"),
        (faults.thinks("It depends."), "answered"),
    ],
    ids=["rate limited for days", "wrong key", "dropped", "refusal", "thinks"],
)
def test_one_faulty_reply(run, method, fault, status):
    model, calls = Model(), []

    def reply(messages):
        calls.append(messages)
        return fault if len(calls) == 3 else model(messages)

    done = run(reply, ask__method=method, llm__retries=2)
    assert len(done.requests) >= 3 and done.answer.status == status, done.answer.reason
    if status == "failed":
        assert "cannot be used" in done.answer.reason and not done.answer.answers
    else:
        assert sorted(done.ids) == BIRTHPLACES and not done.answer.defects


@pytest.mark.parametrize("method", ["top", "top-1", "top-2"])
@pytest.mark.parametrize("question", [BORN, PRESIDENT, "What is the relation of the actor in Bigfilm?"])
@pytest.mark.parametrize("tournament", ["chunked", "pairwise"])
def test_no_prompt_is_sent_twice(run, method, question, tournament):
    for replied in ('{"verdict": "wrong"}', "It depends."):
        model = Model(TWO_TOPIC_GOLD, judge=replied)
        done = run(model, question, ask__method=method, rank__tournament=tournament, explore__clauses="on")
        sent = [json.dumps(request.messages) for request in done.requests]
        assert len(set(sent)) == len(sent)


class TestSettings:
    @pytest.mark.parametrize("tournament", ["chunked", "single", "pairwise", "knockout", "pointwise"])
    def test_every_tournament(self, run, tournament):
        listed = {"chunked": {"pick"}, "single": {"pick"}, "pointwise": {"score"}}
        kinds = listed.get(tournament, {"compare", "relevant"})
        for given, last in (({}, "judge"), (SYSTEM_2, "accept")):
            done = run(**given, rank__tournament=tournament, explore__beam=3)
            assert sorted(done.ids) == BIRTHPLACES and set(done.kinds) == kinds | {last}
            assert done.answer.usage.comparisons > 0
