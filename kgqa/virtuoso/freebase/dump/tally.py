"""Counts of kept, repaired and dropped lines in a dump, with a few examples for each reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 3
EXAMPLE_BYTES = 200


@dataclass
class Tally:
    """Counts of lines, with `lines == kept + sum(dropped.values())`.

    Attributes:
        repaired: number of repaired lines for each kind of repair; these lines are also counted as kept.
        dropped: number of dropped lines for each reason.
        examples: the first lines for each reason, as `{"line": number (from 1), "text": first bytes of the line}` with
            at most EXAMPLE_BYTES bytes.
    """

    lines: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def show(self, reason: str, line: int, text: bytes) -> None:
        """Keep a line as an example for a reason, unless there are already EXAMPLES earlier lines."""
        example = {"line": line, "text": text[:EXAMPLE_BYTES].decode("utf-8", "replace")}
        self.examples[reason] = _first([*self.examples.get(reason, ()), example])

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.lines += other.lines
        self.kept += other.kept
        self.dropped = Counter(self.dropped) + Counter(other.dropped)
        self.repaired = Counter(self.repaired) + Counter(other.repaired)
        for reason, shown in other.examples.items():
            self.examples[reason] = _first([*self.examples.get(reason, ()), *shown])

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object, most frequent reason first; `Tally(**data)` restores the tally."""
        return {
            "lines": self.lines,
            "kept": self.kept,
            "dropped": _by_count(self.dropped),
            "repaired": _by_count(self.repaired),
            "examples": dict(sorted(self.examples.items())),
        }


def _first(examples: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(examples, key=lambda example: (example["line"], example["text"]))[:EXAMPLES]


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
