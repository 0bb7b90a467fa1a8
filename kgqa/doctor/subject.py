"""What the checks examine: the settings, and what earlier checks opened, chosen or drawn."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from kgqa.cache import Cache
from kgqa.doctor.limited_store import LimitedStore, open_limited
from kgqa.doctor.model_calls import ModelCalls
from kgqa.doctor.sample import Sample
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, GraphId
from kgqa.settings import Settings

NO_GRAPH = "There is no graph to check."
NOT_SEEN = "The graph could not be queried."
NO_SCHEMA = "No schema could be chosen."
MISFIT = "The schema does not fit the graph."
NO_SAMPLE = "No edges were sampled."
NO_REPLY = "The model does not answer."
NO_SERVER = "Only a server has a profile."
PUBLIC = "Skipped, because the server is a public service, on which this check would put too much load."
GRAPH_NEEDS = {"store": NO_GRAPH, "view": NOT_SEEN, "graph": NO_SCHEMA, "sample": NO_SAMPLE}
"""What checks of a graph need, each of which needs those before it, and why a check that lacks it is skipped."""


class Subject:
    """What is examined. Checks add the attributes `store`, `view`, `graph`, `sample` and `model`, one after the other.

    Attributes:
        settings: the settings, including the graph's own.
        cache: the cache that the settings name.
        asks_model: whether to call the language model.
        say: function called with a message before slow work that is done only once.
        store: the graph's store, once it has answered.
        view: the named graphs; empty for the default graph.
        graph: the graph with its schema.
        sample: a sample of the graph.
        id: the graph, as far as known; None if there is none.
        model: the calls of the language model.
        query_seconds: duration of an exploration query (p95); None if it was not measured.
        encoder: whether embeddings are available.
        reasons: why checks are skipped that need something which is missing.
    """

    store: LimitedStore
    view: tuple[Entity, ...]
    graph: KnowledgeGraph
    sample: Sample
    model: ModelCalls

    def __init__(
        self,
        settings: Settings,
        cache: Cache,
        *,
        asks_model: bool = True,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.settings = settings
        self.cache = cache
        self.asks_model = asks_model
        self.say = say
        self.id: GraphId | None = None
        self.query_seconds: float | None = None
        self.encoder = False
        self.reasons = {**GRAPH_NEEDS, "model": NO_REPLY}
        self._opened: LimitedStore | None = None

    def open_store(self) -> LimitedStore:
        """Open the store given in the settings. Nothing is sent to a server yet."""
        self._opened = open_limited(self.settings, self.cache)
        return self._opened

    def close(self) -> None:
        """Close the graph and its store, if they were opened."""
        if hasattr(self, "graph"):
            self.graph.tables.close()
        if self._opened is not None:
            self._opened.close()

    @property
    def triples(self) -> int | None:
        """The number of triples; None if it is not known."""
        return self.id.triples if self.id else None

    @property
    def public(self) -> bool:
        """Whether the server is a public service, on which the checks must not put load."""
        server = self.store.server
        if server is None:
            return False
        return not server.profile.allows_scans or (urlsplit(server.url).hostname or "").lower() in server.profile.hosts

    def lacks(self, need: str) -> str:
        """Explain why a check is skipped; return an empty text if the subject has what the check needs.

        Args:
            need: the attribute that the check needs; "server", a server; "load", a server that may be put under load,
                or a folder; or "" for nothing.
        """
        last = {"server": "store", "load": "view"}.get(need, need)
        stages = tuple(GRAPH_NEEDS)
        for each in stages[: stages.index(last) + 1] if last in stages else (last,):
            if each and not hasattr(self, each):
                return self.reasons[each]
        if need == "server" and self.store.server is None:
            return NO_SERVER
        return PUBLIC if need == "load" and self.public else ""
