"""What the checks examine: the settings, and what earlier checks opened, chosen or drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field

from kgqa.cache import Cache
from kgqa.doctor.limited_store import LimitedStore
from kgqa.doctor.model_calls import ModelCalls
from kgqa.doctor.sample import Sample
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, GraphId
from kgqa.settings import Settings

REASONS = {
    "store": "There is no graph to check.",
    "server": "Only a server has a profile.",
    "view": "The graph could not be queried.",
    "bears_load": "Skipped, because the server is a public service, on which this check would put too much load.",
    "graph": "No schema could be chosen.",
    "sample": "No edges were sampled.",
    "model": "The model does not answer.",
}
"""Why a check is skipped, by the attribute of `Subject` that it needs and that no earlier check has set."""


@dataclass
class Subject:
    """What is examined. Checks set the attributes without a default, one after the other.

    Attributes:
        settings: the settings, including the graph's own.
        cache: the cache that the settings name.
        asks_model: whether to call the language model.
        say: function called with a message before slow work that is done only once.
        id: the graph, as far as known; None if there is none.
        query_seconds: duration of an exploration query (p95); None if it was not measured.
        encoder: whether embeddings are available.
        reasons: why checks are skipped that need something which is missing.
        opened: closes what the checks have opened.
        store: the graph's store, once it has answered. server: the same, if it is a SPARQL server.
        bears_load: set if the store is not a public service, on which the checks must not put load.
        view: the named graphs; empty for the default graph.
        graph: the graph with its schema. sample: a sample of it.
        model: the calls of the language model.
    """

    settings: Settings
    cache: Cache
    asks_model: bool = True
    say: Callable[[str], None] = lambda text: None
    id: GraphId | None = None
    query_seconds: float | None = None
    encoder: bool = False
    reasons: dict[str, str] = field(default_factory=REASONS.copy)
    opened: ExitStack = field(default_factory=ExitStack)
    store: LimitedStore = field(init=False)
    server: EndpointStore = field(init=False)
    bears_load: bool = field(init=False)
    view: tuple[Entity, ...] = field(init=False)
    graph: KnowledgeGraph = field(init=False)
    sample: Sample = field(init=False)
    model: ModelCalls = field(init=False)

    @property
    def triples(self) -> int | None:
        """The number of triples; None if it is not known."""
        return self.id.triples if self.id else None

    def lacks(self, needs: Iterable[str]) -> str:
        """Explain why a check is skipped that needs some attributes; return an empty text if all are there."""
        return next((self.reasons[each] for each in needs if not hasattr(self, each)), "")
