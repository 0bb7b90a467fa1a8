"""The oracle that answers prompts: correctness, error rate and determinism."""

from __future__ import annotations

import math

import pytest

from kgqa.llm.client import Message, Prompt
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.choices import read_choice
from kgqa.llm.replies.indices import read_indices
from kgqa.llm.replies.scores import read_scores
from kgqa.settings.values import resolve
from kgqa.testing.model_oracle import WORST, Gold, ModelOracle
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import Trace

PROMPTS = Prompts()
FOUNDED = "Who founded the club that [E1] plays for?"
INSTRUMENT = "Which instrument does the child of [E1] play?"
TABLE = {
    FOUNDED: Gold(
        (frozenset({"[E1] -> athlete team -> organization founders"}),), frozenset({"FC North", "Mara Holt"})
    ),
    "Who founded the club that Ann Li plays for?": Gold(
        (frozenset({"Ann Li -> athlete team -> organization founders"}),), answers=("Mara Holt", "Jonas Pell")
    ),
    INSTRUMENT: Gold((frozenset({"[E1] -> person children -> musician instruments"}),)),
    "Which instrument does the child of Ann Li play?": Gold(
        (frozenset({"Ann Li -> person children -> musician instruments"}),), frozenset({"Bo Li", "Cello"}), ("Cello",)
    ),
    "Who plays Cara in [E1]?": Gold((frozenset({"[E1] -> starring: actor"}),)),
    "Which clubs did the brothers of Ann Li play for?": Gold(
        (frozenset({"Ann Li -> person siblings -> athlete team"}),), frozenset({"Bo Li", "FC South"}), ("FC South",)
    ),
    "Which city is the capital of Japan?": Gold(answers=("Tokyo",)),
    "Which city is the capital of the country where sushi comes from?": Gold(answers=("Tokyo",)),
}
CORRECT_REPLIES = {
    "direct/cot": '{"answers": ["Tokyo"]}',
    "direct/io": '{"answers": ["Tokyo"]}',
    "tog/answer": "{Yes}. It is {Cello}.",
    "tog/entities": "Score: 1.0, 0.0",
    "tog/relations": "1. {person children (Score: 1.0)}: it is.",
    "tog/sufficient": "{Yes}. It is {Cello}.",
    "tog/robust_answer": "{Yes}. It is {Cello}.",
    "tog/robust_entities": "Score: 1.0, 0.0",
    "tog/robust_relations": "1. {person children (Score: 1.0)}: it is.",
    "tog/robust_sufficient": "{Yes}. It is {Cello}.",
    "top/accept": "[YES]",
    "top/answer": '{"answers": [1, 2]}',
    "top/clauses": '{"clauses": {"[E1]": "Which actor born in [E1] played in [E2]?", '
    '"[E2]": "Which actor born in [E1] played in [E2]?"}}',
    "top/compare": "[A]",
    "top/judge": '{"path": 1, "verdict": "complete"}',
    "top/pick": "[1",
    "top/entities": "[1, ",
    "top/relevant": "[RELEVANT]",
    "top/score": '{"scores": [1.0, 0.01]}',
}


def messages(name: str, **values) -> list[dict[str, str]]:
    """Render the example of a prompt with other values."""
    rendered = PROMPTS.render(name, **PROMPTS.get(name).example | values)
    return [{"role": message.role, "content": message.content} for message in rendered]


# this oracle plays the methods that rank paths; other methods have agents of their own
GRAPH_PROMPTS = {name for name in PROMPTS.names() if name.startswith(("top/", "tog/", "direct/"))} - {"top/reask"}


@pytest.mark.parametrize("name", sorted(GRAPH_PROMPTS))
def test_every_prompt_gets_the_correct_reply(name):
    assert set(CORRECT_REPLIES) == GRAPH_PROMPTS, "every prompt has a right reply here"
    assert ModelOracle(TABLE, p=1.0)(messages(name)).startswith(CORRECT_REPLIES[name])


def test_replies_are_read_back():
    oracle = ModelOracle(TABLE)
    assert read_choice(oracle(messages("top/compare")), options=("A", "B")).value == "A"
    assert read_choice(oracle(messages("top/relevant")), options=("RELEVANT", "NOT RELEVANT")).value == "RELEVANT"
    assert read_choice(oracle(messages("top/accept")), options=("YES", "NO")).value == "YES"
    assert read_indices(oracle(messages("top/pick")), size=3, k=2).value[0] == 0
    assert read_indices(oracle(messages("top/entities")), size=3, k=3).value[0] == 0
    assert read_scores(oracle(messages("top/score")), size=2).value == (1.0, 0.01)
    assert read_answers(oracle(messages("direct/io"))).value == ("Tokyo",)
    assert read_answers(oracle(messages("top/answer"))).value == ("1", "2")


