"""The reader of every dataset format on its fixture."""

from __future__ import annotations

import json

import pytest

from kgqa.evaluation.datasets.fields import NO_GOLD, NOT_SCORED, XSD, freebase_id, typed_value
from kgqa.evaluation.datasets.formats.freebase import descriptions
from kgqa.evaluation.datasets.questions import GoldAnswer, QuestionFileError
from kgqa.evaluation.datasets.registry import READERS, dataset_questions
from kgqa.evaluation.runs.asking import hops_of
from kgqa.schema import bundled_schema
from kgqa.training.gold_queries import gold_paths
from tests.evaluation.datasets.conftest import FIXTURES, SOURCES

WD = "http://www.wikidata.org/entity/"


def test_every_format_has_a_fixture():
    assert set(SOURCES) == set(READERS)


@pytest.mark.parametrize("name", SOURCES)
def test_common_fields(source, name):
    questions = dataset_questions(source(name))
    assert 3 <= len(questions) <= 10
    assert [q.number for q in questions] == list(range(len(questions)))
    assert len({q.id for q in questions}) == len(questions)
    for q in questions:
        assert q.dataset == name and q.text
        assert bool(q.answers or any(q.parses)) == (q.support != NO_GOLD)
        assert q.answers == tuple(dict.fromkeys(q.answers)) and all(a.id or a.name for a in q.answers)
        assert len(q.topics) == len(set(q.topics))


def test_cwq(source):
    first, second, dated, none = dataset_questions(source("cwq"))
    assert (first.id, first.kind, first.topics) == ("Made-1_aa", "composition", ("m.0made1",))
    assert first.answers == (GoldAnswer("m.0made2", "Lake Language", "", ("Lakean", "Lake tongue")),)
    assert second.topics == ("m.0made3", "g.1made4"), "the type in notable_types is no topic"
    assert second.answers[1] == GoldAnswer("m.0made6", "", "", ("Old Harbour",)), "an entity without a name"
    assert dated.answers == (GoldAnswer("", "1911-05-02"),), "its id is its value"
    assert none.answers == () and none.support == NO_GOLD
    assert first.sparql == (first.row["sparql"],) and "official_language" in first.sparql[0]


def test_cwq_without_answers(source):
    questions = dataset_questions(source("cwq", "ComplexWebQuestions_test.json"))
    assert len(questions) == 3 and all(q.support == NO_GOLD and q.topics and not q.answerable() for q in questions)


def test_webqsp(source):
    one, several, dated, none, bad = dataset_questions(source("webqsp"))
    assert one.parses == () and one.answers == (GoldAnswer("m.0made11", "Mill Bakery"), GoldAnswer("g.1made12", ""))
    assert (one.topics, one.topic_names) == (("m.0made10",), ("Orrin",))
    assert dated.answers == (GoldAnswer("", "1848-03-01"),)
    # all three parses are kept: complete, complete without answers, partial
    assert [[a.name for a in parse] for parse in several.parses] == [["Arlo", "Ivo"], [], ["Benno"]]
    assert several.answers == several.parses[0] and several.topics == ("m.0made13",)
    assert [relation in query for relation, query in zip(("sibling_s", "friends", "cousins"), several.sparql)] == [
        True
    ] * 3
    assert several.row["Parses"][1]["Constraints"][0]["Argument"] == "m.0made20"
    assert (none.support, none.answers, none.topics) == (NO_GOLD, (), ())
    assert bad.support == NOT_SCORED and bad.answers and not bad.answerable()


def test_webqsp_without_annotations(source, tmp_path):
    *_, bad = dataset_questions(source("webqsp"))
    data = json.loads((FIXTURES / SOURCES["webqsp"]).read_text())
    for parse in data["Questions"][-1]["Parses"]:
        del parse["AnnotatorComment"]
    (tmp_path / "q.json").write_text(json.dumps(data))
    *_, unannotated = dataset_questions(f"webqsp:{tmp_path / 'q.json'}")
    assert bad.support == NOT_SCORED and unannotated.support == "" and unannotated.answers == bad.answers


def test_grailqa(source):
    both, count, longer = dataset_questions(source("grailqa"))
    assert (both.id, both.level, both.kind) == ("9100000001000", "compositional", "none")
    assert both.topics == ("m.0made31", "m.0made32") and both.topic_names == ("old harbour", "horses")
    assert count.answers == (GoldAnswer("", "4"),) and count.kind == "count" and count.topics == ("g.1made4",)
    assert longer.topics == (), "a literal is no topic"
    assert [a.id for a in longer.answers] == ["m.0made33", "m.0made34"] and longer.level == "zero-shot"


