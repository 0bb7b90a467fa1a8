"""The result of extraction for one chunk, and its form as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from kgqa.corpus.items import Addition, item_from, item_text
from kgqa.storage.untrusted_json import check_keys, is_count, is_score, is_text, load_json, optional

Status = Literal["done", "failed"]
_FORMAT = 1
_CHECKS = {
    "begin": is_count,
    "end": is_count,
    "confidence": optional(is_score),
    **dict.fromkeys(("document", "chunk", "model", "prompt", "reason"), is_text),
}


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


def result_text(result: ChunkResult) -> str:
    """Return a result as JSON. `result_from` restores an equal result."""
    shared = _shared(result)
    return json.dumps(
        {
            "format": _FORMAT,
            "chunk": result.chunk,
            "status": result.status,
            "reason": result.reason,
            "rejected": result.rejected,
            "shared": shared,
            "additions": [_plain(addition, shared) for addition in result.additions],
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def result_from(text: str) -> ChunkResult:
    """Read a result from the output of `result_text`.

    Raises:
        ValueError: The text is not a result.
    """
    data = load_json(text.encode("utf-8", "surrogatepass"))
    try:
        if data["format"] != _FORMAT or data["status"] not in get_args(Status):
            raise ValueError("not the result of a chunk in a known format")
        check_keys(data, {"chunk": is_text, "reason": is_text})
        shared = data["shared"]
        additions = tuple(_addition({**shared, **each}) for each in data["additions"])
        return ChunkResult(data["chunk"], additions, data["status"], data["reason"], tuple(map(str, data["rejected"])))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not the result of a chunk") from error


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
    values = {name: getattr(addition, name) for name in _CHECKS if name not in shared}
    kept = {name: value for name, value in values.items() if value not in ("", None)}
    return {"kind": addition.item.kind, "item": json.loads(item_text(addition.item)), **kept}


def _addition(data: dict[str, Any]) -> Addition:
    check_keys(data, _CHECKS)
    kind, item = data.pop("kind"), data.pop("item")
    return Addition(item_from(kind, json.dumps(item)), **data)
