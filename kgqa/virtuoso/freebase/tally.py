"""Counts of kept, repaired and dropped lines in a dump, with a few examples for each reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 3
EXAMPLE_BYTES = 200


@dataclass
class Tally:
    """Counts of lines, with `lines == kept + sum(dropped.values())`.

    Attributes:
        dropped: number of dropped lines for each reason.
        repaired: number of repaired lines for each kind of repair; these lines are also counted as kept.
        examples: the first EXAMPLES lines for each reason, as `{"line": number (from 1), "text": first EXAMPLE_BYTES
            bytes of the line}`.
    """

    lines: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def show(self, reason: str, line: int, text: bytes) -> None:
        """Keep a line as an example for a reason, unless there are already EXAMPLES earlier lines."""
        self._show_first(reason, [{"line": line, "text": text[:EXAMPLE_BYTES].decode("utf-8", "replace")}])

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.lines += other.lines
        self.kept += other.kept
        self.dropped = Counter(self.dropped) + Counter(other.dropped)
        self.repaired = Counter(self.repaired) + Counter(other.repaired)
        for reason, examples in other.examples.items():
            self._show_first(reason, examples)

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object, most frequent reason first; `Tally(**data)` restores the tally."""
        dropped, repaired = (
            dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            for counts in (self.dropped, self.repaired)
        )
        examples = dict(sorted(self.examples.items()))
        return {"lines": self.lines, "kept": self.kept, "dropped": dropped, "repaired": repaired, "examples": examples}

    def _show_first(self, reason: str, examples: Iterable[dict[str, Any]]) -> None:
        merged = [*self.examples.get(reason, ()), *examples]
        self.examples[reason] = sorted(merged, key=lambda example: (example["line"], example["text"]))[:EXAMPLES]
