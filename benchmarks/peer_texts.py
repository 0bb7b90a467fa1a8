"""The SPARQL queries of ToG and PoG for the data that kgqa requests in one query, as a second baseline.

ToG requests all edges of an entity in each direction, without DISTINCT and LIMIT; PoG uses DISTINCT. Both then request
the tails of each chosen relation, and the name of each entity in a separate query. The queries reproduce observed
requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.graph.query.text import render_term
from kgqa.model import Entity, Step

PEERS = ("tog", "pog")
NAME = Entity("http://rdf.freebase.com/ns/type.object.name")
SAME = Entity("http://www.w3.org/2002/07/owl#sameAs")


def relation_queries(peer: str, graph: str, entity: Entity) -> list[str]:
    """Return the queries for the relations of an entity, outgoing and incoming."""
    distinct = "DISTINCT " if peer == "pog" else ""
    here = render_term(entity)
    patterns = (f"{here} ?relation ?x .", f"?x ?relation {here} .")
    return [f"SELECT {distinct}?relation FROM <{graph}> WHERE {{ {pattern} }}" for pattern in patterns]


def tail_queries(graph: str, entity: Entity, step: Step) -> list[str]:
    """Return the query for the nodes at the end of a step, in a list."""
    here, relation = render_term(entity), render_term(Entity(step.relation))
    pattern = f"{here} {relation} ?tail ." if step.direction == "out" else f"?tail {relation} {here} ."
    return [f"SELECT ?tail FROM <{graph}> WHERE {{ {pattern} }}"]


def name_queries(graph: str, entities: Sequence[Entity]) -> list[str]:
    """Return one query per entity for its name."""
    name, same = render_term(NAME), render_term(SAME)
    return [
        f"SELECT DISTINCT ?name FROM <{graph}> WHERE {{ {{ ?entity {name} ?name . FILTER(?entity = {render_term(entity)}) }} "
        f"UNION {{ ?entity {same} ?name . FILTER(?entity = {render_term(entity)}) }} }}"
        for entity in entities
    ]