def test_grailqa_without_answers(source):
    questions = dataset_questions(source("grailqa", "grailqa_v1.0_test_public.json"))
    assert [q.id for q in questions] == ["1", "2", "3"] and all(q.support == NO_GOLD for q in questions)


def test_webquestions(source):
    towns, dated, job = dataset_questions(source("webquestions"))
    assert [a.name for a in towns.answers] == ["North Orrin", 'South "Low" Orrin', "Tollen"]
    assert (towns.id, towns.topics, towns.topic_names) == ("WebQTest-0", (), ("lake orrin",))
    assert dated.answers == (GoldAnswer("", "3/1/1848"),) and [a.name for a in job.answers] == ["Ferryman"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("(list)", []),
        ('(list (description "a (b)"))', ["a (b)"]),
        ("(list (description New York))", ["New York"]),
        ('(list (description "C:\\\\x") (description ""))', ["C:\\x", ""]),
        ("  ( list\n(description 1))  ", ["1"]),
        ("(list (number 7) (description x))", ["x"]),
    ],
)
def test_target_values(text, names):
    assert descriptions(text) == names


@pytest.mark.parametrize(
    "text", ["(", ")", "(list (description a)", "(list) (list)", "(((a)))", '(list (description "a))']
)
def test_invalid_target_value(text):
    with pytest.raises(ValueError, match="targetValue"):
        descriptions(text)


def test_simplequestions(source):
    first, *_ = dataset_questions(source("simplequestions"))
    assert (first.id, first.topics, first.hops) == ("test_0", ("m.0made13",), 1)
    assert first.answers == (GoldAnswer("m.0made10", ""),)
    (path,) = gold_paths(first.row, bundled_schema("freebase"))
    assert [step.relation.rpartition("/")[2] for step in path.steps] == ["people.person.place_of_birth"]


def test_simplequestions_without_a_final_newline(source, tmp_path):
    text = (FIXTURES / SOURCES["simplequestions"]).read_text()
    (tmp_path / "annotated_fb_data_test.txt").write_text(text.rstrip("\n"))
    found = dataset_questions(f"simplequestions:{tmp_path / 'annotated_fb_data_test.txt'}")
    assert [each.id for each in found] == [each.id for each in dataset_questions(source("simplequestions"))]


def test_qald(source):
    rivers, longer, count, none = dataset_questions(source("qald10"))
    assert rivers.text == "Which rivers flow through Cologne?"
    assert rivers.answers == (GoldAnswer(WD + "Q584", ""), GoldAnswer(WD + "Q999000001", ""))
    assert rivers.topics == (WD + "Q365",), "wd: need not be declared"
    assert longer.text.startswith("Is the Rhine"), "in English though German comes first"
    assert (longer.kind, longer.answers) == ("ask", (GoldAnswer("", "true", XSD + "boolean"),))
    assert (count.kind, count.answers) == ("aggregation", (GoldAnswer("", "8", XSD + "integer"),))
    assert none.support == NO_GOLD and none.topics == (WD + "Q1644",)


def test_lcquad(source):
    plain, paraphrased, made, answered = dataset_questions(source("lcquad2"))
    assert plain.topics == (WD + "Q1653", WD + "Q165") and plain.kind == "simple question right"
    assert plain.support == NO_GOLD and plain.sparql[0].startswith("select distinct ?obj")
    assert paraphrased.text == "What is the Rhine's length?" and paraphrased.kind == "simple question left"
    assert made.text == "Is the population of Cologne more than 1000000"
    assert answered.answers == tuple(
        GoldAnswer(i, n) for i, n in ((WD + "Q1649", ""), (WD + "Q1650", ""), ("", "1,386 m"))
    )


def test_hotpotqa(source):
    bridge, comparison, none = dataset_questions(source("hotpotqa"))
    assert (bridge.kind, bridge.level, bridge.answers) == ("bridge", "hard", (GoldAnswer("", "a ferryman"),))
    assert bridge.row["passages"][0] == {
        "title": "Tollen",
        "text": "Tollen is a town on Lake Orrin. It is named after Tollo.",
    }
    assert bridge.row["supporting"] == [0, 2] and comparison.row["supporting"] == [0, 1]
    assert none.support == NO_GOLD and none.row["supporting"] == []


