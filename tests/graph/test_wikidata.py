"""Wikidata graphs: statements, qualifiers, languages, property names, noise and real questions."""

from __future__ import annotations

from itertools import product, starmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import bundled_schema, language_list
from tests.conftest import SOAK
from tests.graph import facts
from tests.graph.facts import expansion

SCHEMA = bundled_schema("wikidata")


def triples(*lines: str) -> list[str]:
    """Convert triples such as `wd:Q1 wdt:P36 wd:Q2` to N-Triples; text in quotes is a literal."""
    found = []
    for line in lines:
        subject, predicate, value = line.split(" ", 2)
        value = value if value.startswith('"') else f"<{SCHEMA.iri(value)}>"
        found.append(f"<{SCHEMA.iri(subject)}> <{SCHEMA.iri(predicate)}> {value} .")
    return found


def wd(name: str) -> Entity:
    return Entity(SCHEMA.iri(name))


def step(text: str) -> Step:
    return Step(SCHEMA.iri(text.removeprefix("^")), "in" if text.startswith("^") else "out")


def path(topic: str, *steps: str) -> RelationPath:
    return RelationPath(wd(topic), tuple(map(step, steps)))


def next_steps(graph: KnowledgeGraph, topic: str, *steps: str) -> set[str]:
    found = expansion(graph, path(topic, *steps)).steps
    return {("^" if s.direction == "in" else "") + SCHEMA.short_id(s.relation) for s in found}


def ends(graph: KnowledgeGraph, topic: str, *steps: str) -> set[str]:
    values = facts.ends(graph, path(topic, *steps))
    return {SCHEMA.short_id(v.iri) if isinstance(v, Entity) else v.value for v in values}


STATEMENTS = triples(
    # Japan: the current capital, as claim and statement
    "wd:Q17 wdt:P36 wd:Q1490",
    "wd:Q17 p:P36 wds:tokyo", "wds:tokyo ps:P36 wd:Q1490", "wds:tokyo wikibase:rank wikibase:NormalRank",
    "wds:tokyo pq:P580 \"1868\"", "wds:tokyo pq:P1365 wd:Q34600", "wds:tokyo prov:wasDerivedFrom wds:reference",
    "wds:tokyo http://www.wikidata.org/prop/statement/value/P36 wds:node",
    # Bonn was the capital once: a statement that the claim does not repeat
    "wd:Q183 wdt:P36 wd:Q64",
    "wd:Q183 p:P36 wds:berlin", "wds:berlin ps:P36 wd:Q64", "wds:berlin wikibase:rank wikibase:PreferredRank",
    "wd:Q183 p:P36 wds:bonn", "wds:bonn ps:P36 wd:Q586", "wds:bonn wikibase:rank wikibase:NormalRank",
    # a deprecated statement
    "wd:Q145 wdt:P36 wd:Q84",
    "wd:Q145 p:P36 wds:london", "wds:london ps:P36 wd:Q84",
    "wd:Q145 p:P36 wds:munich", "wds:munich ps:P36 wd:Q1726", "wds:munich wikibase:rank wikibase:DeprecatedRank",
    # no claim in the whole graph, or none of this entity
    "wd:Q17 p:P39 wds:office", "wds:office ps:P39 wd:Q30185",
    "wd:Q155 p:P36 wds:brasilia", "wds:brasilia ps:P36 wd:Q2844",
    # a statement whose value stands under another property
    "wd:Q142 wdt:P36 wd:Q90", "wd:Q142 p:P36 wds:odd", "wds:odd ps:P1376 wd:Q90", "wd:Q142 wdt:P1376 wd:Q90",
    # a hop before
    "wd:Q1 wdt:P17 wd:Q17", "wd:Q2 wdt:P17 wd:Q183", "wd:Q1490 wdt:P190 wd:Q64",
)  # fmt: skip


@pytest.fixture(scope="module")
def make(graphs):
    """Return `make(lines, **options) -> KnowledgeGraph` with the Wikidata schema, in either store."""
    return lambda lines, **options: graphs.make(lines, SCHEMA, **options)


