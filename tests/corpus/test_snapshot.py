"""Records that follow from additions: resolution of names, statements, hyperedges, and parts of a corpus."""

from __future__ import annotations

import random

from kgqa.corpus.items import (
    Addition,
    ChunkItem,
    DocumentItem,
    EntityItem,
    HyperedgeItem,
    LinkItem,
    Party,
    SameItem,
    StatementItem,
    normal_name,
)
from kgqa.corpus.snapshot import Identities, concerned, snapshot_of
from kgqa.model.terms import Entity, Literal

XSD = "http://www.w3.org/2001/XMLSchema#"
ADA, LOVELACE, BABBAGE = Party("Ada Lovelace", "person"), Party("Countess of Lovelace", "person"), Party("Babbage")


def statement(subject: Party, relation: str, value: Party | Literal, chunk: str = "c1", begin: int = 0) -> Addition:
    return Addition(StatementItem(subject, relation, value), "urn:d", f"urn:{chunk}", begin, begin + 10, 0.5, "m")


def same(one: Party, other: Party) -> Addition:
    return Addition(SameItem(*sorted((one.iri, other.iri))))


def test_equal_facts_are_one_statement_with_all_places():
    first = statement(ADA, "Worked with", BABBAGE)
    again = statement(Party("ADA  Lovelace", "Person"), "worked with", BABBAGE, "c2", 20)
    found = snapshot_of([first, again, again])
    (record,) = found.statements
    assert record.subject == ADA.iri and record.object == Entity(BABBAGE.iri) and record.relation_name == "worked with"
    assert [place.begin for place in record.places] == [0, 20]
    assert [(each.name, each.types, each.aliases) for each in found.entities] == [
        ("ADA Lovelace", ("person",), ()),
        ("Babbage", (), ()),
    ]
    assert [(each.iri, each.name) for each in found.relations] == [(record.relation, "worked with")]


def test_the_most_frequent_name_is_the_label_and_the_others_are_aliases():
    additions = [
        same(ADA, LOVELACE),
        statement(ADA, "born in", Literal("1815", f"{XSD}gYear")),
        statement(LOVELACE, "wrote", Party("Notes")),
        statement(LOVELACE, "lived in", Party("London"), begin=3),
    ]
    found = snapshot_of(additions)
    entity = next(each for each in found.entities if len(each.members) == 2)
    assert (entity.iri, entity.name, entity.aliases) == (
        min(ADA.iri, LOVELACE.iri),
        "Countess of Lovelace",
        ("Ada Lovelace",),
    )
    assert {each.subject for each in found.statements} == {entity.iri} and not entity.is_linked


def test_a_linked_entity_has_the_iri_of_the_other_graph():
    links = [LinkItem(ADA.iri, "http://kg/b"), LinkItem(LOVELACE.iri, "http://kg/a"), LinkItem(ADA.iri, "http://kg/a")]
    identities = Identities((), links)
    assert identities.canonical(ADA.iri) == identities.canonical(LOVELACE.iri) == "http://kg/a"
    found = snapshot_of([statement(LOVELACE, "knew", BABBAGE), *map(Addition, links)])
    (entity,) = [each for each in found.entities if each.is_linked]
    assert entity.iri == found.statements[0].subject == "http://kg/a"
    assert entity.members == tuple(sorted((ADA.iri, LOVELACE.iri)))


def test_literals_are_kept_as_a_query_returns_them():
    values = [Literal("007", f"{XSD}integer"), Literal("7", f"{XSD}integer"), Literal("x", "not an iri"), Literal("x")]
    found = snapshot_of([statement(ADA, "has", value, begin=number) for number, value in enumerate(values)])
    assert {each.object for each in found.statements} == {Literal("7", f"{XSD}integer"), Literal("x")}


def test_hyperedges_are_equal_if_segment_and_participants_are():
    film, role = Party("Parasite"), "Director"
    one = HyperedgeItem("Bong directed  Parasite.", ((role, ADA), ("", film)), 0.5)
    other = HyperedgeItem("bong directed parasite.", (("", film), ("director", ADA)), 0.75)
    third = HyperedgeItem("Bong directed Parasite.", (("", film),))
    found = snapshot_of([Addition(each) for each in (one, other, third)])
    assert len(found.hyperedges) == 2
    both = next(each for each in found.hyperedges if len(each.participants) == 2)
    assert both.completeness == 0.75 and both.participants == (("", film.iri), ("director", ADA.iri))
    assert [each.name for each in found.relations] == ["director"]


def test_normal_forms_are_final():
    for name in ("\"'Ada' \"", '""', "ﬁ  Ω", '" x"', "İ"):
        assert normal_name(normal_name(name)) == normal_name(name)


def random_additions(chance: random.Random) -> list[Addition]:
    parties = [
        Party(f"{'E' if chance.random() < 0.5 else 'e'}{number}", kind) for number in range(8) for kind in ("", "t")
    ]
    found = [same(*chance.sample(parties, 2)) for _ in range(4)]
    found += [Addition(LinkItem(chance.choice(parties).iri, f"http://kg/{number}")) for number in range(2)]
    for number in range(30):
        party, other = chance.sample(parties, 2)
        found.append(statement(party, f"r{chance.randrange(4)}", other, f"c{number % 5}", chance.randrange(9)))
    for _ in range(10):
        chosen = chance.sample(parties, 3)
        found.append(Addition(HyperedgeItem("segment", tuple((chance.choice(("", "role")), each) for each in chosen))))
        found.append(Addition(EntityItem(chance.choice(parties), f"text {chance.randrange(3)}"), "urn:d", "urn:c1"))
    found.append(Addition(DocumentItem("a.txt", "A", "text/plain", "1"), "urn:d"))
    found.append(Addition(ChunkItem("urn:d", 0, 3, "abc"), "urn:d", "urn:c1", 0, 3))
    return found


def test_order_and_repetition_do_not_matter():
    for seed in range(20):
        additions = random_additions(random.Random(seed))
        whole = snapshot_of(additions)
        random.Random(seed + 1).shuffle(additions)
        assert snapshot_of(additions + additions[:7]) == whole


def test_all_that_concerns_an_entity_gives_its_records():
    for seed in range(20):
        additions = random_additions(random.Random(seed))
        whole = snapshot_of(additions)
        same_items = [each.item for each in additions if isinstance(each.item, SameItem)]
        links = [each.item for each in additions if isinstance(each.item, LinkItem)]
        for entity in whole.entities:
            members = set(entity.members)
            part = snapshot_of(
                [each for each in additions if concerned(each.item) & members], same=same_items, links=links
            )
            assert part.limited_to({entity.iri}).entities == (entity,)
            assert [
                each for each in whole.statements if entity.iri in (each.subject, getattr(each.object, "iri", ""))
            ] == [each for each in part.statements if entity.iri in (each.subject, getattr(each.object, "iri", ""))]
            assert [each for each in whole.hyperedges if entity.iri in dict(map(reversed, each.participants))] == [
                each for each in part.hyperedges if entity.iri in dict(map(reversed, each.participants))
            ]