def test_2wikimultihopqa(source, tmp_path):
    first, second, third = dataset_questions(source("2wikimultihopqa"))
    assert first.answers == (GoldAnswer("", "Paris", "", ("City of Light", "Lutetia", "Parisian")),)
    assert first.row["answer_id"] == "Q90" and first.row["evidences"][0][1] == "composer"
    assert second.answers[0].aliases == third.answers[0].aliases == ()
    # without the file of aliases
    (tmp_path / "dev.json").write_bytes((FIXTURES / "2wiki" / "dev.json").read_bytes())
    assert dataset_questions(f"2wikimultihopqa:{tmp_path / 'dev.json'}")[0].answers[0].aliases == ()


def test_musique(source):
    two, three, unanswerable = dataset_questions(source("musique"))
    assert (two.hops, two.kind, three.hops, three.kind) == (2, "2hop", 3, "3hop1")
    assert two.answers == (GoldAnswer("", "Lake Orrin", "", ("Orrin", "Orrinsee")),)
    assert two.row["supporting"] == [0, 2] and two.row["passages"][2]["title"] == "Tollen"
    assert unanswerable.support == NO_GOLD


def test_grbench(source):
    text, number, several = dataset_questions(source("grbench"))
    assert text.answers == (GoldAnswer("", "Court of Orrin, Second Bench", joined=True),), "one name, or two"
    assert number.answers == (GoldAnswer("", "12"),) and [a.name for a in several.answers] == ["A. Tollo", "B. Arlo"]
    assert [q.level for q in (text, number, several)] == ["easy", "medium", "hard"]


def test_hipporag(source):
    """One file may have records in the format of several data sets."""
    musique, hotpot, popqa, nq = dataset_questions(source("hipporag"))
    assert musique.answers == (GoldAnswer("", "Lake Orrin", "", ("Orrin",)),) and musique.hops == 2
    assert (hotpot.id, hotpot.kind, hotpot.row["supporting"]) == ("made-1", "bridge", [0])
    assert popqa.id == "7" and popqa.answers == (GoldAnswer("", "ferryman", "", ("boatman",)),)
    assert nq.answers == (GoldAnswer("", "Tollo", "", ("Tollo of Orrin",)),)
    assert nq.supporting == (("Tollo", "Tollo rowed the ferry of Tollen."),)
    assert nq.evidence == ("Tollo: Tollo rowed the ferry of Tollen.",)


def test_hypergraphrag(source):
    one, two, none = dataset_questions(source("hypergraphrag"))
    assert two.answers == (GoldAnswer("", "LAKE ORRIN", "", ("ORRIN",)),) and (one.kind, two.kind) == ("1", "2")
    assert two.evidence == ("Tollo rowed the ferry of Tollen.", "Tollen lies on Lake Orrin.")
    assert none.support == NO_GOLD and none.passages == (("", "The mill grinds rye."),)


def test_ultradomain(source):
    first, second, third = dataset_questions(source("ultradomain"))
    assert first.text == "How did people cross Lake Orrin?" and first.kind == "boats"
    assert first.answers == (GoldAnswer("", "By the ferry of Tollen, which Tollo rowed."),)
    assert first.passages == second.passages and first.passages[0][0] == "Boats of Orrin" and first.supporting == ()
    assert third.passages == (("", "The mill grinds rye."),)


def test_tog_copies(source):
    one, two, original = dataset_questions(source("tog-cwq"))
    assert (one.id, one.topics, one.topic_names) == ("Made-1_aa", ("m.0made1",), ("Tollo",))
    assert one.answers == (GoldAnswer("", "Lake Language"),) and two.topics == ("m.0made3", "g.1made4")
    assert original.answers == (GoldAnswer("", "1911-05-02"),), "answers as the original has them"
    _, several, own = dataset_questions(source("tog-webqsp"))
    assert several.topics == ("m.0made13", "m.0made20") and len(several.parses) == 3
    assert own.topics == ("m.0made18",), "what the original says, where nothing was added for Freebase"
    assert [q.topic_names for q in dataset_questions(source("tog-grailqa"))] == [
        ("Old Harbour", "Horse"),
        ("Blue Line",),
        (),
    ]
    first, second, _ = dataset_questions(source("tog-webquestions"))
    assert [a.name for a in first.answers] == ["North Orrin", "Tollen"] and first.topics == ("m.0made3",)
    assert second.topics == () and second.topic_names == ("tollo",)
    assert [(q.answers[0].name, q.hops) for q in dataset_questions(source("tog-simpleqa"))] == [("Orrin", 1), ("Benno", 1), ("Ferry", 1)]  # fmt: skip
    river, count, none = dataset_questions(source("tog-qald"))
    assert river.answers == (GoldAnswer(WD + "Q584", "Rhine"),) and river.topics == (WD + "Q365",)
    assert count.answers == (GoldAnswer("", "8"),) and count.topics == (WD + "Q584", WD + "Q365")
    assert none.support == NO_GOLD


