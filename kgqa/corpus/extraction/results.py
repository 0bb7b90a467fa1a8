"""The result of extraction for one chunk, and its form as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from kgqa.corpus.items import Addition, item_from, item_text
from kgqa.storage.loading import Count, Share, convert, parse_json

Status = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What was found in a chunk.

    Attributes:
        chunk: The IRI of the chunk.
        additions: The items that were found, each with its place in the document.
        status: "done", even if nothing was found; or "failed".
        reason: Why it failed; "" if it is done.
        rejected: What was found and not accepted, one line each, with the reason.
    """

    chunk: str
    additions: tuple[Addition, ...] = ()
    status: Status = "done"
    reason: str = ""
    rejected: tuple[str, ...] = ()


class _AdditionForm(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    kind: str
    item: dict[str, Any]
    begin: Count = 0
    end: Count = 0
    confidence: Share | None = None
    document: str = ""
    chunk: str = ""
    model: str = ""
    prompt: str = ""
    reason: str = ""


class _ResultForm(msgspec.Struct):
    """The JSON of a result. `shared`: values that all additions have in common; they are written once."""

    format: Literal[1]
    chunk: str
    status: Status
    reason: str
    rejected: tuple[str, ...]
    shared: dict[str, str]
    additions: tuple[dict[str, Any], ...]


def result_text(result: ChunkResult) -> str:
    """Return a result as JSON. `result_from` restores an equal result."""
    shared = _shared(result)
    additions = tuple(_plain(addition, shared) for addition in result.additions)
    form = _ResultForm(1, result.chunk, result.status, result.reason, result.rejected, shared, additions)
    return json.dumps(msgspec.to_builtins(form), ensure_ascii=False, separators=(",", ":"))


def result_from(text: str) -> ChunkResult:
    """Read a result from the output of `result_text`.

    Raises:
        ValueError: The text is not a result.
    """
    form: _ResultForm = parse_json(text, _ResultForm)
    additions = tuple(_addition(convert({**form.shared, **each}, _AdditionForm)) for each in form.additions)
    return ChunkResult(form.chunk, additions, form.status, form.reason, form.rejected)


def failed(chunk: str, reason: str) -> ChunkResult:
    """Return the result of a chunk that could not be read."""
    return ChunkResult(chunk, status="failed", reason=reason)


def with_model(result: ChunkResult, model: str, prompt: str = "") -> ChunkResult:
    """Return a result whose additions name the model, and the hash of the prompt, that found them."""
    additions = tuple(replace(each, model=model, prompt=prompt) for each in result.additions)
    return replace(result, additions=additions)


def _shared(result: ChunkResult) -> dict[str, str]:
    """Return the values that all additions have in common; they are written once."""
    first = result.additions[:1]
    names = ("document", "chunk", "model", "prompt")
    return {
        name: getattr(addition, name)
        for addition in first
        for name in names
        if all(getattr(each, name) == getattr(addition, name) for each in result.additions)
    }


def _plain(addition: Addition, shared: dict[str, str]) -> dict[str, Any]:
    values = {name: getattr(addition, name) for name in _PLACE if name not in shared}
    item = json.loads(item_text(addition.item))
    plain: dict[str, Any] = msgspec.to_builtins(_AdditionForm(addition.item.kind, item, **values))
    return plain


def _addition(form: _AdditionForm) -> Addition:
    item = item_from(form.kind, json.dumps(form.item))
    return Addition(item, **{name: getattr(form, name) for name in _PLACE})


_PLACE = _AdditionForm.__struct_fields__[2:]
"""The fields that say where and how an item was found."""