class TestStatements:
    @pytest.fixture(scope="class")
    @staticmethod
    def graph(make):
        return make(STATEMENTS)

    @pytest.mark.parametrize(
        ("walk", "steps"),
        [
            ("Q17 p:P36", "pq:P580 pq:P1365"),  # the pair equals the claim
            ("Q183 p:P36", "ps:P36"),  # the pair has more values
            ("Q586 ^ps:P36", "^p:P36"),
            ("Q64 ^ps:P36", ""),  # seen from the value, the claim replaces the pair
            ("Q145 p:P36", ""),  # a deprecated statement
            ("Q1726 ^ps:P36", ""),
            ("Q17 p:P39", "ps:P39"),  # no claim in the graph
            ("Q155 p:P36", "ps:P36"),  # no claim of this entity
            ("Q2844 ^ps:P36", "^p:P36"),
            ("Q1 wdt:P17 p:P36", "pq:P580 pq:P1365"),  # a hop before
            ("Q2 wdt:P17 p:P36", "ps:P36"),
            ("Q1490 wdt:P190 ^ps:P36", ""),
            ("Q142 p:P36", "ps:P1376"),  # a value under another property
            ("Q90 ^ps:P1376", "^p:P36"),
        ],
    )
    def test_statement_pair_is_a_candidate_where_no_claim_says_the_same(self, graph, walk, steps):
        assert next_steps(graph, *walk.split()) == set(steps.split())

    def test_both_ways_from_an_item(self, graph):
        assert {"wdt:P36", "p:P36"} <= next_steps(graph, "Q17")
        assert {"^p:P36", "ps:P36"} <= next_steps(graph, "Q34600", "^pq:P1365")  # who replaced Kyoto
        assert ends(graph, "Q183", "p:P36", "ps:P36") == {"Q64", "Q586"}
        assert ends(graph, "Q586", "^ps:P36", "^p:P36") == {"Q183"}

        assert ends(graph, "Q17", "p:P36", "pq:P580") == {"1868"}
        assert ends(graph, "Q34600", "^pq:P1365", "ps:P36") == {"Q1490"}
        assert graph.paths.ends_on_mediators(path("Q34600", "^pq:P1365"))

    def test_statement_is_not_left_by_its_incoming_relation(self, graph, graphs):
        assert "^p:P36" not in next_steps(graph, "Q1", "wdt:P17", "p:P36")
        free = graphs.reopen(graph, walks="free")
        assert "^p:P36" in next_steps(free, "Q1", "wdt:P17", "p:P36")

    def test_relations_found_on_demand_are_mediators(self, graph):
        for name, leads in (("p:P7777", True), ("^pq:P7777", True), ("ps:P7777", False), ("wdt:P7777", False)):
            assert graph.tables.leads_to_mediator(step(name)) == leads


ITEMS = (1, 2, 3)
PROPERTIES = ("P1", "P2")
RANKS = ("Normal", "Preferred", "Deprecated", None)
statements = st.lists(
    st.tuples(*map(st.sampled_from, (ITEMS, PROPERTIES, ITEMS, RANKS, (True, True, False)))), min_size=1, max_size=6
)


class RandomStatements:
    """Random statements about three items, with their claims and ranks."""

    def __init__(self, number: int, given_statements) -> None:
        topic, items = f"Q{number}9", {item: f"Q{number}{item}" for item in ITEMS}
        self.lines = [f"wd:{topic} wdt:P9 wd:{items[item]}" for item in (1, 2)]
        self.starts = {(items[1],): {items[1]}, (topic, "wdt:P9"): {items[1], items[2]}}
        claims, believed = set(), set()
        for count, (subject, name, value, rank, claimed) in enumerate(given_statements):
            subject, value, node = items[subject], items[value], f"wds:{number}-{count}"
            self.lines += [f"wd:{subject} p:{name} {node}", f"{node} ps:{name} wd:{value}"]
            self.lines += [f"{node} wikibase:rank wikibase:{rank}Rank"] if rank else []
            if claimed:
                self.lines.append(f"wd:{subject} wdt:{name} wd:{value}")
                claims.add((subject, name, value))
            if rank != "Deprecated":
                believed.add((subject, name, value))
        self.more = believed - claims


@pytest.mark.soak
@settings(max_examples=40 if SOAK else 3)
@given(st.lists(statements, min_size=8, max_size=15) if SOAK else st.lists(statements, min_size=3, max_size=5))
def test_pair_is_dropped_exactly_if_claims_cover_it(make, given_worlds):
    worlds = list(starmap(RandomStatements, enumerate(given_worlds, start=1)))
    graph = make(triples(*(line for world in worlds for line in world.lines)))
    for world in worlds:
        for (start, here), name in product(world.starts.items(), PROPERTIES):
            for place, pair in ((0, (f"p:{name}", f"ps:{name}")), (2, (f"^ps:{name}", f"^p:{name}"))):
                # steps that only lead back to the topic are excluded
                more = {s for s in world.more if s[1] == name and s[place] in here and s[2 - place] != start[0]}
                loops = {s for s in world.more if s[1] == name and s[0] == s[2] == start[0]}
                if more or not loops:
                    assert (pair[1] in next_steps(graph, *start, pair[0])) == bool(more)