@pytest.mark.parametrize(
    ("name", "values", "reply"),
    [
        ("top/compare", {"a": "-> team colours", "b": "-> organization founders"}, "[B]"),
        ("top/compare", {"known": "(nothing)", "a": "[E2] -> x", "b": "[E1] -> athlete team"}, "[B]"),
        ("top/relevant", {"candidate": "-> team colours"}, "[NOT RELEVANT]"),
        ("top/relevant", {"known": "[E1] -> athlete team -> organization founders", "candidate": "-> x"}, "[NOT RELEVANT]"),
        ("top/accept", {"path": "[E1] -> athlete team"}, "[NO]"),
        ("top/accept", {"path": "[E1] -> person gender"}, "[NO]"),
        ("top/score", {"candidates": ["[E1] -> x", "[E1] -> athlete team"]}, '{"scores": [0.01, 0.5]}'),
        ("tog/sufficient", {"triples": ["Ann Li; person children; Bo Li"]}, "{No}"),
        ("tog/entities", {"entities": ["Cara Li", "Bo Li"]}, "Score: 0.0, 1.0"),
        ("tog/relations", {"relations": ["person gender", "musician instruments (backwards)"]},
         "1. {musician instruments (backwards) (Score: 1.0)}: it is."),
        ("direct/io", {"question": "unheard of"}, '{"answers": []}'),
        ("top/answer", {"paths": []}, '{"answers": ["Mara Holt", "Jonas Pell"]}'),
    ],
)  # fmt: skip
def test_wrong_candidates_are_rejected(name, values, reply):
    assert ModelOracle(TABLE)(messages(name, **values)).startswith(reply)


def test_picks_are_ordered_by_distance_and_limited():
    pool = ["[E1] -> x", "[E1]", "[E1] -> person children", "[E1] -> person children -> musician instruments"]
    oracle = ModelOracle(TABLE)
    assert oracle(messages("top/pick", candidates=pool, k=4)) == "[4, 3, 2]"
    assert oracle(messages("top/pick", candidates=pool, k=4, abstain=False)) == "[4, 3, 2, 1]"
    assert oracle(messages("top/pick", candidates=pool[:1], k=4)) == "[]"
    assert oracle(messages("top/pick", candidates=pool, k=1)) == "[4]"
    question = "Which bands have at most 3 members, says [E1]?"
    table = {question: TABLE[INSTRUMENT], "another": Gold()}
    assert ModelOracle(table)(messages("top/pick", question=question, candidates=pool, k=2)) == "[4, 3]"


def test_names_that_look_like_labels():
    triples = ["Relevant Records; label artist; Bo Li", "Scores of Fire; film; Cello", "Selected Works; book; Cello"]
    assert ModelOracle(TABLE)(messages("tog/sufficient", triples=triples)) == "{Yes}. It is {Cello}."


def test_useless_pairs_and_answering_entities():
    oracle = ModelOracle(TABLE)
    assert oracle(messages("top/compare", a="-> x", b="-> y")) == "[NEITHER]"
    assert oracle(messages("top/relevant", known="[E1] -> x", candidate="-> y")) == "[NEITHER]"
    groups = [{"path": "Ann Li -> person siblings -> athlete team", "entities": ["FC North", "FC South"]}]
    assert oracle(messages("top/entities", groups=groups)) == '{"answer": [2]}'
    assert oracle(messages("top/entities", groups=groups, answer=False)) == "[2, 1]"


def test_relation_name_must_match_completely():
    relations = ["person", "children", "person children", "instruments"]
    assert ModelOracle(TABLE)(messages("tog/relations", relations=relations)) == CORRECT_REPLIES["tog/relations"]
    through_a_mediator = {"q": Gold((frozenset({"Ann Li -> b: d"}),), relations=frozenset({"a b", "c d"}))}
    reply = ModelOracle(through_a_mediator)(messages("tog/relations", relations=["c d", "x", "a b"]))
    assert reply.splitlines() == ["1. {c d (Score: 0.5)}: it is.", "2. {a b (Score: 0.5)}: it is."]


def test_single_table_entry_applies_to_every_question():
    only = {"": TABLE[FOUNDED]}
    assert ModelOracle(only)(messages("top/accept", question="Anything?")) == "[YES]"
    assert ModelOracle(TABLE)(messages("top/accept", question="Anything?")) == "[NO]"


def test_unknown_prompt_is_an_error():
    assert "do not know" in ModelOracle(TABLE)([{"role": "user", "content": "Hello."}])


