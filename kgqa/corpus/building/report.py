"""What a build did."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kgqa.model import Usage

Progress = Callable[[str, int, int], None]
"""Called with a stage, and how many of how many items are done; the total is 0 if it is unknown."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Show nothing."""


@dataclass
class BuildReport:
    """Counts of one build, and what it left out.

    Attributes:
        folder: The corpus.
        added, changed, removed, unchanged: Numbers of documents.
        kept_out: Number of sources that are left out because `kgqa corpus remove` removed them.
        chunks: Number of chunks of the added and changed documents.
        extracted: Chunks that were given to the extractor; `reused`: chunks whose results were known from before.
        failed: Chunks whose extraction failed; `waiting`: chunks that were not reached before the limit on costs.
        rejected: Number of statements that the extractor found and refused.
        malformed: Number of malformed triples in files of triples.
        skipped: Files that were left out, with the reason.
        calls, prompt_tokens, completion_tokens, cost: What the language model used; `cost` is None without a price.
        undecided: Number of pairs of names that may mean one entity, and were not merged.
        merges: Number of new decisions that two names mean one entity; `links`: of new links to a knowledge graph.
        communities: Number of communities; `summaries`: how many summaries were written anew.
        edits: Number of edits that were recorded.
        seconds: Wall time of each stage.
        stopped: Why the build ended early; "" if it did not.
        notes: What a user should know.
    """

    folder: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    kept_out: int = 0
    chunks: int = 0
    extracted: int = 0
    reused: int = 0
    failed: int = 0
    waiting: int = 0
    rejected: int = 0
    malformed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    merges: int = 0
    undecided: int = 0
    links: int = 0
    communities: int = 0
    summaries: int = 0
    edits: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    stopped: str = ""
    notes: list[str] = field(default_factory=list)

    def add_usage(self, usage: Usage) -> None:
        """Add what the language model used."""
        self.calls += usage.calls
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost

    @property
    def complete(self) -> bool:
        """Whether nothing is left for another run of the same command."""
        return not (self.failed or self.waiting or self.stopped)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        start = time.monotonic()
        yield
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.monotonic() - start, 3)
