"""The oracle on prompts of other programs, with the structure, labels and reply forms of Think-on-Graph and Plan-on-Graph."""

from __future__ import annotations

import json
import random
import re

import pytest

from benchmarks.peer_oracle import PeerOracle, listed, read_peer_prompt, stands_in
from kgqa.testing.model_oracle import Gold

QUESTION = "Who founded the club that Ann Li plays for?"
OTHER = "Which instrument does Ann Li play?"
TABLE = {
    QUESTION: Gold(
        nodes=frozenset({"FC North", "m.0club", "Mara Holt"}), answers=("Mara Holt", "Jonas Pell"),
        relations=frozenset({"sports.athlete.team", "organization.organization.founders"}),
    ),
    OTHER: Gold(nodes=frozenset({"Cello"}), answers=("Cello",), relations=frozenset({"music.artist.instrument"})),
}  # fmt: skip
RELATIONS = "people.person.gender; sports.athlete.team; people.person.height; music.artist.instrument"
TRIPLES = "Ann Li, sports.athlete.team, FC North\nFC North, organization.organization.founders, Mara Holt"

TOG = {
    "relations": f"""Retrieve 3 relations that contribute to the question and rate them from 0 to 1.
Q: Name the wife of Bo Li?
Topic Entity: Bo Li
Relations: people.person.spouse; people.person.gender
A: 1. {{people.person.spouse (Score: 1.0)}}: a wife is a spouse.

Q: {QUESTION}
Topic Entity: Ann Li
Relations: {RELATIONS}
A: """,
    "entities": f"""Rate how the entities contribute; the scores sum to 1.
Q: Name the wife of Bo Li?
Relation: people.person.spouse
Entites: Cara; Dora
Score: 0.0, 1.0

Q: {QUESTION}
Relation: sports.athlete.team
Entites: FC South; FC North; FC East
Score: """,
    "enough": f"""Say whether these triples and your knowledge are enough to answer the question (Yes or No).
Q: Name the wife of Bo Li?
Knowledge Triplets: Bo Li, people.person.gender, Male
A: {{No}}. There is no wife.

Q: {QUESTION}
Knowledge Triplets: {TRIPLES}A: """,
    "answer": f"""Answer the question with these triples and your knowledge.
Q: Name the wife of Bo Li?
Knowledge Triplets: Bo Li, people.person.spouse, Cara
A: The wife is {{Cara}}.

{QUESTION}

Knowledge Triplets: {TRIPLES}A: """,
    "memory only": f"Q: Name the wife of Bo Li?\nA: It is {{Cara}}.\n\nQ: {QUESTION}\nA:",
}
POG = {
    "subobjectives": f"""Break the question down into few subobjectives. An example:
Q: Name the wife of Bo Li?
Output: ['Find the wife']
Q: {QUESTION}""",
    "relations": f"""Give the relations that matter to the question and its subobjectives, as a list. An example:
Q: Name the wife of Bo Li?
Subobjectives: ['Find the wife']
Topic Entity: Bo Li
Relations: people.person.spouse; people.person.gender
The output is: ['people.person.spouse']

Q: {QUESTION}
Subobjectives: ['Find the club', 'Find out: {QUESTION}']
Topic Entity: Ann Li
Relations: {RELATIONS}""",
    "entities": f"""Which entities in the lists ([] in Triples) help to answer? As few as possible.
Q: Name the wife of Bo Li?
Triples: Bo Li people.person.spouse ['Cara', 'Dora']
Output: ['Cara']

Q: {QUESTION}
Triples: Ann Li sports.athlete.team ['FC South', 'FC North']
Ann Li sports.athlete.league ['League, First', "Women's Cup"]
""",
    "memory": f"""Write down what is known of each subobjective.
Q: Name the wife of Bo Li?
Subobjectives: ['Find the wife']
Memory:
Knowledge Triplets: Bo Li people.person.spouse ['Cara']
Output: {{"1": "Cara is the wife"}}

Q: {QUESTION}
Subobjectives: ['Find the club']
Memory: {{"1": "nothing yet"}}
Knowledge Triplets: Ann Li sports.athlete.team ['FC North', 'FC South']""",
    "enough": f"""Answer from the memory, the triples and your knowledge. An example:
Q: Name the wife of Bo Li?
Memory: {{"1": "Cara is the wife"}}
Knowledge Triplets: Bo Li people.person.spouse ['Cara']
Output: {{"A": {{"Sufficient": "Yes", "Answer": "Cara"}}, "R": "She is."}}

Q: {QUESTION}
Memory: {{"1": "FC North"}}
Knowledge Triplets: FC North organization.organization.founders ['Mara Holt', 'Jonas Pell']
""",
    "more": f"""Should entities from before be added to those to be retrieved? Reply {{"Add": "Yes", "Reason": ""}}.

Q: {QUESTION}
Entities to be retrieved: ['FC South', 'FC East']
Memory: {{"1": "nothing yet"}}
Knowledge Triplets: Ann Li sports.athlete.team ['FC South']
""",
    "added": f"""Choose from the candidates those that should be added, as a list.

Q: {QUESTION}
Candidate Entities: ['FC West', 'FC North']
Memory: {{"1": "nothing yet"}}
""",
}


