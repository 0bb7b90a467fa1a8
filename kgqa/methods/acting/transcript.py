"""The lines of a trial as prompts show them."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgqa.methods.acting.tokens import within


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a trial. `label`: what it is, such as Plan. `step`: number of the turn. `text`: without the label."""

    label: str
    step: int
    text: str

    def __str__(self) -> str:
        """Return the line as prompts show it."""
        return f"{self.label} {self.step}: {self.text}"


@dataclass
class Transcript:
    """The lines of one trial, in order."""

    lines: list[Line] = field(default_factory=list)

    def add(self, label: str, step: int, text: str) -> None:
        """Add a line; an empty text adds nothing."""
        if text:
            self.lines.append(Line(label, step, text))

    def shown(self, tokens: int | None = None) -> list[str]:
        """Return the lines as texts; if they are longer than so many tokens, the longest are cut."""
        lines = list(map(str, self.lines))
        return lines if tokens is None else within(lines, tokens)
