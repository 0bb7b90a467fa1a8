"""Who says what a live hyperedge says: the tags of its items in the log, and how far each is trusted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.corpus.edit_log import Removal
from kgqa.corpus.editing.trust import CORPUS, lowest
from kgqa.corpus.items import Addition, HyperedgeItem, item_key, normal_name
from kgqa.corpus.records import HyperedgeRecord
from kgqa.corpus.snapshot import Identities, hyperedge_iri, snapshot_of
from kgqa.corpus.storage.database import Database
from kgqa.corpus.storage.rows import segment_iri


@dataclass(frozen=True, slots=True)
class HyperedgeTag:
    """One who says what a hyperedge says.

    Attributes:
        edit: The id of the edit that added it.
        document: The IRI of the document that says so; "" if the edit rests on something else.
        trust: How far it is trusted.
        segment: The normal form of the text.
        removal: What removes it. What a document says is removed for ever, also when the document is read again.
    """

    edit: str
    document: str
    trust: str
    segment: str
    removal: Removal


def hyperedge_of(addition: Addition, database: Database, seq: int) -> HyperedgeRecord:
    """Return the hyperedge that an addition says, with the entities that its names mean after edit `seq`."""
    assert isinstance(addition.item, HyperedgeItem)
    names = {party.iri for _, party in addition.item.participants}
    same, links = database.live.identities(names, seq)
    (record,) = snapshot_of([addition], same=same, links=links).hyperedges
    return record


def item_of_hyperedge(record: HyperedgeRecord, database: Database, seq: int) -> HyperedgeItem | None:
    """Return a live item that says what a hyperedge says after edit `seq`; None if there is none."""
    for _, addition in database.live.tagged([segment_iri(record.segment)], seq):
        if isinstance(addition.item, HyperedgeItem) and hyperedge_of(addition, database, seq).iri == record.iri:
            return addition.item
    return None


def tags_of_segments(segments: Iterable[str], database: Database, seq: int) -> dict[str, list[HyperedgeTag]]:
    """Return the live tags, after edit `seq`, of the hyperedges that have one of the segments, by their IRIs.

    An edit is trusted as little as the least trusted of its sources.
    """
    said = [
        (edit, addition, addition.item)
        for edit, addition in database.live.tagged(map(segment_iri, segments), seq)
        if isinstance(addition.item, HyperedgeItem)
    ]
    names = {party.iri for _, _, item in said for _, party in item.participants}
    identities = Identities(*database.live.identities(names, seq))
    found: dict[str, list[HyperedgeTag]] = defaultdict(list)
    trusts = {
        edit: lowest(each.trust for each in sources)
        for edit, sources in database.sources_of({edit for edit, addition, _ in said if not addition.document}).items()
    }
    for edit, addition, item in said:
        key, text, document = item_key(item), normal_name(item.segment), addition.document
        if document:
            tag = HyperedgeTag(edit, document, CORPUS, text, Removal(document=document, item=key))
        else:
            tag = HyperedgeTag(edit, "", trusts[edit], text, Removal(edit=edit, item=key))
        found[hyperedge_iri(item, identities)].append(tag)
    return found
