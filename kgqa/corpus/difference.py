"""What a range of edits changes in the graphs of a corpus, at the cost of what they touch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kgqa.corpus.items import ENTITY, Addition, ChunkItem, DocumentItem, HyperedgeItem
from kgqa.corpus.rdf.triples import texts_of
from kgqa.corpus.snapshot import Identities, Snapshot, concerned, snapshot_of
from kgqa.corpus.storage.database import Database
from kgqa.corpus.storage.rows import segment_iri


@dataclass(frozen=True)
class Difference:
    """The triples that appear and vanish, as texts (`kgqa.corpus.rdf.triples`), by view."""

    adds: dict[str, set[str]] = field(default_factory=dict)
    removes: dict[str, set[str]] = field(default_factory=dict)


def difference(database: Database, after: int, until: int) -> Difference:
    """Return what the edits with numbers above `after` up to `until` change in the graphs, except `edits`.

    The records of all entities that the edits touch are derived twice: from what was live before and after. A triple
    that an edit adds and a later one removes again is not in the difference.
    """
    touched = database.live.touched(after, until)
    if not touched:
        return Difference()
    entities = _touched_entities(database, touched, (after, until))
    iris = entities | set(_other_iris(touched))
    old, new = (_part(database, entities, iris, seq) for seq in (after, until))
    new = _with_names_in_use(database, old, new, until)
    before, now = texts_of(old), texts_of(new)
    return Difference(
        {view: texts - before[view] for view, texts in now.items() if texts - before[view]},
        {view: texts - now[view] for view, texts in before.items() if texts - now[view]},
    )


def entity_iris(additions: Iterable[Addition]) -> set[str]:
    """Return the IRIs of the names of entities that additions say something about."""
    return {iri for item in {each.item for each in additions} for iri in concerned(item) if iri.startswith(ENTITY)}


def _touched_entities(database: Database, touched: list[Addition], seqs: Iterable[int]) -> set[str]:
    """Return the IRIs of the touched entities, and all that mean the same in one of the states."""
    found = entity_iris(touched)
    while True:
        before = len(found)
        for seq in seqs:
            same, links = database.live.identities(found, seq)
            found.update(iri for item in same for iri in (item.left, item.right))
            found.update(link.entity for link in links)
        if len(found) == before:
            return found


def _other_iris(touched: list[Addition]) -> Iterable[str]:
    """Yield the IRIs of touched documents and chunks, and of hyperedges without participants."""
    for item in {each.item for each in touched}:
        if isinstance(item, DocumentItem):
            yield item.document
        elif isinstance(item, ChunkItem):
            yield item.chunk
        elif isinstance(item, HyperedgeItem) and not item.participants:
            yield segment_iri(item.segment)


def _part(database: Database, entities: set[str], iris: set[str], seq: int) -> Snapshot:
    """Return the records of some entities and of what names them, and of other IRIs, after the edit `seq`."""
    additions = database.live.concerning(iris, seq)
    named = entity_iris(additions) | entities
    same, links = database.live.identities(named, seq)
    identities = Identities(same, links)
    snapshot = snapshot_of(additions, same=same, links=links)
    return snapshot.limited_to({identities.canonical(iri) for iri in entities})


def _with_names_in_use(database: Database, old: Snapshot, new: Snapshot, seq: int) -> Snapshot:
    """Return the new records, and those of relations and types that nothing touched uses any more, but others do."""
    relations = {each.iri: each for each in old.relations}
    types = {each.iri: each for each in old.types}
    gone = relations.keys() | types.keys()
    gone -= {each.iri for each in new.relations} | {each.iri for each in new.types}
    used = database.live.named(sorted(gone), seq)
    return replace(
        new,
        relations=(*new.relations, *(relations[iri] for iri in sorted(used & relations.keys()))),
        types=(*new.types, *(types[iri] for iri in sorted(used & types.keys()))),
    )
