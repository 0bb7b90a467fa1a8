"""What every question of a run shares: the graph, the embeddings, the settings."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa.graph.graph import KnowledgeGraph
from kgqa.rank.chooser import Scorer
from kgqa.rank.semantic import CachedEncoder
from kgqa.settings import Settings


@dataclass(frozen=True)
class Resources:
    """Frozen, thread-safe; methods take it and keep nothing."""

    graph: KnowledgeGraph
    encoder: CachedEncoder | None
    settings: Settings
    ranker: Scorer | None = None
    """A trained ranker, where the settings name one."""

    def close(self) -> None:
        self.graph.close()

    def __enter__(self) -> Resources:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
