"""What is said inside communities: their entities, facts and relations, the most connected first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.corpus.records import CommunityRecord, CorpusReader, EntityRecord
from kgqa.model.terms import Entity

MAX_ENTITIES = 12
MAX_FACTS = 30
MAX_CHARS = 1500
"""Most entities, facts and characters in a summary."""
_MAX_RELATIONS = 5


@dataclass(slots=True)
class Content:
    """What is said inside a community: entities and facts, the most connected first; relations with their numbers."""

    entities: list[EntityRecord]
    facts: list[str]
    relations: Counter[str]
    count: int = 0

    def text(self) -> str:
        """Return names, relations and facts as sentences, at most `MAX_CHARS` characters."""
        names = ", ".join(each.name for each in self.entities[:MAX_ENTITIES])
        more = len(self.entities) - MAX_ENTITIES
        parts = [f"{names} and {more} more" if more > 0 else names]
        if common := sorted(self.relations, key=lambda name: (-self.relations[name], name))[:_MAX_RELATIONS]:
            parts.append(f"Relations: {', '.join(common)}")
        text = ". ".join(parts) + "."
        for fact in self.facts[:MAX_FACTS]:
            if len(text) + len(fact) + 2 <= MAX_CHARS:
                text += f" {fact.rstrip('.')}."
        return text[:MAX_CHARS]


def contents_of(communities: Iterable[CommunityRecord], reader: CorpusReader) -> dict[str, Content]:
    """Collect the entities and facts of each community."""
    of_entity: dict[str, list[str]] = defaultdict(list)
    contents = {}
    for community in communities:
        contents[community.iri] = Content([], [], Counter())
        for member in community.members:
            of_entity[member].append(community.iri)
    degrees: Counter[str] = Counter()
    facts: list[tuple[tuple[str, ...], str, str]] = []
    for statement in reader.statements():
        ends = [statement.subject]
        if isinstance(statement.object, Entity):
            ends.append(statement.object.iri)
        facts.append((tuple(dict.fromkeys(ends)), statement.words, statement.relation_name))
        degrees.update(ends)
    for hyperedge in reader.hyperedges():
        ends = list(dict.fromkeys(entity for _, entity in hyperedge.participants))
        facts.append((tuple(ends), " ".join(hyperedge.segment.split()), ""))
        degrees.update(ends)
    for entity in reader.entities():
        for iri in of_entity.get(entity.iri, ()):
            contents[iri].entities.append(entity)
    for content in contents.values():
        content.entities.sort(key=lambda entity: (-degrees[entity.iri], entity.iri))
    ranked = sorted(facts, key=lambda fact: (-min((degrees[end] for end in fact[0]), default=0), fact[1]))
    for inside, words, relation in ranked:
        for iri in of_entity.get(inside[0], ()) if inside else ():
            if all(iri in of_entity.get(end, ()) for end in inside[1:]):
                contents[iri].count += 1
                if relation:
                    contents[iri].relations[relation] += 1
                if len(contents[iri].facts) < MAX_FACTS:
                    contents[iri].facts.append(words)
    return contents
