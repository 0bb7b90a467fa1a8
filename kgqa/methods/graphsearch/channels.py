"""The two channels of retrieval: semantic queries find text, relational queries find triples and paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.errors import SettingsError
from kgqa.methods.evidence import Exhibits, shown_passages
from kgqa.methods.graphsearch.sub_queries import SubQuery, pattern_words
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.pattern_paths import PatternPaths, facts_first
from kgqa.methods.text.searching import TextSearch, within_tokens
from kgqa.model import Piece, PieceKind
from kgqa.text.words import normalise

SEMANTIC, RELATIONAL = "semantic", "relational"
RETRIEVERS: Mapping[str, str] = {"best": "best", "rrf": "rrf", "ppr": "pagerank", "path": "paths", "hyper": "best"}
"""The retriever of passages for each value of `graphsearch.retriever`."""
PASSAGE_TOKENS = 1600
"""About how many tokens the passages of a prompt for one sub-question have; the facts beside them are short."""
NO_HYPEREDGES = "graphsearch.retriever=hyper needs hyperedges, and the corpus has none."
BUILD_HYPEREDGES = "Build one with hyperedges: kgqa corpus build DOCUMENTS --into CORPUS --extract hyperedges"
MAX_FACTS = 8
MAX_FACT_CHARS = 300


class Channels:
    """Retrieves for sub-questions in both channels.

    Args:
        search: The retrievers of the question.
        settings: The settings of the method.
        published: Whether the relational channel finds entities, too, and tells no fact again as a path.

    Attributes:
        names: The channels that have something to search; if none has, all that were chosen.
        searchable: Whether the corpus has anything that a channel searches.

    Raises:
        SettingsError: Hyperedges are wanted, and the corpus has none.
    """

    def __init__(self, search: TextSearch, settings: GraphSearchSettings, *, published: bool = False) -> None:
        facts: PieceKind = "hyperedge" if settings.retriever == "hyper" else "statement"
        if facts == "hyperedge" and not search.count(facts):
            raise SettingsError(NO_HYPEREDGES, BUILD_HYPEREDGES)
        self._search = search
        self._published = published
        self._k = settings.top_k
        self._retriever = RETRIEVERS[settings.retriever]
        self._paths = PatternPaths(search.graph, search.corpus.index, search.resources.encoder)
        kinds: dict[str, tuple[PieceKind, ...]] = {"text": ("chunk",), "graph": (facts,), "all": ("chunk", facts)}
        sources = {SEMANTIC: settings.semantic_from, RELATIONAL: settings.relational_from}
        self._kinds = {name: [kind for kind in kinds[source] if search.count(kind)] for name, source in sources.items()}
        names = (SEMANTIC, RELATIONAL) if settings.channels == "both" else (settings.channels,)
        self.names = tuple(name for name in names if self._kinds[name]) or names
        self.searchable = any(self._kinds[name] for name in names)

    def retrieve(self, queries: Sequence[SubQuery]) -> list[Exhibits[Piece]]:
        """Search for sub-questions in all channels at once, and return what prompts show for each of them."""
        by_channel = zip(*(self.in_channel(channel, queries) for channel in self.names))
        return [self._shown([piece for shown in several for piece in shown]) for several in by_channel]

    def in_channel(self, channel: str, queries: Sequence[SubQuery]) -> list[Exhibits[Piece]]:
        """Search for sub-questions in one channel; a query without words finds nothing."""
        found: list[list[Piece]] = [[] for _ in queries]
        asked = [(query, pieces) for query, pieces in zip(queries, found) if self.words(channel, query).strip()]
        for kind in self._kinds[channel]:
            several = self._find(channel, kind, [query for query, _ in asked])
            for (_, pieces), more in zip(asked, several):
                pieces.extend(more)
        return [Exhibits(self._search.corpus, pieces) for pieces in found]

    def _find(self, channel: str, kind: PieceKind, queries: Sequence[SubQuery]) -> list[list[Piece]]:
        words = [self.words(channel, query) for query in queries]
        options: dict[str, Any] = {"steps": [query.number for query in queries], "channel": channel}
        if kind == "chunk":
            return self._search.search(words, self._k, retriever=self._retriever, **options)
        found = self._search.search(words, self._k, kind=kind, **options)
        if channel == RELATIONAL and self._published and self._search.count("entity"):
            entities = self._search.search(words, self._k, kind="entity", **options)
            found = [facts_first(facts, others, self._k) for facts, others in zip(found, entities)]
        if channel == RELATIONAL and kind == "statement":
            found = [self._with_paths(query, facts) for query, facts in zip(queries, found)]
        return found

    def _with_paths(self, query: SubQuery, facts: list[Piece]) -> list[Piece]:
        """Return facts fused with the paths of a sub-question's patterns."""
        words = self.words(RELATIONAL, query)
        paths = self._search.tolerant(lambda: self._paths.search(query.patterns, words, self._k))
        if self._published:
            known = {triple for piece in facts for triple in piece.triples}
            paths = [path for path in paths if not known.issuperset(path.triples)]
        if not paths:
            return facts
        self._search.record([query.text], [paths], [query.number], RELATIONAL)
        return facts_first(facts, paths, self._k)

    @staticmethod
    def words(channel: str, query: SubQuery) -> str:
        """Return the query of a sub-question in a channel: its text, or the words of its patterns."""
        return (pattern_words(query.patterns) if channel == RELATIONAL else "") or query.text

    def _shown(self, pieces: Sequence[Piece]) -> Exhibits[Piece]:
        """Return the first pieces, as many as a prompt shows; facts without words that can be quoted are left out."""
        chunks = {piece.iri: piece for piece in pieces if piece.kind == "chunk"}
        shown = Exhibits(self._search.corpus, within_tokens(list(chunks.values()), PASSAGE_TOKENS))
        facts: dict[str, Piece] = {}
        for each in pieces:
            words = normalise(each.text)
            if each.kind != "chunk" and words not in facts and len(facts) < MAX_FACTS and any(_source(each, shown)):
                facts[words] = each
        return Exhibits(self._search.corpus, [*shown, *facts.values()])


def interleaved(several: Iterable[Sequence[Piece]]) -> list[Piece]:
    """Return the first pieces of all sequences, then the second ones, and so on; each piece once."""
    found: dict[str, Piece] = {}
    for piece in filter(None, chain.from_iterable(zip_longest(*several))):
        found.setdefault(piece.iri, piece)
    return list(found.values())


def prompt_values(shown: Exhibits[Piece]) -> dict[str, Any]:
    """Return pieces as values of a prompt: the passages, and the facts with the words that state them."""
    facts = []
    for piece in shown.facts:
        place, sentence = _source(piece, shown)
        facts.append({"text": piece.text, "passage": place, "sentence": sentence})
    return {"passages": shown_passages(shown.passages, shown.corpus), "facts": facts}


def _source(piece: Piece, shown: Exhibits[Piece]) -> tuple[int, str]:
    """Return the number of a shown passage that states a fact, or 0 and its sentences; "" if they are too long."""
    if place := next(filter(None, (shown.number(span.chunk) for span in piece.spans)), 0):
        return place, ""
    for span, chunk in shown.places(piece):
        around = [each for each in sentence_spans(chunk.text) if each[0] < span.end and span.begin < each[1]]
        text = chunk.text[around[0][0] : around[-1][1]] if around else ""
        return 0, text if len(text) <= MAX_FACT_CHARS else ""
    return 0, ""
