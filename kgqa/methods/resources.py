"""The resources that all questions of a run share: graph, embeddings, language models, settings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kgqa.errors import StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.reading import background_limit
from kgqa.llm.asking import ask, ask_readings
from kgqa.llm.client import TypedPrompt
from kgqa.llm.models import Models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.json_values import Reading
from kgqa.methods.registry import method
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.tournaments.chooser import Scorer
from kgqa.settings.values import Settings
from kgqa.text.words import clean
from kgqa.trace.trace import Trace

T = TypeVar("T")
NOTE_AFTER_SECONDS = 5.0
"""Seconds after which a note about the indexing of names is shown."""
SERVER_SECONDS = 120.0
"""Time limit in seconds for each query for names on a server."""


@dataclass(frozen=True)
class Resources:
    """The graph, embedding model, language models and settings of a run. Immutable and thread-safe."""

    graph: KnowledgeGraph
    encoder: CachedEncoder | None
    settings: Settings
    ranker: Scorer | None = None
    """The trained ranker; None if the settings name no ranker."""
    models: Models | None = None
    """The language models; None if the settings name no model."""
    prompts: Prompts = field(default_factory=Prompts)
    corpus: Any | None = None
    """The text corpus; None if the graph is not that of a corpus."""
    owns_corpus: bool = False
    """Whether `close` closes the corpus, too."""

    @property
    def by_model(self) -> bool:
        """Whether a language model compares the candidates, as selected by the setting `rank.chooser`."""
        return self.models is not None and self.settings.rank.chooser in ("auto", "llm")

    def ask(self, asked: Sequence[TypedPrompt[T]], trace: Trace) -> list[T | None]:
        """Send prompts of one stage, charged to `trace`, and return the values of the replies (see `asking.ask`)."""
        assert self.models is not None
        return ask(self.models.for_question(trace), self.prompts, asked, reask=self.settings.llm.reask)

    def read(self, prompt: TypedPrompt[T], trace: Trace, *, with_reasoning: bool = False) -> Reading[T]:
        """Send a prompt, charged to `trace`, and return what was read of the reply (see `asking.ask_readings`)."""
        assert self.models is not None
        models, reask = self.models.for_question(trace), self.settings.llm.reask
        (reading,) = ask_readings(models, self.prompts, [prompt], reask=reask, with_reasoning=with_reasoning)
        return reading

    def __repr__(self) -> str:
        names = [self.encoder.name] if self.encoder is not None else []
        names += sorted({model.name for model in self.models.by_stage.values()}) if self.models is not None else []
        return f"<Resources of method {self.settings.ask.method}: {', '.join([repr(self.graph), *names])}>"

    def open_names(self, *, required: bool, note: Callable[[str], None]) -> None:
        """Build the index of entity names before the first question, which uses no question's budget.

        Args:
            required: True if the questions need the index; otherwise errors are only noted.
            note: Called with messages for people, also from other threads.

        Raises:
            StoreError: The index is required, and the names cannot be counted or read.
        """
        if not method(self.settings.ask.method).topics:
            return
        graph, place = self.graph, clean(self.graph.store.location)
        seconds = max(SERVER_SECONDS, graph.timeout)
        text = f"Indexing the entity names of {place}, once for all questions. This may take some minutes."
        timer = threading.Timer(NOTE_AFTER_SECONDS, note, [text])
        timer.daemon = True
        timer.start()
        try:
            graph.tables.names.within((lambda: seconds) if graph.store.capabilities.remote else background_limit)
        except StoreError as error:
            if required:
                raise
            note(f"The entity names of {place} could not be indexed beforehand: {clean(str(error))}")
        finally:
            timer.cancel()

    def silent(self, seconds: float) -> list[str]:
        """List the servers that send no reply within `seconds`, each by its URL or the name of its model."""
        gone = [] if self.graph.store.responds(seconds) else [self.graph.store.location]
        if self.encoder is not None and not self.encoder.responds(seconds):
            gone.append(f"the embedding model {self.encoder.name}")
        return gone + (self.models.unresponsive(seconds) if self.models is not None else [])

    def close(self) -> None:
        """Close the graph and the language models."""
        self.graph.close()
        if self.models is not None:
            self.models.close()
        if self.owns_corpus and self.corpus is not None:
            self.corpus.close()

    def __enter__(self) -> Resources:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
