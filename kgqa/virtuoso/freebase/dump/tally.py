"""What became of the lines of a dump: so many kept, so many dropped for this reason, and a few of them to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 3
EXAMPLE_BYTES = 200


@dataclass
class Tally:
    """Counts that add up: `lines == kept + sum(dropped.values())`.

    `repaired` counts lines among the kept ones by what was mended. `examples` holds for each reason the first lines
    as (line number from 1, text, at most EXAMPLE_BYTES bytes of it).
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
        """Keep a line as an example, unless there are enough earlier ones."""
        shown = self.examples.setdefault(reason, [])
        shown.append((line, text[:EXAMPLE_BYTES].decode("utf-8", "replace")))
        shown.sort()
        del shown[EXAMPLES:]

    def add(self, other: Tally) -> None:
        """Count what another tally has counted."""
        self.lines += other.lines
        self.kept += other.kept
        for reason, count in other.dropped.items():
            self.drop(reason, count)
        for what, count in other.repaired.items():
            self.repaired[what] = self.repaired.get(what, 0) + count
        for reason, shown in other.examples.items():
            self.examples[reason] = sorted(self.examples.get(reason, []) + shown)[:EXAMPLES]

    def as_json(self) -> dict[str, Any]:
        """The counts, most frequent reason first."""
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
        """The tally that `as_json` wrote."""
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
