"""Tournament on Path with a scripted language model, under each setting, budget and fault."""

from __future__ import annotations

import json
import re
from typing import ClassVar

import pytest

from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity
from kgqa.storage.cache import Cache
from kgqa.testing import faults
from kgqa.testing.faults import Fault
from kgqa.testing.model_oracle import Gold, ModelOracle

from .scripted import NS, asked_in, loaded, prompt_kind, run_scripted

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
DIRECTED = "directed by"
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
    def test_order_of_requests(self, run):
        done = run(ask__method="top-1")
        assert done.kinds == ["pick", "entities", "pick", "answer"]
        assert sorted(done.ids) == BIRTHPLACES and done.answer.grounding == "graph"
        assert done.answer.query_class == "restricted" and not done.answer.defects
        assert [stage.stage for stage in done.answer.usage.stages] == ["tournament", "entity", "decide"]
        assert done.answer.usage.calls == 4

    def test_only_selected_entities_are_expanded(self, run):
        done = run(Model(entities=choosing("Ann Arkin")), ask__method="top-1")
        second = done.prompts("pick")[1]
        assert "directed by -> spouse" in second and "country ->" not in second
        assert '"sibling" is it' not in second  # a relation of Bob
        assert done.prompts("answer")[0].count("] Springfield") == 1
        assert done.ids == ["m.sp1"] and done.answer.query_class == "restricted"
        assert "m.ann" in done.answer.sparql and "m.bob" not in done.answer.sparql

    @pytest.mark.parametrize(
        ("wanted", "ids", "query_class"),
        [
            (["Ann Arkin", "Bob Bream"], ["m.ann", "m.bob"], "exact"),
            (["Ann Arkin"], ["m.ann"], "superset"),
        ],
    )
    def test_answers_by_number_or_name_are_grounded(self, run, wanted, ids, query_class):
        given = SYSTEM_1
        numbered = run(Model(answer=lambda asked: json.dumps({"answers": numbers_of(asked, wanted)})), **given)
        named = run(Model(answer=json.dumps({"answers": [name.upper() for name in wanted]})), **given)
        for done in (numbered, named):
            assert done.ids == ids and done.answer.query_class == query_class
            assert done.answer.grounding == "graph" and done.answer.sparql and done.answer.paths
            assert all(item.value.iri == NS + item.id for item in done.answer.answers)

    def test_unlisted_path_end_is_found_by_name(self, run):
        reply = Model(answer='{"answers": ["Actor 24"]}')
        done = run(reply, "Who acts in Bigfilm?", ask__method="top-1", explore__depth=1)
        assert "] Actor 19\n" in done.prompts("answer")[0] and "Actor 20" not in done.prompts("answer")[0]
        assert "and 5 more" in done.prompts("answer")[0]
        assert done.ids == ["m.actor24"] and done.answer.query_class == "superset"

    @pytest.mark.parametrize(
        ("replied", "names"),
        [
            (["Paris"], ["Paris"]),
            (["Springfield"], ["Springfield"]),  # a name of two entities
            (["Ulmen", "Paris"], ["Ulmen", "Paris"]),
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

    @pytest.mark.parametrize("reply", ["[999]", '{"answer": 999}', "Answer: 999", '{"answers": ["Paris", 999]}'])
    def test_unlisted_bare_number_is_asked_again(self, run, reply):
        done = run(Model(answer=reply), ask__method="top-1")
        assert done.kinds[-2:] == ["answer", "answer"] and "in quotes" in done.requests[-1].messages[-1]["content"]
        assert (done.answer.status, done.answer.answers) == ("no_answer", ())


def numbers_of(asked, names):
    listed = re.findall(r"^\[(\d+)\] (.*)$", asked, re.MULTILINE)
    return [next(int(number) for number, line in listed if line == name) for name in names]


STUBBORN_REPLIES = (
    "The answer is [Ulmen].",
    '{"answers": ["Ulmen"]}',
    '{"choice": "Quuxville", "answer": "Ulmen"}',
    "[YES] It is Quuxville.",
    "[A] Quuxville [YES]",
    "[B]\n[RELEVANT]\n{Yes}. {Ulmen}",
    "[YES]\n[A]\n[RELEVANT]",
    "ANSWER: Ulmen\nSELECT ?x WHERE { ?x ?y ?z }",
)


class TestSystemTwo:
    def test_gold_path_is_found_by_comparing_pairs(self, run):
        for given, last in (({"ask__method": "top-2"}, "judge"), (SYSTEM_2, "accept")):
            done = run(**given)
            assert sorted(done.ids) == BIRTHPLACES and done.answer.query_class == "exact"
            assert done.answer.grounding == "graph" and set(done.kinds) == {"compare", "relevant", last}

    @pytest.mark.parametrize("topic_name", ["Zorblax", "the zorblax", "ZORBLAX"])
    @pytest.mark.parametrize("compare", ["choice", "reasons"])
    def test_topic_is_masked_in_every_prompt(self, run, topic_name, compare):
        question = BORN.replace("Zorblax", topic_name)
        done = run(question=question, ask__method="top-2", topics=["m.zor"], llm__compare=compare)
        assert done.requests and not re.search("zorb", done.sent_text, re.IGNORECASE)
        assert [event["leaks"] for event in done.events("leaks")] == [0]
        assert all("[E1]" in prompt for prompt in done.prompts())

    def test_topic_is_masked_as_a_path_end(self, run, folder, session_cache):
        with open_graph(folder, cache=Cache(session_cache), walks="free") as free:
            question = "Who is a sibling of a sibling of Ann Arkin?"
            done = run(Model(accept="[NO]"), question, graph=free, **SYSTEM_2, llm__mask="placeholder")
        assert "Ann Arkin" not in done.sent_text and "Arkin" not in done.sent_text
        assert re.search(r"leads? to: .*\[E1\]", "\n".join(done.prompts()))
        assert done.events("leaks")[0]["leaks"] == 0

    def test_topic_is_masked_within_another_name(self, run):
        question, given = "What does Ulmen contain?", {"ask__method": "top-2", "explore__depth": 1}
        done = run(question=question, **given)
        assert "Ulmen" not in done.sent_text and "[E1] Cathedral" in done.sent_text
        assert done.events("leaks")[0]["leaks"] == 0
        assert run(question=question, **given, explore__mask="none").events("leaks")[0]["leaks"] == 0  # nothing to mask

    @pytest.mark.parametrize("stubborn", STUBBORN_REPLIES)
    def test_answers_are_always_ends_of_the_accepted_path(self, run, films, stubborn):
        for settings in (
            {"ask__method": "top-2"},
            SYSTEM_2,
            {"rank__tournament": "chunked", "ask__on_exhausted": "best"},
        ):
            done = run(lambda messages: stubborn, constrains="none", **settings)
            if done.answer.status != "answered":
                assert done.answer.status == "no_answer" and not done.answer.answers and not done.answer.sparql
                continue
            assert set(done.ids) == path_ends(films, done.answer)
            assert (done.answer.grounding, done.answer.query_class) == ("graph", "exact")

    def test_unreadable_replies_keep_the_prefilter_order(self, run):
        done = run(lambda messages: "It depends.", **SYSTEM_2, constrains="none")
        assert done.answer.status == "no_answer"
        for shortlist, kept in zip(done.events("shortlist"), done.events("kept"), strict=True):
            assert kept["keys"] == shortlist["paths"][:3]
        assert done.stage("tournament").unparsed and done.stage("decide").unparsed


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

    def test_path_that_ends_in_a_topic_is_marked(self, run):
        done = run(Model(TWO_TOPIC_GOLD, judge='{"verdict": "wrong"}'), PRESIDENT, rank__tournament="pairwise")
        assert any("leads to: only what the question names" in prompt for prompt in done.prompts())

    def test_separate_topics_are_not_joined(self, run):
        gold = Gold((frozenset({"m.fran -> location.country.president"}),))
        done = run(Model(gold), PRESIDENT, **SYSTEM_2)
        assert done.ids == ["m.eve"] and len(done.answer.paths) == 1
        assert " AND " not in done.sent_text


class TestClauses:
    CLAUSES: ClassVar = {"[E1]": "Which actor played in [E1]?", "[E2]": "Who was president of [E2]?"}

    def test_each_topic_is_ranked_by_its_clause(self, run):
        done = run(
            Model(TWO_TOPIC_GOLD, clauses=json.dumps({"clauses": self.CLAUSES})), PRESIDENT, explore__clauses="on"
        )
        assert done.kinds[0] == "clauses" and done.events("clauses") == [{"clauses": self.CLAUSES}]
        first = [prompt for prompt in done.prompts("pick") if "(which" not in prompt]
        for mark, clause in self.CLAUSES.items():
            own = [prompt for prompt in first if f"Question: {clause}" in prompt]
            assert own and all(f"] {mark} " in prompt for prompt in own)
            assert all(f"] {other} ->" not in prompt for prompt in own for other in self.CLAUSES if other != mark)
        assert "Question: Which actor of [E1] was president of [E2]?" in done.prompts("judge")[0]
        assert done.ids == ["m.eve"] and done.stage("clauses").calls == 1

    @pytest.mark.parametrize(
        "replied", ["I would not know.", '{"clauses": {"[E1]": "Which actor?"}}', '{"clauses": []}']
    )
    def test_unreadable_clauses_leave_the_whole_question(self, run, replied):
        done = run(Model(TWO_TOPIC_GOLD, clauses=replied), PRESIDENT, explore__clauses="on")
        assert done.kinds[:2] == ["clauses", "clauses"] and done.events("clauses") == [{"clauses": {}}]
        assert all("Which actor of [E1] was president of [E2]?" in prompt for prompt in done.prompts())
        assert done.ids == ["m.eve"]


class TestStop:
    def test_unchanged_answers_end_the_search(self, run):
        reply = Model(pick=choosing("Zorblax -> country", "[E1] -> country"), judge=verdict("country", None))
        done = run(reply, explore__stop="converged", explore__depth=4)
        assert done.events("accepted") == [{"why": "the answers no longer change", "path": "film country"}]
        assert done.answer.usage.hops == 2 and done.ids == ["m.fre"] and done.kinds.count("judge") == 1

    def test_accepted_path_needs_no_composed_answer(self, run):
        reply = Model(judge=verdict("directed by", None), answer='{"answers": ["Ann Arkin"]}')
        done = run(reply, ask__method="top-1", explore__stop="accepted", explore__depth=4)
        assert (
            done.answer.usage.hops == 1 and done.kinds == ["pick", "judge"] and sorted(done.ids) == ["m.ann", "m.bob"]
        )


class TestBudgets:
    def test_call_budget_returns_the_best_answer_so_far(self, run):
        done = run(ask__method="top-1", budget__calls=2)
        assert len(done.requests) == 2 and done.answer.status == "budget_exhausted"
        assert done.ids and done.answer.grounding == "graph" and done.answer.query_class == "exact"
        assert "more than 2 model calls" in done.answer.reason
        assert any("not finished" in note for note in done.answer.notes)
        assert sorted(done.ids) == ["m.ann", "m.bob"] and done.events("leaks")

    @pytest.mark.parametrize(("method", "calls"), [("top", 0), ("top-1", 0), ("top-2", 0), ("top-2", 1)])
    def test_budget_spent_in_the_first_hop_gives_no_answer(self, run, method, calls):
        done = run(ask__method=method, budget__calls=calls)
        assert len(done.requests) == calls and done.answer.status == "budget_exhausted"
        assert not done.answer.answers and not done.answer.sparql and done.answer.grounding == "none"

    def test_time_budget_spent_after_the_first_hop(self, run):
        def reply(asked):
            return faults.hangs(60) if DIRECTED_BORN in asked else None

        done = run(Model(pick=reply), budget__seconds=2.0)
        assert done.answer.status == "budget_exhausted" and sorted(done.ids) == ["m.ann", "m.bob"]
        assert "not answered in time" in done.answer.reason or "seconds" in done.answer.reason


SINGLE_FAULTS = {
    "rate limited for days": (faults.rate_limited(100_000), "failed"),
    "hangs": (faults.hangs(20), "answered"),
    "dropped": (faults.dropped(), "answered"),
    "wrong key": (faults.wrong_key(), "failed"),
    "too long": (faults.too_long(), "answered"),
    "refusal": (faults.refusal(), "answered"),
    "thinks": (faults.thinks("It depends."), "answered"),
}


class FailingModel:
    """A model with one faulty reply; records prompts repeated after they were answered."""

    def __init__(self, model, fault, at=3):
        self._model, self._fault, self._at = model, fault, at
        self._count = 0
        self.answered = set()
        self.repeated = []

    def __call__(self, messages):
        self._count += 1
        asked = json.dumps(messages)
        if asked in self.answered:
            self.repeated.append(asked)
        reply = self._fault if self._count == self._at else self._model(messages)
        if not isinstance(reply, Fault):
            self.answered.add(asked)
        return reply


class TestFaults:
    @pytest.mark.parametrize(
        ("method", "name"),
        [
            *((method, name) for method in ("top-1", "top-2") for name in SINGLE_FAULTS),
            ("top", "refusal"),
        ],
    )
    def test_single_fault(self, run, method, name):
        fault, status = SINGLE_FAULTS[name]
        model = FailingModel(Model(), fault)
        done = run(model, ask__method=method, llm__timeout=0.6 if name == "hangs" else 10.0, llm__retries=2)
        assert len(done.requests) >= 3 and not model.repeated
        refused = name == "too long"
        assert done.answer.status == status, done.answer.reason
        if status == "failed":
            assert done.answer.reason and not done.answer.answers
            error = "KeyRefused" if name == "wrong key" else "ModelUnavailable"
            assert "cannot be used" in done.answer.reason and done.events("failed")[0]["error"] == error
        else:
            assert refused or sorted(done.ids) == BIRTHPLACES  # a refused prompt is not repeated, a fallback decides
            assert not done.answer.defects


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
    def test_three_votes_show_both_orders(self, run):
        done = run(ask__method="top-2", rank__votes=3)
        assert sorted(done.ids) == BIRTHPLACES
        pairs = [tuple(re.findall(r"Candidate [AB]: (.*)", prompt)) for prompt in done.prompts("compare")]
        assert pairs and all((b, a) in pairs for a, b in pairs)

    @pytest.mark.parametrize(
        ("tournament", "kinds"),
        [
            ("chunked", {"pick"}),
            ("single", {"pick"}),
            ("pairwise", {"compare", "relevant"}),
            ("knockout", {"compare", "relevant"}),
            ("pointwise", {"score"}),
        ],
    )
    def test_every_tournament(self, run, tournament, kinds):
        for given, last in (({}, "judge"), (SYSTEM_2, "accept")):
            done = run(**given, rank__tournament=tournament, explore__beam=3)
            assert sorted(done.ids) == BIRTHPLACES and set(done.kinds) == kinds | {last}
            assert done.answer.usage.comparisons > 0

    def test_model_mask_overrides_the_explore_mask(self, run):
        done = run(explore__mask="drop", llm__mask="id")
        assert "Question: Where was the director of m.zor born?" in done.prompts()[0]
        assert "m.zor -> directed by" in done.prompts()[0] and "Zorblax" not in done.sent_text

    @pytest.mark.parametrize("chooser", ["offline", "random"])
    def test_other_choosers_send_no_request(self, run, chooser):
        done = run(rank__chooser=chooser)
        assert not done.requests and done.answer.usage.calls == 0

    def test_system_two_as_published(self, run):
        done = run(**SYSTEM_2)
        assert sorted(done.ids) == BIRTHPLACES
        assert all("Question: Where was the director of m.zor born?" in prompt for prompt in done.prompts())
        assert "Candidate A: -> film.film." in done.prompts("compare")[0]
        assert any("<- people.person.sibling" in prompt for prompt in done.prompts())
        assert "Zorblax" not in done.sent_text
        assert all("reasons" in request.messages[0]["content"] for request in done.requests)
        done = run(lambda messages: "It depends.", **SYSTEM_2)
        assert all(len(request.messages) == 2 for request in done.requests) and done.answer.status == "no_answer"
        assert all(stage.reasked == 0 for stage in done.answer.usage.stages)

    def test_system_one_as_published(self, run):
        done = run(**SYSTEM_1)
        assert BORN in done.prompts()[0] and "Zorblax -> film.film.directed_by" in done.prompts("pick")[0]
        assert done.kinds == ["pick", "entities", "pick", "answer"] and sorted(done.ids) == BIRTHPLACES
        done = run(Model(answer="Well."), **SYSTEM_1)
        assert done.kinds.count("answer") == 1 and done.answer.status == "no_answer"
