"""Counts of kept, repaired and dropped lines in a dump, with a few examples for each reason."""

from __future__ import annotations

from collections.abc import Mapping
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
        examples: the first lines for each reason, as pairs of line number (from 1) and the first bytes of the line (at
            most EXAMPLE_BYTES).
    """

    lines: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def drop(self, reason: str, count: int = 1) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + count

    def repair(self, what: str) -> None:
        self.repaired[what] = self.repaired.get(what, 0) + 1

    def show(self, reason: str, line: int, text: bytes) -> None:
        """Keep a line as an example for a reason, unless there are already EXAMPLES such lines."""
        examples = self.examples.setdefault(reason, [])
        examples.append((line, text[:EXAMPLE_BYTES].decode("utf-8", "replace")))
        examples.sort()
        del examples[EXAMPLES:]

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.lines += other.lines
        self.kept += other.kept
        for reason, count in other.dropped.items():
            self.drop(reason, count)
        for what, count in other.repaired.items():
            self.repaired[what] = self.repaired.get(what, 0) + count
        for reason, shown in other.examples.items():
            self.examples[reason] = sorted(self.examples.get(reason, []) + shown)[:EXAMPLES]

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object, most frequent reason first."""
        return {
            "lines": self.lines,
            "kept": self.kept,
            "dropped": _by_count(self.dropped),
            "repaired": _by_count(self.repaired),
            "examples": {
                reason: [{"line": line, "text": text} for line, text in shown]
                for reason, shown in sorted(self.examples.items())
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tally:
        """Restore a tally from `as_json`."""
        return cls(
            lines=data["lines"],
            kept=data["kept"],
            dropped=dict(data["dropped"]),
            repaired=dict(data["repaired"]),
            examples={
                reason: [(each["line"], each["text"]) for each in shown] for reason, shown in data["examples"].items()
            },
        )


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
