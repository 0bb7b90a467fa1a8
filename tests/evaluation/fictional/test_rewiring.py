"""Rewiring of random small graphs: what it keeps and what it changes."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.evaluation.fictional.facts import FictionError, read_facts, write_facts
from kgqa.evaluation.fictional.fictionalise import rewire
from kgqa.evaluation.fictional.units import inverse_pairs, mediator_nodes, split_into_units
from kgqa.graph.graph import KnowledgeGraph
from kgqa.schema import bundled_schema
from tests.evaluation.fictional.graphs import (
    INVERSE,
    MARK,
    NAME,
    TYPE,
    degrees,
    line,
    mirrored,
    of_relation,
    parts,
    random_graphs,
)
from tests.graph.memory_store import MemoryStore

NS = "http://rdf.freebase.com/ns/"
WIKIDATA = "http://www.wikidata.org/"


@contextmanager
def open_lines(lines, schema="freebase"):
    with KnowledgeGraph(MemoryStore(lines), bundled_schema(schema)) as graph:
        yield graph


def rewired(lines, seed=0, schema="freebase"):
    with open_lines(lines, schema) as graph:
        facts = read_facts(graph)
        world = rewire(facts, graph, seed=seed)
        return list(world.units.lines()), world.changed()


@settings(max_examples=10)
@given(random_graphs(), st.integers(0, 3))
def test_rewiring_keeps_degrees_names_and_inverses(before, seed):
    after, changed = rewired(before, seed)
    assert degrees(after) == degrees(before), "every node keeps its degree under every relation"
    assert len(after) == len(set(after)) == len(set(before))
    kept = (NAME, TYPE, MARK)
    assert of_relation(after, *kept) == of_relation(before, *kept)
    assert [t for t in parts(after) if INVERSE in t[1]] == [t for t in parts(before) if INVERSE in t[1]]
    assert changed == len(set(after) - set(before))
    for relation, inverse in (
        ("film.film.director", "film.director.film"),
        ("film.film.starring", "film.performance.film"),
        ("film.performance.actor", "film.actor.film"),
        ("people.marriage.spouse", "people.person.marriage"),
        ("people.person.sibling", "people.person.sibling"),
    ):
        assert len(mirrored(after, relation, inverse)) == len(mirrored(before, relation, inverse))


@settings(max_examples=10)
@given(random_graphs(), st.integers(0, 3))
def test_at_most_one_side_of_a_mediator_moves(before, seed):
    after, _ = rewired(before, seed)
    ports = ("film.performance.film", "film.performance.actor", "film.performance.character")
    ports += ("people.marriage.spouse", "people.marriage.type")
    sides = [of_relation(lines, *ports) for lines in (before, after)]
    for mediator in {s for s, _, _ in sides[0]}:
        was, now = ({side for side in of if side[0] == mediator} for of in sides)
        assert len(was) == len(now) and len(was - now) <= 1, "one side moves, what it says of the others stays"


def marriages(count):
    lines = [line("people.marriage", MARK, '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')]
    lines.append(line("people.marriage.spouse", INVERSE, "people.person.marriage"))
    for n in range(count):
        lines += [line(f"m.w{n}", TYPE, "people.marriage"), line(f"m.w{n}", "people.marriage.type", "m.church")]
        for spouse in (f"m.a{n}", f"m.b{n}"):
            lines += [line(f"m.w{n}", "people.marriage.spouse", spouse)]
            lines += [line(spouse, "people.person.marriage", f"m.w{n}")]
    return lines


def test_one_of_two_spouses_moves():
    before = marriages(12)
    after, changed = rewired(before)
    was, now = (of_relation(lines, "people.marriage.spouse") for lines in (before, after))
    for n in range(12):
        couple = {o for s, _, o in now if s.endswith(f"m.w{n}>")}
        assert len(couple & {o for s, _, o in was if s.endswith(f"m.w{n}>")}) == 1 and len(couple) == 2
    assert changed == 24 and len(mirrored(after, "people.marriage.spouse", "people.person.marriage")) == 24


@settings(max_examples=10)
@given(random_graphs())
def test_rewiring_does_not_depend_on_the_order_of_lines(before):
    assert rewired(before, 5) == rewired(before[::-1], 5)


def test_other_seeds_give_other_graphs():
    lines = [line(f"m.{n}", "people.person.place_of_birth", f"m.t{n}") for n in range(30)]
    assert rewired(lines, 1)[0] != rewired(lines, 2)[0]


def test_every_fact_changes_if_all_can():
    lines = [line(f"m.{n}", "people.person.place_of_birth", f"m.t{n % 10}") for n in range(60)]
    after, changed = rewired(lines)
    assert changed == 60 and not set(after) & set(lines)


def test_facts_without_alternative_stay():
    lines = [line(f"m.{n}", "people.person.gender", "m.one") for n in range(5)]
    assert rewired(lines) == (sorted(lines), 0)


def test_nodes_are_exchanged_within_their_type():
    lines = []
    for n in range(12):
        lines += [line(f"m.x{n}", TYPE, "location.citytown" if n % 2 else "book.book")]
        lines += [line(f"m.a{n}", "misc.thing.about", f"m.x{n}")]
    after, changed = rewired(lines)
    kinds = {s: o for s, _, o in of_relation(after, TYPE)}
    about = dict.fromkeys(range(12))
    for s, _, o in of_relation(after, "misc.thing.about"):
        about[int(s.rsplit("a", 1)[1][:-1])] = kinds[o]
    assert changed == 12
    assert all(kind.endswith("citytown>" if n % 2 else "book>") for n, kind in about.items())


def test_only_node_of_a_type_stays():
    lines = [line(f"m.a{n}", "misc.thing.about", f"m.x{n}") for n in range(8)]
    lines += [line(f"m.x{n}", TYPE, "book.book" if n else "location.citytown") for n in range(8)]
    after, changed = rewired(lines)
    assert changed == 7 and lines[0] in after


def test_literals_are_exchanged_within_their_datatype():
    dates = [line(f"m.{n}", "people.person.date_of_birth", f'"{1900 + n}"') for n in range(8)]
    days = [
        line(f"m.d{n}", "people.person.date_of_birth", f'"19{10 + n}-01-02"^^<http://www.w3.org/2001/XMLSchema#date>')
        for n in range(8)
    ]
    after, changed = rewired(dates + days)
    assert changed == 16
    kinds = Counter("#date" in o for s, _, o in parts(after) if "m.d" in s)
    assert kinds == {True: 8}


def test_inverses_are_detected_without_a_schema():
    lines = [line(f"m.{n}", "a.b.owns", f"m.t{n}") for n in range(9)]
    lines += [line(f"m.t{n}", "a.c.owned_by", f"m.{n}") for n in range(9)]
    lines += [line("m.1", "a.b.likes", "m.2"), line("m.2", "a.b.likes", "m.1"), line("m.3", "a.b.sees", "m.9")]
    with open_lines(lines) as graph:
        facts = read_facts(graph)
        names = facts.relations
        pairs = {
            (names[a].rsplit(".", 1)[1], names[b].rsplit(".", 1)[1])
            for a, b in inverse_pairs(facts, {}, [True] * len(names)).items()
        }
    assert pairs == {("owns", "owned_by"), ("owned_by", "owns"), ("likes", "likes")}
    after, _ = rewired(lines)
    assert len(mirrored(after, "a.b.owns", "a.c.owned_by")) == 9
    assert len(mirrored(after, "a.b.likes", "a.b.likes")) == 2


def test_direct_claim_moves_with_its_statement():
    lines = []
    for n in range(6):
        entity, value, statement = (f"<{WIKIDATA}entity/{kind}{n}>" for kind in ("Q1", "Q2", "statement/S"))
        lines += [
            f"{entity} <{WIKIDATA}prop/direct/P36> {value} .\n",
            f"{entity} <{WIKIDATA}prop/P36> {statement} .\n",
            f"{statement} <{WIKIDATA}prop/statement/P36> {value} .\n",
            f'{statement} <{WIKIDATA}prop/qualifier/P580> "19{10 + n}" .\n',
        ]
    after, changed = rewired(lines, schema="wikidata")
    triples = parts(after)
    assert changed == 12 and direct_claims(triples) == claims_by_statements(triples)
    assert [t for t in triples if "qualifier" in t[1]] == sorted(t for t in parts(lines) if "qualifier" in t[1])


def direct_claims(triples):
    return {(s, r.rsplit("/", 1)[1], o) for s, r, o in triples if "prop/direct/" in r}


def claims_by_statements(triples):
    """Return the claims that statements stand for."""
    owner_of = {o: s for s, r, o in triples if "/prop/P" in r}
    return {(owner_of[s], r.rsplit("/", 1)[1], o) for s, r, o in triples if "prop/statement/" in r}


def statement(number, owner, value, property="P39"):
    entity, node, other = (f"<{WIKIDATA}entity/{item}>" for item in (owner, f"statement/S{property}{number}", value))
    return [
        f"{entity} <{WIKIDATA}prop/direct/{property}> {other} .\n",
        f"{entity} <{WIKIDATA}prop/{property}> {node} .\n",
        f"{node} <{WIKIDATA}prop/statement/{property}> {other} .\n",
    ]


def test_statements_of_one_claim_move_together():
    """Every owner held one post twice and another once; there are more posts than owners."""
    lines = set()
    for n in range(8):
        for time, post in enumerate((f"Q2{n}", f"Q2{n}", f"Q3{n}")):
            lines |= set(statement(f"{n}-{time}", f"Q1{n}", post))
    after, changed = rewired(sorted(lines), schema="wikidata")
    triples = parts(after)
    assert changed == 8 * (3 + 2) and len(after) == len(set(after)) == len(lines)
    assert direct_claims(triples) == claims_by_statements(triples)


def test_statement_of_a_fixed_claim_stays():
    lines = {item for n in range(8) for item in statement(n, f"Q1{n}", f"Q2{n % 2}", "P31")}
    assert rewired(sorted(lines), schema="wikidata") == (sorted(lines, key=lambda item: (item.split(" ")[1], item)), 0)


def test_mediators_come_from_the_schema():
    lines = [
        line("film.performance", MARK, '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
        line("m.c", TYPE, "film.performance"),
        line("m.f", "film.film.starring", "m.c"),
        line("m.f", "film.film.other", "g.x1"),
        line("m.f", "film.film.director", "m.p"),
    ]
    with open_lines(lines) as graph:
        facts = read_facts(graph)
        assert {facts.terms[n] for n in mediator_nodes(facts, graph)} == {f"<{NS}m.c>", f"<{NS}g.x1>"}
        assert sum(len(group.holes) for group in split_into_units(facts, graph).groups) == 3


def test_empty_graph_is_an_error():
    with open_lines((), "rdfs") as graph, pytest.raises(FictionError, match="load_into_"):
        read_facts(graph)


def test_equal_lines_give_equal_files(tmp_path):
    for name in ("a.nt.gz", "b.nt.gz"):
        write_facts((line("m.1", "a.b.c", f"m.{n}") for n in range(20_001)), tmp_path / name)
    assert (tmp_path / "a.nt.gz").read_bytes() == (tmp_path / "b.nt.gz").read_bytes()
