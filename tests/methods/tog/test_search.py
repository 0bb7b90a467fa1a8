"""Think-on-Graph: mediators, evidence, forms of replies."""

from __future__ import annotations

import pytest

from kgqa.methods.tog.replies import read_entities, read_relations, read_sufficient

from .conftest import BORN

DIRECTOR = "1. {directed by (Score: 0.6)}: it is.\n2. {country (Score: 0.3)}: perhaps."
BIRTH = "1. {place of birth (Score: 1.0)}: that is asked."


@pytest.fixture
def preset():
    return "ours"


@pytest.fixture
def asked(run):
    """Return `run` with our names of relations."""
    return lambda question=BORN, **given: run(question, **{"relations": DIRECTOR, **given})


def test_all_values_of_a_relation_are_evidence_before_entities_are_rated(asked):
    done = asked(
        relations=[DIRECTOR, BIRTH], sufficient=["{No}. Not yet.", "{Yes}. It is {Alphaville}."], explore__beam=1
    )
    assert done.kinds == ["relations", "sufficient", "entities", "relations", "sufficient"]
    assert "Entity: Zorblax\nRelations: country; directed by; produced by" in done.prompts("relations")[0]
    assert (
        "Source: Zorblax\nRelation: directed by\nEntities: Ann Arkin; Bob Bream\nScore:" in done.prompts("entities")[0]
    )
    assert done.triples(0) == ["Zorblax; directed by; Ann Arkin; Bob Bream"]
    assert done.triples()[1:] == ["Ann Arkin; place of birth; Alphaville"]
    assert done.ids == ["m.alpha"] and done.answer.query_class == "restricted" and "m.ann" in done.answer.sparql


def test_thirty_values_are_evidence_those_of_the_question_first(asked):
    done = asked("Does Actor 24 play in Bigfilm?", relations="1. {actor (Score: 1)}: it is.", explore__depth=1,
                 answer="{Actor 03}")  # fmt: skip
    (line,) = done.triples()
    assert line.startswith("Bigfilm; actor; Actor 24; ") and line.count("; ") == 26
    assert done.ids == ["m.actor03"] and done.answer.query_class == "superset"


def test_nodes_without_a_name_are_passed_through(asked):
    done = asked("Which country has the Hymn of Ulmen?", topics=["m.song"], explore__depth=1,
                 relations="1. {use (Score: 1.0)}: it is.", sufficient="{Yes}. {Freedonia}")  # fmt: skip
    assert done.triples() == ["Hymn of Ulmen; use: country; Freedonia"]
    assert "unnamed" not in str(done.requests) and "g.x1" not in str(done.requests)
    assert done.ids == ["m.fre"] and done.answer.grounding == "graph" and not done.answer.defects


def test_record_is_one_line_with_all_its_fields(asked):
    done = asked("Who was captain of the Ulmen Rovers in 1990?", topics=["m.rovers"], explore__depth=1,
                 relations="1. {captains (Score: 1.0)}: it is.", sufficient="{Yes}. {Bob Bream}")  # fmt: skip
    assert sorted(done.triples()) == [
        "Ulmen Rovers; captains; captain = Ann Arkin; from = 1993",
        "Ulmen Rovers; captains; captain = Bob Bream; from = 1988",
    ]
    assert done.ids == ["m.bob"] and done.answer.query_class == "restricted"
    both = asked("Who were captains of the Ulmen Rovers?", topics=["m.rovers"], explore__depth=1,
                 relations="1. {captains (Score: 1.0)}: it is.", sufficient="{Yes}. {Bob Bream; Ann Arkin}")  # fmt: skip
    assert both.answer.query_class == "exact" and "m.cap1" not in both.answer.sparql


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("Score: 0.4 0.3 0.3", (0.4, 0.3, 0.3)),
        ("The scores are: Score: 0.4, 0.6. A and B are relevant.", (0.4, 0.6)),
        ("Score: .2, 0.8, where B is best.", (0.2, 0.8)),
        ('{"scores": [0.25, 0.75]}', (0.25, 0.75)),
        ("[1]: 0.2\n[2]: 0.8", (0.2, 0.8)),
        ("Score: 0.4", (None, None)),
    ],
)
def test_scores_of_entities(text, scores):
    assert (read_entities(text, len(scores)).value or (None,) * len(scores)) == scores


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ('{"answer": 1}', []),
        ("[1]", []),
        ("Answer: 1", []),
        ('{"answers": ["1984"]}', ["1984"]),
        ("It was in {1984}.", ["1984"]),  # the form that is asked for
    ],
)
def test_bare_number_is_asked_again(asked, reply, names):
    done = asked(answer=reply, explore__depth=1)
    assert [item.name for item in done.answer.answers] == names
    assert done.answer.status == ("answered" if names else "no_answer")
    assert done.kinds[-2:] == (["sufficient", "answer"] if names else ["answer", "answer"])


@pytest.mark.parametrize(
    "text",
    ["1. {directed by (Score: 0.6)}: it is.", "directed by: 0.6", "- directed by (0.6)", "{Directed_by (Score: 0.6)}"],
)
def test_loose_forms_of_relations(text):
    assert read_relations(text, ["directed by", "country"]).value == (("directed by", 0.6),)


def test_names_of_relations_that_are_alike_are_told_apart():
    text = "{film.a.b (Score: 0.6)}\n{film.a_b (Score: 0.3)}"
    assert read_relations(text, ["film.a.b", "film.a_b"]).value == (("film.a.b", 0.6), ("film.a_b", 0.3))


def test_no_relation_helps(asked):
    done = asked(relations="None")
    assert done.kinds == ["relations", "cot"] and done.answer.grounding == "model"  # and nothing is asked again


@pytest.mark.parametrize("text", ["I think {Ann Arkin}: {Yes}.", "{Yes}. Of {Zorblax} it is {Ann Arkin}."])
def test_verdict_anywhere_and_answer_in_the_last_braces(text):
    assert read_sufficient(text).value == ("Ann Arkin",)