def reply_to(prompt: str, table=None, **options) -> str:
    oracle = PeerOracle(TABLE if table is None else table, **{"p": 1.0, **options})
    return oracle([{"role": "system", "content": "You help."}, {"role": "user", "content": prompt}])


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        (TOG["relations"], "1. {sports.athlete.team (Score: 1.0)}: it leads on."),
        (TOG["entities"], "0.0, 1.0, 0.0"),
        (TOG["enough"], "{Yes}. It is {Mara Holt}."),
        (TOG["enough"].replace(", Mara Holt", ", Mara Holtz"), "{No}. I would say {nobody}."),
        (TOG["answer"], "It is {Mara Holt}."),
        (TOG["memory only"], "I would say {nobody}."),
        (POG["relations"], '["sports.athlete.team"]'),
        (POG["entities"], '["FC North"]'),
        (POG["memory"], '{"1": "FC North"}'),
        (POG["enough"], '{"A": {"Sufficient": "Yes", "Answer": "Mara Holt; Jonas Pell"}, "R": "By what is known."}'),
        (POG["enough"].replace("'Mara Holt', 'Jonas Pell'", "'Somebody'"),
         '{"A": {"Sufficient": "No", "Answer": "null"}, "R": "By what is known."}'),
        (POG["more"], '{"Add": "Yes", "Reason": "The way on is lost."}'),
        (POG["more"].replace("'FC East'", "'FC North'"), '{"Add": "No", "Reason": "The way on is there."}'),
        (POG["added"], '["FC North"]'),
    ],
)  # fmt: skip
def test_prompt_gets_the_correct_decision_in_the_requested_form(prompt, reply):
    assert reply_to(prompt) == reply


def test_subobjectives_are_not_taken_for_the_question():
    (first,) = json.loads(reply_to(POG["subobjectives"]))
    prompt = POG["relations"].replace("Find the club", first)
    assert reply_to(prompt) == '["sports.athlete.team"]'


def test_question_is_found_among_known_questions():
    assert reply_to(TOG["relations"].replace(QUESTION, OTHER)).startswith("1. {music.artist.instrument ")
    example = TOG["relations"].replace("Name the wife of Bo Li?", OTHER)
    assert reply_to(example).startswith("1. {sports.athlete.team ")
    assert reply_to(TOG["enough"].replace(QUESTION, QUESTION.upper())) == reply_to(TOG["enough"])


def test_prompts_of_kgqa_are_still_read():
    ours = f"Question: {QUESTION}\nEntity: Ann Li\nEntities: FC South; Mara Holt\nScore:"
    assert reply_to(ours) == "Score: 0.0, 1.0"
    assert "nobody" in reply_to(f"Question: {QUESTION}"), "it knows nothing by itself"
    assert "Mara Holt" in reply_to(f"Question: {QUESTION}", memory=1.0)
    assert reply_to(TOG["memory only"], memory=1.0) == "It is {Mara Holt; Jonas Pell}."


