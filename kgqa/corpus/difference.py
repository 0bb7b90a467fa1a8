"""What a range of edits changes in the graphs of a corpus, at the cost of what they touch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from kgqa.corpus.items import ENTITY, Addition, ChunkItem, DocumentItem, HyperedgeItem, Party, StatementItem
from kgqa.corpus.rdf.triples import texts_of
from kgqa.corpus.snapshot import Identities, Snapshot, concerned, entity_records, snapshot_of
from kgqa.corpus.storage.database import Database
from kgqa.corpus.storage.live_additions import TouchedAddition
from kgqa.corpus.storage.rows import fact_iri, segment_iri


@dataclass(frozen=True)
class Difference:
    """The triples that appear and vanish, as texts (`kgqa.corpus.rdf.triples`), by view."""

    adds: dict[str, set[str]] = field(default_factory=dict)
    removes: dict[str, set[str]] = field(default_factory=dict)


def difference(database: Database, after: int, until: int) -> Difference:
    """Return what the edits with numbers above `after` up to `until` change in the graphs, except `edits`.

    The records that the edits touch are derived twice, from what was live before and after: the touched documents,
    chunks, statements and hyperedges, all entities that they name, and all statements and hyperedges of an entity whose
    names are joined or separated. A triple that an edit adds and a later one removes is not in the difference.
    """
    touched = database.live.touched(after, until)
    if not touched:
        return Difference()
    names = _touched_names(database, touched, (after, until))
    old, new = (Identities(*database.live.identities(names, seq)) for seq in (after, until))
    moved = {name for name in names if _meaning(old, name) != _meaning(new, name)}
    mentions = database.live.concerning(names, after)
    others = database.live.concerning(moved | set(_keys(touched, moved, old)), after)
    others.update((each.number, each.addition) for each in touched if each.before)
    before, parties_before = _records(database, old, names, mentions.values(), others.values(), after)
    now, parties_now = _records(database, new, names, _after(mentions, touched), _after(others, touched), until)
    was = texts_of(before, parties=parties_before)
    becomes = texts_of(_with_names_in_use(database, before, now, until), parties=parties_now)
    return Difference(
        {view: texts - was[view] for view, texts in becomes.items() if texts - was[view]},
        {view: texts - becomes[view] for view, texts in was.items() if texts - becomes[view]},
    )


def with_changed_texts(change: Difference, before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> Difference:
    """Return a difference to which other triples are added, given as texts by view, before and after."""
    adds = {view: set(texts) for view, texts in change.adds.items()}
    removes = {view: set(texts) for view, texts in change.removes.items()}
    for view in before.keys() | after.keys():
        old, new = before.get(view, set()), after.get(view, set())
        for found, texts in ((adds, new - old), (removes, old - new)):
            if texts:
                found.setdefault(view, set()).update(texts)
    return Difference(adds, removes)


def _touched_names(database: Database, touched: Iterable[TouchedAddition], seqs: Collection[int]) -> set[str]:
    """Return the IRIs of the names of touched entities, and all that mean the same before or after."""
    found = entity_iris(each.addition for each in touched)
    while True:
        size = len(found)
        for seq in seqs:
            same, links = database.live.identities(found, seq)
            found.update(iri for item in same for iri in (item.left, item.right))
            found.update(link.entity for link in links)
        if len(found) == size:
            return found


def entity_iris(additions: Iterable[Addition]) -> set[str]:
    """Return the IRIs of the names of entities that additions contain."""
    return {iri for item in {each.item for each in additions} for iri in concerned(item) if iri.startswith(ENTITY)}


def _meaning(identities: Identities, name: str) -> tuple[str, tuple[str, ...]]:
    return identities.canonical(name), identities.members(name)


def _keys(touched: Iterable[TouchedAddition], moved: Collection[str], identities: Identities) -> Iterable[str]:
    """Yield what finds all additions of the touched records, except those that a name in `moved` finds."""
    for item in {each.addition.item for each in touched}:
        if isinstance(item, DocumentItem):
            yield item.document
        elif isinstance(item, ChunkItem):
            yield item.chunk
        elif isinstance(item, HyperedgeItem):
            yield segment_iri(item.segment)
        elif isinstance(item, StatementItem) and item.subject.iri not in moved:
            subjects = identities.members(item.subject.iri)
            if not isinstance(item.object, Party):
                yield from (fact_iri(subject, item.relation, item.object) for subject in subjects)
            elif item.object.iri not in moved:
                objects = identities.members(item.object.iri)
                yield from (fact_iri(one, item.relation, other) for one, other in product(subjects, objects))


def _after(before: Mapping[int, Addition], touched: Iterable[TouchedAddition]) -> Collection[Addition]:
    """Return what is live after the edits, if `before` was live before them."""
    found = dict(before)
    for each in touched:
        if each.after:
            found[each.number] = each.addition
        else:
            found.pop(each.number, None)
    return found.values()


def _records(
    database: Database,
    identities: Identities,
    names: Iterable[str],
    mentions: Collection[Addition],
    additions: Collection[Addition],
    seq: int,
) -> tuple[Snapshot, set[str]]:
    """Return the records of one state, and which of the touched entities take part in a hyperedge.

    Args:
        identities: what the names mean.
        names: the names of the touched entities.
        mentions: all additions with these names.
        additions: the additions of the other records.
        seq: the number of the edit.
    """
    same, links = database.live.identities(entity_iris(additions), seq)
    snapshot = snapshot_of(additions, same=same, links=links)
    entities = {identities.canonical(name) for name in names}
    hyperedges = {each.item for each in mentions if isinstance(each.item, HyperedgeItem)}
    parties = {identities.canonical(party.iri) for item in hyperedges for _, party in item.participants}
    return replace(snapshot, entities=entity_records(mentions, identities, entities)), parties & entities


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
