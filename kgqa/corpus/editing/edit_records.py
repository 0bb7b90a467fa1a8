"""Edits as JSON, with their content, and read again; what is read is checked against its hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kgqa.corpus.edit_log import EDIT_KINDS, Edit, EditSource, Removal, sealed
from kgqa.corpus.items import Addition, item_from, item_text
from kgqa.storage.untrusted_json import check_keys, is_count, is_text, list_of, optional

_TEXTS = ("id", "kind", "agent", "reason", "session", "question", "target", "at", "content")
_ADDITION_TEXTS = ("document", "chunk", "model", "prompt", "reason")


def record_of_edit(edit: Edit) -> dict[str, Any]:
    """Return an edit as a JSON object, without its number in a log."""
    return {
        "id": edit.id,
        "kind": edit.kind,
        "agent": edit.agent,
        "reason": edit.reason,
        "session": edit.session,
        "question": edit.question,
        "target": edit.target,
        "at": edit.at,
        "content": edit.content,
        "previous": list(edit.previous),
        "sources": [[each.iri, each.begin, each.end, each.digest, each.trust] for each in edit.sources],
        "adds": [_addition_record(each) for each in edit.adds],
        "removes": [[each.edit, each.document, each.item] for each in edit.removes],
    }


def edit_of_record(record: Any) -> Edit:
    """Read an edit.

    Raises:
        ValueError: the record is not an edit, or is not what its id says.
    """
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    try:
        check_keys(record, {**dict.fromkeys(_TEXTS, is_text), "previous": list_of(is_text)})
        if record["kind"] not in EDIT_KINDS:
            raise ValueError(f"{record['kind'][:20]!r} is not a kind of edit")
        edit = Edit(
            id=record["id"],
            seq=0,
            kind=record["kind"],
            agent=record["agent"],
            reason=record["reason"],
            session=record["session"],
            question=record["question"],
            sources=tuple(_source(each) for each in record["sources"]),
            target=record["target"],
            at=record["at"],
            previous=tuple(record["previous"]),
            content=record["content"],
            adds=tuple(_addition(each) for each in record["adds"]),
            removes=tuple(_removal(each) for each in record["removes"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a part of the edit is missing or wrong: {error}") from error
    again = sealed(edit)
    if (again.id, again.content) != (edit.id, edit.content):
        raise ValueError("the edit was changed")
    return edit


def _addition_record(addition: Addition) -> dict[str, Any]:
    return {
        "kind": addition.item.kind,
        "item": json.loads(item_text(addition.item)),
        "document": addition.document,
        "chunk": addition.chunk,
        "begin": addition.begin,
        "end": addition.end,
        "confidence": addition.confidence,
        "model": addition.model,
        "prompt": addition.prompt,
        "reason": addition.reason,
    }


def _addition(record: Mapping[str, Any]) -> Addition:
    if not isinstance(record, dict):
        raise TypeError("an addition is not an object")
    check_keys(
        record,
        {
            **dict.fromkeys(_ADDITION_TEXTS, is_text),
            "begin": is_count,
            "end": is_count,
            "confidence": optional(lambda value: isinstance(value, float)),
        },
    )
    return Addition(
        item_from(record["kind"], json.dumps(record["item"])),
        record["document"],
        record["chunk"],
        record["begin"],
        record["end"],
        record["confidence"],
        record["model"],
        record["prompt"],
        record["reason"],
    )


def _removal(record: Any) -> Removal:
    edit, document, item = record
    if not (is_text(edit) and is_text(document) and is_text(item)):
        raise TypeError("a removal")
    return Removal(edit, document, item)


def _source(record: Any) -> EditSource:
    iri, begin, end, digest, trust = record
    if not (is_text(iri) and is_count(begin) and is_count(end) and is_text(digest) and is_text(trust)):
        raise TypeError("a source")
    return EditSource(iri, begin, end, digest, trust)