# ---- how far a path is from a solution ----

ALONE, BOTH = frozenset({"[E1] -> a -> b"}), frozenset({"[E1] -> a -> b", "[E2] <- c"})
MEETS = " AND [E2] <- c"


@pytest.mark.parametrize(
    ("solution", "text", "rank"),
    [
        (ALONE, "[E1] -> a -> b", 0),
        (ALONE, "[E1] -> a", 1),
        (ALONE, "[E1]", 2),
        (ALONE, "[E1] -> a -> bc", WORST),
        (ALONE, "[E1] -> a -> b -> c", WORST),
        (ALONE, "[E2] -> a -> b", WORST),
        (ALONE, "[E1] -> a -> b" + MEETS, 1),
        (BOTH, "[E1] -> a -> b" + MEETS, 0),
        (BOTH, "[E1] -> a -> b", 1),
        (BOTH, "[E2] <- c", 1),
        (BOTH, "[E1] -> a", 2),
        (BOTH, "[E1] -> a -> x" + MEETS, WORST),
        (BOTH, "[E1] -> a -> b AND in the same record [E3] -> d" + MEETS, 1),
        (BOTH, "[E2] <- c AND [E1] -> a -> b", 0),
    ],
)
def test_distance_of_a_path(solution, text, rank):
    assert Gold((solution,)).rank(text) == rank
    assert Gold().rank(text) == WORST


def test_nearest_solution_and_names_with_brackets():
    gold = Gold((frozenset({"[E1] -> a -> b -> c"}), frozenset({"Up (film) -> a", "Heat (1995) <- b"})))
    assert gold.rank("[E1] -> a") == 2
    assert gold.rank("Up (film) -> a AND Heat (1995) <- b") == 0


# ---- chance ----


def correct_choices(p: float, name: str, right: str, count: int = 2000, **values) -> float:
    oracle = ModelOracle(TABLE | {f"{number}": TABLE[FOUNDED] for number in range(count)}, p=p)
    replies = [oracle(messages(name, question=str(number), **values)) for number in range(count)]
    assert all(replies)
    return sum(reply.startswith(right) for reply in replies) / count


PAIR = ["[E1] -> athlete team -> organization founders", "[E1] -> athlete team"]


@pytest.mark.parametrize(
    ("name", "right", "values"),
    [
        ("top/compare", "[A]", {}),
        ("top/relevant", "[RELEVANT]", {}),
        ("top/accept", "[YES]", {}),
        ("top/pick", "[1", {"candidates": PAIR, "k": 1}),
    ],
)
def test_accuracy_is_p(name, right, values):
    error = 4 * math.sqrt(0.7 * 0.3 / 2000)
    assert abs(correct_choices(0.7, name, right, **values) - 0.7) < error
    assert correct_choices(1.0, name, right, count=50, **values) == 1


def test_no_position_bias_among_equals():
    share = correct_choices(0.9, "top/compare", "[A]", a="-> x", b="-> y", abstain=False)
    assert abs(share - 0.5) < 4 * math.sqrt(0.25 / 2000)


def test_same_prompt_has_the_same_reply():
    prompts = [messages("top/compare", question=f"{number}") for number in range(200)]
    first = [ModelOracle({"": TABLE[FOUNDED]}, p=0.7)(each) for each in prompts]
    again = ModelOracle({"": TABLE[FOUNDED]}, p=0.7)
    assert [again(each) for each in reversed(prompts)][::-1] == first
    assert [ModelOracle({"": TABLE[FOUNDED]}, p=0.7, seed=1)(each) for each in prompts] != first
    assert set(first) == {"[A]", "[B]"}


def test_repeated_request_may_have_another_reply():
    conversation = messages("top/compare")
    more = [{"role": "assistant", "content": "[B]"}, {"role": "user", "content": "Reply again."}]
    replies = {
        ModelOracle(TABLE, p=0.5, seed=seed)(conversation + more * times) for seed in range(9) for times in (0, 1)
    }
    assert replies == {"[A]", "[B]"}


def test_oracle_behind_a_server():
    table = ModelOracle(TABLE)
    with ScriptedServer(table, constrains="structured_outputs") as server:
        models = open_models(resolve({"llm.model": f"{server.url}#oracle"}, environment={}))
        assert models is not None
        prompts = [
            Prompt(tuple(Message(m["role"], m["content"]) for m in messages(name)), "decide")  # type: ignore[arg-type]
            for name in CORRECT_REPLIES
        ]
        completions = models.for_question(Trace()).complete(prompts)
        models.close()
        assert [each.text for each in completions] == [table(messages(name)) for name in CORRECT_REPLIES]
        assert server.errors == []
