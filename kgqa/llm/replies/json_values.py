"""Functions shared by all readers: the part of a reply that is read, and the JSON values in that part."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MAX_READ_CHARS = 20_000
"""Number of characters read at the end of a reply. The limit saves time; models give their decision at the end."""

OBJECT = "\x01"
"""Character that replaces a JSON object in the text of a reply."""

_MAX_REPAIRED_LENGTH = 8_000  # json-repair is slow for long or deeply nested text (measured: 1 ms per character)
_MAX_REPAIRED_DEPTH = 20
_MAX_REPAIRS = 40
_MAX_NODES = 1_000

_WIDE: dict[int, int | str] = {0xFF01 + i: 0x21 + i for i in range(94)}  # full-width forms, which Chinese models write
_WIDE |= {0x3010: "[", 0x3011: "]", 0x3001: ",", 0x3002: ". ", 0x2192: ">", 0x2212: "-"}
_WIDE |= dict.fromkeys((0x201C, 0x201D, 0x201E), '"') | dict.fromkeys((0x2018, 0x2019), "'")

_TAG = re.compile(r"<(/?)(?:final_?)?(?:answer|choice|verdict|output|result|selected)>", re.IGNORECASE)
_NAME = r"(?:seed:)?(?:think|thinking|thought|reasoning)"
_REASONING = re.compile(
    rf"(</?\|?{_NAME}\|?>|\[/?THINK\]|\u25c1/?think\u25b7|<\|channel\|>analysis<\|message\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>|<\|end\|>|<\|return\|>)",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"\A\s*analysis(?=\W|[A-Z])(.*?)assistant\s?final", re.DOTALL)
"""Channels of a reply whose special tokens were removed by the server."""
_OPENER = re.compile(r"[\[{]")
_REPAIRABLE = re.compile(r"""\{\s{0,50}["'`]?\w[^{}\[\]\n]{0,80}?:|\[\s{0,50}(?:["'{\[]|\d)""")
_WIDE_COLON = re.compile(r"(?<=[\"'\u201c\u201d])\uff1a")
_WIDE_COMMA = re.compile(r"(?<=[\"'\u201c\u201d}\]\d])\uff0c(?=\s{0,9}[\"'\u201c\u201d{\[\d])")
_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{}]')


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; if a key occurs with several different values, it gets the list of these values."""
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        known = values.setdefault(key, [])
        if value not in known:
            known.append(value)
    return {key: known[0] if len(known) == 1 else known for key, known in values.items()}


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """The value read from a reply.

    Attributes:
        value: The value; None if the reply is unusable or ambiguous.
        repaired: Whether a part of the reply was repaired or ignored.
        problem: If there is no value, a sentence for the repeated prompt that says what is wrong and what is expected;
            else "".
        text: The reply that was read.
    """

    value: T | None
    repaired: bool = False
    problem: str = ""
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A JSON object or array in a text, its position, and whether its text was invalid and had to be repaired."""

    start: int
    end: int
    text: str
    value: Any
    repaired: bool


def part_reasoning(text: str) -> tuple[str, str]:
    """Return a reply's text and its reasoning, both stripped.

    Reasoning is everything between `<think>` and `</think>`, or between the marks of other models (`<thinking>`,
    `[THINK]`, `<seed:think>`, the channel `analysis`). If the opening mark is missing, because the chat template puts
    it into the prompt, everything before the closing mark is reasoning. If the reply begins with an opening mark and
    has no closing mark, because it was cut off, everything after the opening mark is reasoning.
    """
    answer: list[str] = []
    thought: list[str] = []
    opened: list[str] | None = None
    mark = "<think>"
    for part in _REASONING.split(_CHANNEL.sub(r"<think>\1</think>", text)):
        if _REASONING.fullmatch(part) is None:
            (answer if opened is None else opened).append(part)
        elif "/" in part and opened is None:
            thought, answer = [*thought, *answer], []
        elif "/" in part or part.endswith(("final<|message|>", "<|end|>", "<|return|>")):
            thought, opened = [*thought, *(opened or [])], None
        elif opened is None:
            opened, mark = [], part
    if opened is not None:
        if "".join(answer).strip():
            answer += [mark, *opened]  # an unclosed mark in the middle of a text is an ordinary word
        else:
            thought += opened
    return "".join(answer).strip(), "\n\n".join(part.strip() for part in thought if part.strip())


def without_reasoning(text: str) -> str:
    """Return a reply after its reasoning; "" if the reasoning never ends. A value that is not a string is empty."""
    return part_reasoning(text)[0].partition("<think>")[0] if isinstance(text, str) else ""


def last_part(text: str) -> str:
    """Return the last `MAX_READ_CHARS` characters of a reply after its reasoning."""
    return without_reasoning(text)[-MAX_READ_CHARS:]


def plain_text(text: str) -> str:
    """Return the last part of a reply with ASCII punctuation, single spaces and no empty lines."""
    text = _TAG.sub(lambda tag: "\n" if tag[1] else "\nAnswer: ", last_part(text).translate(_WIDE))
    text = "\n".join(text.splitlines())
    return re.sub(r"(?: ?\n ?)+", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def read_json(text: str) -> tuple[Any | None, bool]:
    """Return the last JSON object or array in a reply, None if it has none, and whether it was repaired."""
    found = json_values(last_part(text))
    return (found[-1].value, found[-1].repaired) if found else (None, False)


def json_values(text: str) -> list[JsonValue]:
    """Return all outermost JSON objects and arrays in the text, in order."""
    found: list[JsonValue] = []
    unclosed: list[int] = []
    at = repairs = 0
    narrow = _narrow(text)
    while opener := _OPENER.search(narrow, at):
        start = opener.start()
        value = None
        try:
            try:
                source, (decoded, end) = text, _DECODER.raw_decode(text, start)
            except ValueError:
                source, (decoded, end) = narrow, _DECODER.raw_decode(narrow, start)
            value = JsonValue(start, end, source[start:end], decoded, source is not text)
        except ValueError:  # also for a number with too many digits
            if repairs < _MAX_REPAIRS and _REPAIRABLE.match(narrow, start):
                repairs += 1
                closed = _closing(narrow, start)
                if closed is None:
                    unclosed.append(start)
                else:
                    value = _repaired(narrow[start:closed], start)
        except RecursionError:
            break
        found += [value] if value else []
        at = value.end if value else start + 1
    # the first value without a closing bracket counts, unless a separate value follows it
    alone = [each.start for each in found if narrow[: each.start].rstrip()[-1:] not in (":", ",", "[")]
    first = next((start for start in unclosed if start > max(alone, default=-1)), None)
    last = None if first is None else _repaired(narrow[first:].partition("```")[0], first)
    return [*(each for each in found if each.end <= last.start), last] if last else found


def _narrow(text: str) -> str:
    """Return a text of the same length with ASCII in place of full-width punctuation between JSON values."""
    text = _WIDE_COMMA.sub(",", _WIDE_COLON.sub(":", text))
    return text if '"' in text else text.translate(dict.fromkeys(map(ord, "\u201c\u201d\u201e"), '"'))


def _closing(text: str, start: int) -> int | None:
    """Return the position after the bracket that closes the bracket at `start`; None if it is never closed.

    Brackets inside strings are ignored, unless a quotation mark is missing in the line.
    """
    depth = 0
    for mark in _BRACKET.finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
        if not depth:
            return mark.end()
    return None


def _repaired(piece: str, start: int) -> JsonValue | None:
    """Repair invalid JSON with json-repair; return None if the result is not an object or array like the piece."""
    signs = re.findall(r"[\[\]{}()]", piece)
    levels = accumulate(signs, lambda level, sign: level + 1 if sign in "[{(" else max(0, level - 1), initial=0)
    if len(piece) > _MAX_REPAIRED_LENGTH or max(levels) > _MAX_REPAIRED_DEPTH:
        return None
    from json_repair import repair_json  # imported only when a reply is broken

    try:
        value = repair_json(piece, return_objects=True, skip_json_loads=True)
    except Exception:  # noqa: BLE001  # json-repair guesses and can fail in any way; the reply then has no value
        return None
    fits = value and isinstance(value, dict if piece[0] == "{" else list)
    return JsonValue(start, start + len(piece), piece, value, repaired=True) if fits else None


def without_objects(text: str) -> tuple[str, list[tuple[int, JsonValue]]]:
    """Replace each JSON object and each list of objects in a reply by the character `OBJECT`.

    Returns:
        The text, normalised by `plain_text`, and the replaced values, each with its position in that text.
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
    """Return whether a value is an object or a list that contains an object."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def key_name(key: Any) -> str:
    """Normalise a key for comparison: `Final_Answer` becomes `final answer`."""
    return re.sub(r"[\s_-]+", " ", str(key)[:100]).strip().casefold()


def find_key(value: Any, names: tuple[str, ...]) -> tuple[bool, Any]:
    """Return whether one of the keys `names` occurs at any depth, and its value.

    If several of the keys occur, the one that comes first in `names` is taken; if this key occurs in several objects,
    the outermost object is taken.
    """
    found: dict[str, Any] = {}
    queue = [value]
    for each in queue:  # grows during the loop: breadth first
        if isinstance(each, dict):
            for key, inner in each.items():
                found.setdefault(key_name(key), inner)
        if len(queue) < _MAX_NODES and isinstance(each, dict | list):
            queue.extend(list(each.values() if isinstance(each, dict) else each)[:_MAX_NODES])
    return next(((True, found[name]) for name in names if name in found), (False, None))
