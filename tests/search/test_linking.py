"""Entity linking on a small graph."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import NameMatch
from kgqa.model import Entity
from kgqa.search.linking import NameLookup, find_mentions, rank_hits, unknown_names

from ..memory_graph import memory_graph

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
ALIAS = "<http://www.w3.org/2004/02/skos/core#altLabel>"
NAMES = {
    "toronto": "Toronto", "eastern": "Eastern Time Zone", "zone": "Time zone", "canada": "Canada",
    "capital": "Capital", "film": "Film", "alien": "Alien (film)", "ridley": "Ridley Scott",
    "bible": "The Bible", "bowl": "Super Bowl", "uk": "United Kingdom", "usa": "United States of America",
    "hitler": "Adolf Hitler", "alois": "Alois Hitler", "paris": "Paris", "texas": "Paris", "france": "France",
    "steely": "Steely McBeam", "it": "It", "her": "Her", "egypt": "Egypt", "dead": "Nowhere", "york": "New York",
    "city": "New York City", "jonze": "Spike Jonze", "germany": "Federal Republic of Germany",
}  # fmt: skip
FACTS = [
    ("toronto", "time_zone", "eastern"), ("toronto", "contained_by", "canada"), ("eastern", "type", "zone"),
    ("canada", "capital", "capital"), ("ridley", "directed", "alien"), ("alien", "genre", "film"),
    ("bible", "read_in", "uk"), ("bowl", "held_in", "usa"), ("hitler", "born_in", "france"),
    ("hitler", "father", "alois"), ("hitler", "met", "uk"), ("hitler", "met", "usa"),
    ("paris", "capital_of", "france"), ("paris", "near", "uk"), ("paris", "near", "canada"),
    ("texas", "county_seat", "usa"), ("steely", "mascot_of", "usa"), ("it", "directed_by", "ridley"),
    ("her", "directed_by", "jonze"), ("egypt", "near", "paris"),
    ("york", "near", "canada"), ("city", "part_of", "york"), ("germany", "near", "france"),
]  # fmt: skip


def entity(name: str) -> Entity:
    return Entity(f"http://e/{name}")


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    lines = [f'<http://e/{short}> {LABEL} "{name}" .' for short, name in NAMES.items()]
    lines += [f"<http://e/{s}> <http://r/{p}> <http://e/{o}> ." for s, p, o in FACTS]
    lines += [f'<http://e/usa> {ALIAS} "America" .', f'<http://r/near> {LABEL} "Nearby" .']
    return memory_graph(lines, schema="rdfs")


def entities_of(graph: KnowledgeGraph, question: str) -> set[Entity]:
    return {hit.match.entity for hit in rank_hits(graph, NameLookup(question, graph.names))}


def used_words(graph: KnowledgeGraph, question: str, **options) -> list[tuple[str, str]]:
    return [(m.text, m.matches[0].entity.iri.rsplit("/", 1)[1]) for m in find_mentions(graph, question, **options)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what is the capital of canada?", [("canada", "canada")]),
        ("who directed the film alien?", [("film alien", "alien")]),
        ("where is the bible read?", [("the bible", "bible")]),
        ("where was the superbowl held?", [("superbowl", "bowl")]),
        ("which books are read in the UK?", [("UK", "uk")]),
        ("what do egyptians see nearby?", [("egyptians", "egypt")]),
        ("Who is Stelly McBeam the mascot of?", [("Stelly McBeam", "steely")]),
        ("Who directed It?", [("It", "it")]),
        ("Where is Germany?", [("Germany", "germany")]),
        ("where is germany?", []),
        ("is Toronto near Paris?", [("Toronto", "toronto"), ("Paris", "paris")]),
        ("Paris and Nowhere?", [("Paris", "paris")]),
        ("", []),
        ("who is it?", []),
    ],
)
def test_mentions(graph, question, expected):
    assert used_words(graph, question) == expected


def test_namesakes_are_ranked_by_degree(graph):
    (mention,) = find_mentions(graph, "where is Paris?")
    assert [match.entity for match in mention.matches] == [entity("paris"), entity("texas")]


def test_matching_relations_rank_namesakes(graph):
    def fit(question: str, texts: Sequence[str]) -> list[float]:
        assert "Paris" not in question
        return [1.0 if text == "county seat" else 0.0 for text in texts]

    assert used_words(graph, "which county has Paris as its seat?", fit=fit)[0] == ("Paris", "texas")


def test_relations_are_not_topics(graph):
    assert Entity("http://r/near") not in entities_of(graph, "what is nearby?")


pieces = st.sampled_from([*NAMES.values(), "the", "who", "'s", "?", '"', "US"])


@given(st.text(max_size=60) | st.lists(pieces, max_size=9).map(" ".join))
def test_any_question_is_linked_without_error(graph, question):
    mentions = find_mentions(graph, question)
    at = 0
    for mention in mentions:
        at = question.index(mention.text, at) + len(mention.text)
        assert mention.matches and all(isinstance(match, NameMatch) for match in mention.matches)
    assert {m.matches[0].entity for m in mentions} <= entities_of(graph, question)


NAMESAKES = {
    "cpp": "C++", "c": "C", "csharp": "C#", "resume": "Resume", "accents": "Résumé", "now": "Now", "it": "It",
    "biden": "Joe Biden", "obama": "Barack Obama", "kubrick": "Stanley Kubrick", "scorsese": "Martin Scorsese",
    "johansson": "Scarlett Johansson", "berg": "Bjarne Berg", "wang": "王小明", "momoko": "岡田 桃子", "lighthouse": "灯塔往事",
}  # fmt: skip


@pytest.fixture(scope="module")
def namesakes() -> KnowledgeGraph:
    lines = [f'<http://e/{short}> {LABEL} "{name}" .' for short, name in NAMESAKES.items()]
    return memory_graph([*lines, *(f"<http://e/{short}> <http://r/p> <http://e/end> ." for short in NAMESAKES)])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who designed C++?", [("C++", "cpp")]),
        ("Who performed Resume?", [("Resume", "resume")]),
        ("Who performed résumé?", [("résumé", "accents")]),
        ("Where does Bjarne Berg live now, and is it far?", [("Bjarne Berg", "berg")]),
        ("Where was It made, and where does Bjarne Berg live?", [("Bjarne Berg", "berg")]),
        ("Where was Now printed?", [("Now", "now")]),
        ("where was now printed?", []),
        ("Where was Johann Sebastian Bach born?", []),
        ("Did Johann Bach meet Bjarne Berg?", [("Bjarne Berg", "berg")]),
        ("Where was President Barack Hussein Obama II born?", [("Barack Hussein Obama", "obama")]),
        ("Who knew the Nobel Laureate Physicist Kubrick?", [("Kubrick", "kubrick")]),
        ("Which actor met Spielberg, Scorsese, Kubrick?", [("Scorsese", "scorsese"), ("Kubrick", "kubrick")]),
        ("谁是灯塔往事的导演王小明？", [("灯塔往事", "lighthouse"), ("王小明", "wang")]),
        ("岡田桃子はどこで生まれましたか？", [("岡田桃子", "momoko")]),
    ],
)
def test_names_as_they_are_spelled(namesakes, question, expected):
    assert used_words(namesakes, question) == expected
    assert all(len(mention.matches) == 1 for mention in find_mentions(namesakes, question))


CLASSES = f"""
<http://e/River> {LABEL} "River" . <http://e/Port> {LABEL} "Port" . <http://e/Long> {LABEL} "Old Sea Wall" .
<http://e/wall> {LABEL} "Sea Wall" . <http://e/wall> <http://r/built> <http://e/ann> . <http://e/Long> <http://r/p> <http://e/ann> .
<http://e/elbe> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/River> .
<http://e/elbe> {LABEL} "Elbe" . <http://e/elbe> <http://r/port> <http://e/ann> . <http://e/ann> {LABEL} "Ann" .
"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which river is long?", [("river", "River")]),
        ("Who sailed the Yellow River Canal?", []),  # a word for a class within a longer name
        ("Who built the Sea Wall?", [("Sea Wall", "wall")]),  # the whole name wins over longer names
        ("Who built the Old Sea Wall?", [("Old Sea Wall", "Long")]),
    ],
)
def test_words_of_classes_and_whole_names(question, expected):
    graph = memory_graph([line for line in CLASSES.replace(" . <", " .\n<").splitlines() if line], schema="rdfs")
    assert [(text.removeprefix("the "), name) for text, name in used_words(graph, question)] == expected


def test_plurals_are_whole_names():
    names = ("Brewery", "Church", "Movie")
    lines = [f'<http://e/{name}> {LABEL} "{name}" .' for name in names]
    graph = memory_graph([*lines, *(f"<http://e/{name}> <http://r/p> <http://e/end> ." for name in names)])
    assert used_words(graph, "breweries, churches, movies", whole_only=True) == [
        ("breweries", "Brewery"), ("churches", "Church"), ("movies", "Movie")
    ]  # fmt: skip


def test_unknown_names_are_those_in_capitals_that_no_mention_covers():
    question = "Did Johann Sebastian Bach meet Bjarne Berg in Leipzig?"
    assert unknown_names(question, ["Bjarne Berg"]) == ["Johann Sebastian Bach", "Leipzig"]
    assert unknown_names("Did Johann Sebastian Bach, Bjarne Berg meet?", ["Bjarne Berg"]) == ["Johann Sebastian Bach"]
    assert unknown_names("What Is The Capital City Of France in March?", []) == []
    assert unknown_names("who is johann?", []) == unknown_names("WHO IS JOHANN?", []) == []