@pytest.mark.parametrize(
    ("text", "ident"),
    [
        ("m.0abc", "m.0abc"),
        ("/m/0abc", "m.0abc"),
        ("ns:g.1a_b", "g.1a_b"),
        ("www.freebase.com/m/0abc", "m.0abc"),
        ("http://rdf.freebase.com/ns/m.0abc", "m.0abc"),
        ("1969-07-20", ""),
        ("m.0abc def", ""),
        ("en.jamaica", ""),
        ("", ""),
    ],
)
def test_freebase_ids(text, ident):
    assert freebase_id(text) == ident


def test_typed_values():
    assert typed_value(f"1969^^{XSD}gYear") == GoldAnswer("", "1969", XSD + "gYear")
    assert typed_value('"1.5"^^xsd:float') == GoldAnswer("", "1.5", XSD + "float")
    assert typed_value("a^b") == GoldAnswer("", "a^b")


class _GraphWithSchema:
    schema = bundled_schema("freebase")


def test_gold_paths_of_formats_with_queries(source):
    """Gold paths give the number of hops in reports."""
    for name, expected in (
        ("cwq", [1, 2, 1, 1]),
        ("webqsp", [1, 1, 1, 0, 0]),
        ("grailqa", [2, 1, 0]),
        ("tog-cwq", [1, 2, 1]),
    ):
        assert [len(gold_paths(q.row, _GraphWithSchema.schema)) for q in dataset_questions(source(name))] == expected, (
            name
        )
    assert hops_of(dataset_questions(source("simplequestions"))[0], _GraphWithSchema()) == 1  # type: ignore[arg-type]


def test_nq(source):
    first, _, none = dataset_questions(source("nq"))
    assert first.answers == (GoldAnswer("", "Tollo", "", ("Tollo of Orrin",)),) and first.id == "0"
    assert none.support == NO_GOLD


def test_evqa(source):
    tower, duck, fish, mill = dataset_questions(source("evqa"))
    assert tower.answers == (GoldAnswer("", "12", "", ("12 metres",)),) and tower.kind == "automatic"
    assert tower.image == "0/1/2/0123456789abcdef.jpg" and len(tower.row["images"]) == 2
    assert [[answer.name for answer in reading] for reading in duck.readings] == [
        ["white", "grey"],
        ["white", "light grey"],
    ]
    assert duck.image == "inaturalist/31.jpg"
    assert fish.image == "" and fish.row["evidence"] == "It lives in\nLake Orrin only."
    assert mill.support == NO_GOLD


def test_infoseek(source):
    town, bridge, mill = dataset_questions(source("infoseek"))
    assert town.answers == (GoldAnswer("", "Lake Orrin", "", ("Orrin",)),)
    assert town.image == "oven_00000001.jpg" and town.id == "infoseek_val_1"
    assert bridge.answers == (GoldAnswer("", "120"),) and mill.support == NO_GOLD
    assert mill.image == "", "an id must not lead to another folder"


def test_okvqa(source, tmp_path):
    boat, duck, _ = dataset_questions(source("okvqa"))
    assert boat.answers == (GoldAnswer("", "cross lake", "", ("ferry",)),), "the most frequent answer comes first"
    assert boat.image == "val2014/COCO_val2014_000000000042.jpg" and duck.support == NO_GOLD
    name = "OpenEnded_mscoco_val2014_questions.json"
    (tmp_path / name).write_bytes((FIXTURES / "okvqa" / name).read_bytes())
    assert not dataset_questions(f"okvqa:{tmp_path / name}")[0].answers  # without the file of annotations


@pytest.mark.parametrize("text", ["a,b\n1,2\n", 'question,answer,dataset_image_ids,dataset_name\n"x\n', "\n"])
def test_files_that_are_no_evqa(tmp_path, text):
    file = tmp_path / "test.csv"
    file.write_text(text)
    with pytest.raises(QuestionFileError, match="test.csv"):
        dataset_questions(f"evqa:{file}")