@pytest.mark.parametrize("prompt", [TOG["relations"], TOG["entities"], TOG["enough"], POG["relations"], POG["enough"]])
def test_decisions_are_correct_with_probability_p_in_any_order(prompt):
    right = reply_to(prompt)
    prompts = [prompt.replace("Bo Li", f"Bo Li {n}") for n in range(300)]
    oracle = PeerOracle(TABLE, p=0.8, seed=1)

    def replies(order):
        return {n: oracle([{"role": "user", "content": prompts[n]}]) for n in order}

    there = replies(range(300))
    shuffled = random.Random(0).sample(range(300), 300)
    assert replies(shuffled) == there
    # guesses are sometimes correct: three of four relations are drawn, and each entity with probability 1/2
    assert 0.7 < sum(reply == right for reply in there.values()) / 300 < 0.92
    assert PeerOracle(TABLE, p=0.8, seed=2)([{"role": "user", "content": prompts[0]}]) is not None
    other = PeerOracle(TABLE, p=0.8, seed=2)
    assert any(other([{"role": "user", "content": prompts[n]}]) != there[n] for n in range(100))


def test_list_of_kgqa_is_one_decision():
    table = {"Q?": Gold((frozenset({"[E1] -> right"}),))}
    paths = ["[E1] -> right" if n == 7 else f"[E1] -> wrong {n}" for n in range(1, 31)]
    asked_for = "Select at most 3.\n" + "\n".join(f"[{n}] {path}" for n, path in enumerate(paths, 1))
    picks, scores = 0, 0
    for n in range(300):
        reply = json.loads(reply_to(f"Question: Q?\nSelected: {n}\n{asked_for}", table, p=0.8))
        assert len(set(reply)) == 3 and set(reply) <= set(range(1, 31))
        picks += reply[0] == 7
        rated = json.loads(reply_to(f"Question: Q?\nScores: {n}\n{asked_for}", table, p=0.8))["scores"]
        assert len(rated) == 30
        scores += max(range(30), key=rated.__getitem__) == 6
    assert 0.72 < picks / 300 < 0.88 and 0.72 < scores / 300 < 0.88


def test_relation_replies_have_the_published_form():
    oracle = PeerOracle(TABLE, p=0.5)
    for n in range(50):
        text = oracle([{"role": "user", "content": TOG["relations"].replace("Bo Li", str(n))}])
        rated = re.findall(r"\{\s*(?P<relation>[^()]+)\s+\(Score:\s+(?P<score>[0-9.]+)\)\}", text)
        assert 1 <= len(rated) <= 3 and len(rated) == len(text.splitlines())
        assert all(name in RELATIONS for name, _ in rated)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a; b c; d.", ["a", "b c", "d"]),
        ("['a', \"b's\", 'c; d']", ["a", "b's", "c; d"]),
        ("[a, 'b]", ["a", "b"]),
        ("a, b", ["a", "b"]),
        ("[" * 5000, []),
        ("", []),
    ],
)
def test_list_replies(text, items):
    assert listed(text) == items


@pytest.mark.parametrize(
    ("name", "text", "stands"),
    [
        ("English", "UK, language, English", True),
        ("English", "UK, language, English Language", False),
        ("C++", "{C++}", True),
        ("a.b", "x, axb", False),
        ("Ann", "x r ['Bo', 'Ann']", True),
    ],
)
def test_name_must_match_a_whole_part(name, text, stands):
    assert stands_in(name, text) is stands


def test_relation_named_score_asks_for_no_scores():
    prompt = POG["relations"].replace("people.person.spouse; people", "sports.match.score; people")
    assert reply_to(prompt) == reply_to(POG["relations"])


def test_prompt_without_the_mark_is_of_another_form():
    assert read_peer_prompt("Question: who?") is None
    found = read_peer_prompt("Q: who?\nA: {x}\n\nQ: and who?\nA:")
    assert found is not None and (found.question, found.kind) == ("and who?", "answer")
