"""What every reader of replies starts from: the part of a reply that is looked at, and the JSON in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MAX_READ_CHARS = 20_000
"""Characters at the end of a reply that are read. What a model wants stands at the end, and time is bounded."""

OBJECT = "\x01"
"""Stands in a text where an object stood."""

_MENDED_AT_MOST = 8_000  # json-repair takes seconds for long or deeply nested junk (measured: 1 ms a character)
_DEPTH_MENDED = 20
_TRIED = 40
_NODES = 1_000

_WIDE = {0xFF01 + i: 0x21 + i for i in range(94)}  # full-width forms, as Chinese models write them
_WIDE |= {0x3010: "[", 0x3011: "]", 0x3001: ",", 0x3002: ". ", 0x2192: ">", 0x2212: "-"}
_WIDE |= dict.fromkeys((0x201C, 0x201D, 0x201E), '"') | dict.fromkeys((0x2018, 0x2019), "'")

_TAG = re.compile(r"<(/?)(?:final_?)?(?:answer|choice|verdict|output|result|selected)>", re.IGNORECASE)
_OPENER = re.compile(r"[\[{]")
_MENDABLE = re.compile(r"""\{\s{0,50}["'`]?\w[^{}\[\]\n]{0,80}?:|\[\s{0,50}(?:["'{\[]|\d)""")
_BRACKET = re.compile(r'[\[\]{}]|\\.|"', re.DOTALL)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key that is given twice, with different values, has the list of them."""
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        known = values.setdefault(key, [])
        if value not in known:
            known.append(value)
    return {key: known[0] if len(known) == 1 else known for key, known in values.items()}


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What was read from a reply.

    Attributes:
        value: what the model said; None if that cannot be told.
        repaired: something had to be mended or left out to get at the value.
        problem: with no value one sentence for asking again, what was wrong and what is wanted; else empty.
    """

    value: T | None
    repaired: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class JsonValue:
    """An object or array, and where it stands; `repaired`: its text was no valid JSON."""

    start: int
    end: int
    text: str
    value: Any
    repaired: bool


def last_part(text: str) -> str:
    """The end of a reply without the thoughts before it; nothing if the thoughts never end.

    Any value that is not text counts as an empty reply.
    """
    if not isinstance(text, str):
        return ""
    closed = text.rfind("</think>")
    text = text[closed + len("</think>") :] if closed >= 0 else text
    opened = text.rfind("<think>")
    return (text[:opened] if opened >= 0 else text)[-MAX_READ_CHARS:]


def plain_text(text: str) -> str:
    """The end of a reply for reading markers and numbers: ASCII punctuation, single blanks, no empty lines."""
    text = _TAG.sub(lambda tag: "\n" if tag[1] else "\nAnswer: ", last_part(text).translate(_WIDE))
    text = "\n".join(text.splitlines())
    return re.sub(r"(?: ?\n ?)+", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def read_json(text: str) -> tuple[Any | None, bool]:
    """The last JSON object or array in a reply, in a code fence or not; mended where it is nearly JSON.

    Returns:
        The value, or None if there is none, and whether it was mended. Never raises, whatever the text.
    """
    found = json_values(last_part(text))
    return (found[-1].value, found[-1].repaired) if found else (None, False)


def json_values(text: str) -> list[JsonValue]:
    """All objects and arrays that stand by themselves in a text, in order. Looks at the whole text."""
    found: list[JsonValue] = []
    unclosed: list[int] = []
    at = tried = 0
    while opener := _OPENER.search(text, at):
        start = opener.start()
        at = start + 1
        try:
            value, at = _DECODER.raw_decode(text, start)
            found.append(JsonValue(start, at, text[start:at], value, repaired=False))
            continue
        except RecursionError:
            break
        except ValueError:  # not JSON, or a number of too many digits
            pass
        if tried >= _TRIED or not _MENDABLE.match(text, start):
            continue
        tried += 1
        end = _closing(text, start)
        if end is None:
            unclosed.append(start)
        elif (value := _mend(text[start:end])) is not None:
            found.append(JsonValue(start, end, text[start:end], value, repaired=True))
            at = end
    return _with_unclosed(text, found, unclosed)


def _with_unclosed(text: str, found: list[JsonValue], unclosed: list[int]) -> list[JsonValue]:
    """With the first value that was cut off before its end, unless another one follows that is not a part of it."""
    alone = [each.start for each in found if text[: each.start].rstrip()[-1:] not in (":", ",", "[")]
    start = next((start for start in unclosed if not any(other > start for other in alone)), None)
    if start is None:
        return found
    end = text.find("```", start)
    end = len(text) if end < 0 else end
    value = _mend(text[start:end])
    if value is None:
        return found
    return [each for each in found if each.end <= start] + [
        JsonValue(start, end, text[start:end], value, repaired=True)
    ]


def _closing(text: str, start: int) -> int | None:
    """Where the bracket at `start` is closed; brackets in strings do not count, unless quotes are broken."""
    for quotes in (True, False):
        depth, inside = 0, False
        for mark in _BRACKET.finditer(text, start):
            sign = mark.group()
            if sign == '"':
                inside = quotes and not inside
            elif len(sign) == 1 and not inside:
                depth += 1 if sign in "[{" else -1
                if not depth:
                    return mark.end()
    return None


def _mend(piece: str) -> Any | None:
    """The value json-repair makes of a piece, None if it is none of the kind that the piece opens with."""
    if len(piece) > _MENDED_AT_MOST or _depth(piece) > _DEPTH_MENDED:
        return None
    from json_repair import repair_json  # waits until a reply is broken

    try:
        value = repair_json(piece, return_objects=True, skip_json_loads=True)
    except Exception:  # a parser that guesses can fail in any way; the reply is then as good as none
        return None
    return value if value and isinstance(value, dict if piece[0] == "{" else list) else None


def _depth(piece: str) -> int:
    """How deep brackets nest, strings and all; a bracket that closes nothing does not count."""
    depth = deepest = 0
    for sign in re.findall(r"[\[\]{}()]", piece):
        depth = depth + 1 if sign in "[{(" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def without_objects(text: str) -> tuple[str, list[tuple[int, JsonValue]]]:
    """The plain text of a reply with `OBJECT` in place of each JSON object, and of each list that has objects.

    Returns:
        The text, and these values, each with its place in the text.
    """
    raw = last_part(text).replace(OBJECT, " ")
    found = [each for each in json_values(raw) if has_object(each.value)]
    pieces, at = [], 0
    for each in found:
        pieces += [raw[at : each.start], f"\n{OBJECT}\n"]
        at = each.end
    text = plain_text("".join([*pieces, raw[at:]]))
    return text, list(zip((i for i, sign in enumerate(text) if sign == OBJECT), found, strict=False))


def has_object(value: Any) -> bool:
    """Whether a value is an object or a list with at least one."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def key_name(key: Any) -> str:
    """A key for comparison: `Final_Answer` as `final answer`."""
    return re.sub(r"[\s_-]+", " ", str(key)[:100]).strip().casefold()


def find_key(value: Any, names: tuple[str, ...]) -> tuple[bool, Any]:
    """Whether one of some keys is there, however deep, and its value; earlier names and outer objects first."""
    objects = list(_objects(value))
    for name in names:
        for each in objects:
            if name in each:
                return True, each[name]
    return False, None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    queue = [value]
    for each in queue:  # grows while it is walked: breadth first
        if isinstance(each, dict):
            yield {key_name(key): inner for key, inner in each.items()}
        if len(queue) < _NODES and isinstance(each, dict | list):
            queue.extend(list(each.values() if isinstance(each, dict) else each)[:_NODES])
