"""One channel of the published GraphSearch: its sub-questions, what was refined and answered, and its draft."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kgqa.methods.graphsearch.channels import RELATIONAL
from kgqa.methods.graphsearch.replies import Verdict
from kgqa.methods.graphsearch.sub_queries import GroundedQuery, SubQuery
from kgqa.model import Piece


@dataclass(frozen=True, slots=True)
class Entry:
    """A sub-question of the history. `context`: its refined evidence; `pieces`: those that the evidence comes from."""

    query: GroundedQuery
    pieces: tuple[Piece, ...] = ()
    context: str = ""
    answers: tuple[str, ...] = ()


@dataclass
class Lane:
    """The state of one channel.

    Attributes:
        channel: Its name.
        queries: The sub-questions as planned.
        entries: The history.
        draft: The last draft; "" if there is none.
        verdict: The verdict on it; None if there is none, or it could not be read.
    """

    channel: str
    queries: tuple[SubQuery, ...] = ()
    entries: list[Entry] = field(default_factory=list)
    draft: str = ""
    verdict: Verdict | None = None

    @property
    def accepted(self) -> bool:
        """Whether the draft was accepted."""
        return self.verdict is not None and self.verdict.verdict == "yes"

    @property
    def form(self) -> str:
        """The end of the names of its prompts."""
        return "graph" if self.channel == RELATIONAL else "text"

    def steps(self) -> list[dict[str, Any]]:
        """Return the history as values of a prompt."""
        return [_step(entry) for entry in self.entries]

    def shown(self, query: GroundedQuery) -> str:
        """Return a sub-question as its prompts show it."""
        return pattern_text(query) if self.channel == RELATIONAL else query.text


def pattern_text(query: GroundedQuery) -> str:
    """Return the triples of a sub-question as a text, or its words if it has none."""
    return "; ".join(", ".join(pattern) for pattern in query.patterns) or query.text


def history_of(lanes: Iterable[Lane]) -> list[dict[str, Any]]:
    """Return the histories of several channels as values of a prompt."""
    return [step for lane in lanes for step in lane.steps()]


def _step(entry: Entry) -> dict[str, Any]:
    return {
        "question": entry.query.text or pattern_text(entry.query),
        "context": entry.context,
        "answer": "; ".join(entry.answers),
    }
