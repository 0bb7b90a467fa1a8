"""What every question of a run shares: the graph, the embeddings, the language models, the settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.models import Models
from kgqa.llm.prompts import Prompts
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.tournaments.chooser import Scorer
from kgqa.settings import Settings


@dataclass(frozen=True)
class Resources:
    """Frozen, thread-safe; methods take it and keep nothing."""

    graph: KnowledgeGraph
    encoder: CachedEncoder | None
    settings: Settings
    ranker: Scorer | None = None
    """A trained ranker, where the settings name one."""
    models: Models | None = None
    """Language models, where the settings name one."""
    prompts: Prompts = field(default_factory=Prompts)

    def silent(self, seconds: float) -> list[str]:
        """The servers that send no reply within so many seconds, each by its address or its model."""
        responds = getattr(self.graph.store, "responds", None)
        gone = [self.graph.store.location] if responds is not None and not responds(seconds) else []
        if self.encoder is not None and not self.encoder.responds(seconds):
            gone.append(f"the embedding model {self.encoder.name}")
        return gone + (self.models.unresponsive(seconds) if self.models is not None else [])

    def close(self) -> None:
        self.graph.close()
        if self.models is not None:
            self.models.close()

    def __enter__(self) -> Resources:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