NAMES = triples(
    "wd:P36 rdfs:label \"capital\"@en", "wd:P36 rdfs:label \"Hauptstadt\"@de", "wd:P36 rdfs:label \"capitale\"@fr",
    "wd:P580 rdfs:label \"start time\"@en", "wd:P39 rdfs:label \"position held\"@mul",
    "wd:Q17 rdfs:label \"Japan\"@en", "wd:Q17 rdfs:label \"Japon\"@fr", "wd:Q17 rdfs:label \"日本\"@ja",
    "wd:Q1490 rdfs:label \"Tokio\"@de-CH", "wd:Q1490 rdfs:label \"Tokyo\"@en",
    "wd:Q34600 rdfs:label \"京都\"@ja", "wd:Q34600 rdfs:label \"Kyôto\"@fr",
    "wd:Q64 rdfs:label \"Berlin\"@mul", "wd:Q64 rdfs:label \"Берлин\"@ru",
    "wd:Q17 skos:altLabel \"Land of the Rising Sun\"@en", "wd:Q17 skos:altLabel \"Nippon\"@en", "wd:Q17 skos:altLabel \"Nihon\"@mul",
    "wd:Q17 skos:altLabel \"Nippon\"@de", "wd:Q17 skos:altLabel \"Empire du Japon\"@fr", "wd:Q1490 skos:altLabel \"江戸\"@ja",
)  # fmt: skip


class TestNames:
    @pytest.fixture(scope="class")
    @staticmethod
    def graph(make):
        return make(STATEMENTS + NAMES)

    @pytest.mark.parametrize(
        ("languages", "names"),
        [
            (None, {"Q17": "Japan", "Q1490": "Tokyo", "Q34600": "Kyôto", "Q64": "Berlin"}),
            ("de", {"Q17": "Japan", "Q1490": "Tokio", "Q34600": "Kyôto", "Q64": "Berlin"}),
            ("de-CH,fr", {"Q17": "Japon", "Q1490": "Tokio", "Q34600": "Kyôto", "Q64": "Berlin"}),
            ("JA , ru", {"Q17": "日本", "Q1490": "Tokyo", "Q34600": "京都", "Q64": "Берлин"}),
        ],
    )
    def test_labels_in_the_requested_languages(self, graph, graphs, languages, names):
        localised = graphs.reopen(graph, languages=language_list(languages))
        found = localised.labels([*map(wd, names), wd("Q586")])
        assert {SCHEMA.short_id(entity.iri): name for entity, name in found.items()} == names
        assert localised.named([wd("Q586")])[0].name == "Q586"


def test_marked_identifiers_are_noise(make):
    graph = make(
        triples(
            "wd:P214 wikibase:propertyType wikibase:ExternalId", "wd:P36 wikibase:propertyType wikibase:WikibaseItem",
            "wd:Q17 wdt:P36 wd:Q1490", "wd:Q17 wdt:P214 \"12345\"", "wd:Q17 p:P214 wds:viaf", "wds:viaf ps:P214 \"12345\"",
            "wd:Q17 http://www.wikidata.org/prop/direct-normalized/P214 http://viaf.org/viaf/12345",
            "http://en.wikipedia.org/wiki/Japan schema:about wd:Q17", "wd:Q17 wikibase:sitelinks \"300\"",
            *(f"wd:Q17 wdt:P{number} \"x\"" for number in range(1000, 1050)),
            *(f"wd:P{number} wikibase:propertyType wikibase:ExternalId" for number in range(1000, 1050)),
        )
    )  # fmt: skip
    assert next_steps(graph, "Q17") == {"wdt:P36"}
    assert graph.tables.is_noise(SCHEMA.iri("pq:P214")) and not graph.tables.is_noise(SCHEMA.iri("wdt:P36"))
    assert graph.paths.neighbours(wd("Q17"), limit=3) == [(step("wdt:P36"), wd("Q1490"))]
