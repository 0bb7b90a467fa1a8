"""Edits as JSON, with their content, and read again; what is read is checked against its hashes."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kgqa.corpus.edit_log import Edit, EditKind, EditSource, Removal, sealed
from kgqa.corpus.items import Addition, item_from, item_text
from kgqa.storage.loading import Count, convert


class _AdditionRecord(msgspec.Struct):
    kind: str
    item: dict[str, Any]
    document: str
    chunk: str
    begin: Count
    end: Count
    confidence: float | None
    model: str
    prompt: str
    reason: str


class EditRecord(msgspec.Struct):
    """An edit as JSON, without its number in a log."""

    id: str
    kind: EditKind
    agent: str
    reason: str
    session: str
    question: str
    target: str
    at: str
    content: str
    previous: tuple[str, ...]
    sources: tuple[EditSource, ...]
    adds: tuple[_AdditionRecord, ...]
    removes: tuple[Removal, ...]


def record_of_edit(edit: Edit) -> dict[str, Any]:
    """Return an edit as a JSON object."""
    values = {name: getattr(edit, name) for name in EditRecord.__struct_fields__}
    adds = tuple(
        _AdditionRecord(
            each.item.kind, json.loads(item_text(each.item)), each.document, each.chunk, each.begin, each.end,
            each.confidence, each.model, each.prompt, each.reason,
        )
        for each in edit.adds
    )  # fmt: skip
    found: dict[str, Any] = msgspec.to_builtins(EditRecord(**{**values, "adds": adds}))
    return found


def edit_of_record(record: Any) -> Edit:
    """Read an edit.

    Raises:
        ValueError: the record is not an edit, or is not what its id says.
    """
    read: EditRecord = convert(record, EditRecord)
    values = {name: getattr(read, name) for name in EditRecord.__struct_fields__}
    edit = Edit(**{**values, "seq": 0, "adds": tuple(map(_addition, read.adds))})
    again = sealed(edit)
    if (again.id, again.content) != (edit.id, edit.content):
        raise ValueError("the edit was changed")
    return edit


def _addition(record: _AdditionRecord) -> Addition:
    item = item_from(record.kind, json.dumps(record.item))
    found = (record.document, record.chunk, record.begin, record.end)
    return Addition(item, *found, record.confidence, record.model, record.prompt, record.reason)
