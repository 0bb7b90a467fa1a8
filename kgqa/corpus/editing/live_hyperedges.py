"""Who says what a live hyperedge says: the tags of its items in the log, and how far each is trusted."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.corpus.edit_log import Edit, Removal
from kgqa.corpus.editing.trust import CORPUS, lowest
from kgqa.corpus.items import Addition, HyperedgeItem, item_key
from kgqa.corpus.records import HyperedgeRecord
from kgqa.corpus.snapshot import snapshot_of
from kgqa.corpus.storage.database import Database
from kgqa.corpus.storage.rows import segment_iri


@dataclass(frozen=True, slots=True)
class HyperedgeTag:
    """One who says what a hyperedge says.

    Attributes:
        edit: The id of the edit that added it.
        document: The IRI of the document that says so; "" if the edit rests on something else.
        trust: How far it is trusted.
        removal: What removes it. What a document says is removed for ever, also when the document is read again.
    """

    edit: str
    document: str
    trust: str
    removal: Removal


def hyperedge_of(addition: Addition, database: Database, seq: int) -> HyperedgeRecord:
    """Return the hyperedge that an addition says, with the entities that its names mean after edit `seq`."""
    assert isinstance(addition.item, HyperedgeItem)
    names = {party.iri for _, party in addition.item.participants}
    same, links = database.live.identities(names, seq)
    (record,) = snapshot_of([addition], same=same, links=links).hyperedges
    return record


def hyperedge_tags(record: HyperedgeRecord, database: Database, seq: int) -> list[HyperedgeTag]:
    """Return the live tags of a hyperedge after edit `seq`, in the order of the log."""
    found = []
    for edit, addition in database.live.tagged([segment_iri(record.segment)], seq):
        if isinstance(addition.item, HyperedgeItem) and hyperedge_of(addition, database, seq).iri == record.iri:
            found.append(_tag(edit, addition, database))
    return found


def _tag(edit: str, addition: Addition, database: Database) -> HyperedgeTag:
    key = item_key(addition.item)
    if addition.document:
        return HyperedgeTag(edit, addition.document, CORPUS, Removal(document=addition.document, item=key))
    return HyperedgeTag(edit, "", trust_of_edit(database.edit(edit)), Removal(edit=edit, item=key))


def trust_of_edit(edit: Edit | None) -> str:
    """Return how far what an edit says is trusted: as little as the least trusted of its sources."""
    return lowest(each.trust for each in edit.sources) if edit else lowest(())
