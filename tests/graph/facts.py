"""A small graph in the style of Freebase, and short constructors for its terms."""

from __future__ import annotations

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Expansion
from kgqa.model import Candidate, Entity, RelationPath, Step, Value

NS = "http://rdf.freebase.com/ns/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
XSD = "http://www.w3.org/2001/XMLSchema#"


def ns(*triples: str) -> list[str]:
    """Convert triples such as `m.1 people.person.gender m.2` to N-Triples; objects in quotes are literals."""
    lines = []
    for triple in triples:
        s, p, o = triple.split(" ", 2)
        o = o if o.startswith('"') else f"<{NS}{o}>" if "://" not in o else f"<{o}>"
        p = p if "://" in p else NS + p
        lines.append(f"<{NS}{s}> <{p}> {o} .")
    return lines


def ent(text: str) -> Entity:
    return Entity(text if "://" in text else NS + text)


def path(topic: str, *steps: str) -> RelationPath:
    """Build a path; `name` follows a relation, `^name` follows it backwards."""
    return RelationPath(ent(topic), tuple(step(s) for s in steps))


def step(text: str) -> Step:
    name = text.removeprefix("^")
    return Step(name if "://" in name else NS + name, "in" if text.startswith("^") else "out")


def ends(graph: KnowledgeGraph, which: RelationPath, **options) -> tuple[Value, ...]:
    return graph.paths.ends([Candidate(which)], **options)[0].values


def walks(graph: KnowledgeGraph, which: RelationPath, **options) -> list[tuple[Value, ...]]:
    return graph.paths.walks([Candidate(which)], **options)[0]


def expansion(graph: KnowledgeGraph, which: RelationPath) -> Expansion:
    return graph.paths.steps([Candidate(which)])[0]


def short(values) -> set[str]:
    return {v.iri.removeprefix(NS) if isinstance(v, Entity) else v.value for v in values}


def words(steps) -> set[str]:
    return {("^" if s.direction == "in" else "") + s.relation.removeprefix(NS) for s in steps}


FACTS = ns(
    # marriages by range and domain of their relations
    f"people.person.spouse_s {RDFS}range people.marriage",
    f"people.marriage.spouse {RDFS}domain people.marriage",
    'people.marriage freebase.type_hints.mediator "true"',
    "m.ann people.person.spouse_s m.wedding",
    "m.bob people.person.spouse_s m.wedding",
    "m.wedding people.marriage.spouse m.ann",
    "m.wedding people.marriage.spouse m.bob",
    'm.wedding people.marriage.from "1990"',
    # performances, marked as mediators by their type
    'film.performance freebase.type_hints.mediator "true"',
    "m.role type.object.type film.performance",
    "m.ann film.actor.film m.role",
    "m.role film.performance.film m.movie",
    # a mediator by its IRI pattern
    "m.ann award.award_winner.awards_won g.x17",
    "g.x17 award.award_honor.award m.prize",
    # a relation that leads to mediators and entities
    "m.ann base.mixed.about m.role",
    "m.ann base.mixed.about g.x17",
    "m.ann base.mixed.about m.movie",
    'm.ann base.mixed.about "just text"',
    # a mediator recognised only by the domain in the relation's name
    'education.education freebase.type_hints.mediator "true"',
    "m.ann people.person.education m.study",
    "m.study education.education.institution m.school",
    # plain facts
    "m.ann people.person.gender m.female",
    "m.bob people.person.gender m.male",
    'm.ann people.person.height "1.7"',
    # inverse relations
    f"people.person.children {OWL}inverseOf people.person.parents",
    "m.ann people.person.children m.cid",
    "m.cid people.person.parents m.ann",
    "m.bob people.person.parents m.ann",
    "m.ann people.person.children m.bob",
    # noise
    "m.ann type.object.type people.person",
    "m.ann common.topic.notable_types people.person",
    "m.ann freebase.valuenotation.is_reviewed people.person.gender",
    f"m.ann {RDF}type people.person",
    "people.person type.type.instance m.ann",
)
NAMES = ns(
    'm.ann type.object.name "Ann Lee"@en',
    'm.ann type.object.name "Anne Lee"@fr',
    'm.ann common.topic.alias "Annie"@en',
    'm.ann common.topic.alias "Queen \\"A\\""@en',
    'm.bob type.object.name "Bob"@en',
    'm.movie type.object.name "The Movie"@en',
    'm.prize type.object.name "Prize"@en',
    'm.role type.object.name "role of Ann"@en',
    'm.wedding type.object.name "wedding"@en',
    'g.x17 type.object.name "award of Ann"@en',
    'm.female type.object.name "Female"@en',
)
