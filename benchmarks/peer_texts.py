"""The queries that two public systems send for what kgqa asks in one: a second baseline beside the bare text.

ToG asks for all edges of an entity, each way, without DISTINCT and without LIMIT; PoG the same with DISTINCT. Both then
ask for the tails of each relation they chose, and for names entity by entity. Worded anew from what they send.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.graph.query.templates import render_term
from kgqa.model import Entity, Step

PEERS = ("tog", "pog")
NAME = Entity("http://rdf.freebase.com/ns/type.object.name")
SAME = Entity("http://www.w3.org/2002/07/owl#sameAs")


def relation_queries(peer: str, graph: str, entity: Entity) -> list[str]:
    """The relations of an entity, outward and inward."""
    distinct = "DISTINCT " if peer == "pog" else ""
    here = render_term(entity)
    patterns = (f"{here} ?relation ?x .", f"?x ?relation {here} .")
    return [f"SELECT {distinct}?relation FROM <{graph}> WHERE {{ {pattern} }}" for pattern in patterns]


def tail_queries(graph: str, entity: Entity, step: Step) -> list[str]:
    """What a step leads to."""
    here, relation = render_term(entity), render_term(Entity(step.relation))
    pattern = f"{here} {relation} ?tail ." if step.direction == "out" else f"?tail {relation} {here} ."
    return [f"SELECT ?tail FROM <{graph}> WHERE {{ {pattern} }}"]


def name_queries(graph: str, entities: Sequence[Entity]) -> list[str]:
    """The names of entities, one query each."""
    name, same = render_term(NAME), render_term(SAME)
    return [
        f"SELECT DISTINCT ?name FROM <{graph}> WHERE {{ {{ ?entity {name} ?name . FILTER(?entity = {render_term(entity)}) }} "
        f"UNION {{ ?entity {same} ?name . FILTER(?entity = {render_term(entity)}) }} }}"
        for entity in entities
    ]
