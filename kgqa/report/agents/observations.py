"""Reads an observation for a page: its lines, or the numbered results of a search."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgqa.report.lenient_json import count_of, list_of, number_of, text_of
from kgqa.trace import Seen

MAX_RESULTS = 60
_FOLDED_LINES, _FOLDED_CHARS = 8, 600
_FENCE = re.compile(r"\s*`{3,}\s*")
_RESULT_KEYS = frozenset({"number", "text"})


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a search as the language model was shown it. `kind`, `trust`, `source`: empty if not given.

    `disputes`: numbers of results that contradict it.
    """

    number: int
    text: str
    kind: str = ""
    trust: str = ""
    score: float | None = None
    source: str = ""
    disputes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What was shown after calls: the results of a search, and the other lines as a text.

    `folded`: whether it is so long that a page shows it only on demand.
    """

    text: str
    results: tuple[Result, ...]
    results_more: int
    count: int
    approximate: bool
    folded: bool


def observation_of(seen: Seen) -> Observation:
    """Split an observation into the results of a search and other lines."""
    results, lines = [], []
    for line in seen.text.splitlines():
        if result := _result(line):
            results.append(result)
        else:
            lines.append(line)
    if results:  # they stand in a fence
        lines = [line for line in lines if not _FENCE.fullmatch(line)]
    text = "\n".join(lines).strip("\n")
    folded = len(lines) > _FOLDED_LINES or len(seen.text) > _FOLDED_CHARS
    more = max(0, len(results) - MAX_RESULTS)
    return Observation(text, tuple(results[:MAX_RESULTS]), more, seen.count, seen.approximate, folded)


def _result(line: str) -> Result | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, Mapping) or not found.keys() >= _RESULT_KEYS:
        return None
    return _read(found)


def _read(found: Mapping[str, Any]) -> Result | None:
    number = count_of(found["number"])
    if number is None or not isinstance(found["text"], str):
        return None
    disputes = [other for each in list_of(found.get("contradicts")) if (other := count_of(each)) is not None]
    return Result(
        number,
        found["text"],
        text_of(found.get("kind")),
        text_of(found.get("trust")),
        number_of(found.get("score")),
        text_of(found.get("from")),
        tuple(disputes[:MAX_RESULTS]),
    )
