"""The two channels of retrieval: semantic queries find text, relational queries find triples and paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.errors import SettingsError
from kgqa.methods.evidence import Exhibits, shown_passages
from kgqa.methods.graphsearch.sub_queries import GroundedQuery, pattern_words
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

    Raises:
        SettingsError: Hyperedges are wanted, and the corpus has none.
    """

    def __init__(self, search: TextSearch, settings: GraphSearchSettings, *, published: bool = False) -> None:
        if settings.retriever == "hyper" and not search.count("hyperedge"):
            raise SettingsError(NO_HYPEREDGES, BUILD_HYPEREDGES)
        self._search = search
        self._published = published
        self._k = settings.top_k
        self._retriever = RETRIEVERS[settings.retriever]
        self._facts: PieceKind = "hyperedge" if settings.retriever == "hyper" else "statement"
        self._paths = PatternPaths(search.graph, search.corpus.index, search.encoder)
        channels = settings.channels
        self._sources: dict[str, str] = {
            SEMANTIC: settings.semantic_from,
            RELATIONAL: settings.relational_from,
        }
        names = (SEMANTIC, RELATIONAL) if channels == "both" else (channels,)
        # a channel that has nothing to search needs no sub-questions
        self.names = tuple(name for name in names if self._has_source(name)) or names

    def retrieve(self, queries: Sequence[GroundedQuery]) -> list[Exhibits[Piece]]:
        """Search for sub-questions in all channels at once, and return what prompts show for each of them."""
        if self._search.encoder is not None:
            # one batch for both channels; the searches find the vectors in the encoder's memory
            self._search.encoder.encode_questions([self.words(name, each) for name in self.names for each in queries])
        by_channel = zip(*(self.in_channel(channel, queries) for channel in self.names))
        return [_shown([piece for shown in several for piece in shown], self._search.corpus) for several in by_channel]

    def in_channel(self, channel: str, queries: Sequence[GroundedQuery]) -> list[Exhibits[Piece]]:
        """Search for sub-questions in one channel; a query without words finds nothing."""
        texts = [self.words(channel, query) for query in queries]
        asked = [at for at, text in enumerate(texts) if text.strip()]
        passages: dict[int, list[Piece]] = {}
        facts: dict[int, list[Piece]] = {}
        words, steps = [texts[at] for at in asked], [queries[at].number for at in asked]
        source = self._sources[channel]
        if source in ("text", "all"):
            options: dict[str, Any] = {"retriever": self._retriever, "steps": steps, "channel": channel}
            passages = dict(zip(asked, self._search.search(words, self._k, **options)))
        if source in ("graph", "all") and self._search.count(self._facts):
            options = {"kind": self._facts, "steps": steps, "channel": channel}
            facts = dict(zip(asked, self._search.search(words, self._k, **options)))
            if channel == RELATIONAL and self._published and self._search.count("entity"):
                entities = self._search.search(words, self._k, **{**options, "kind": "entity"})
                facts = {at: facts_first(facts[at], found, self._k) for at, found in zip(asked, entities)}
            if channel == RELATIONAL and self._facts == "statement":
                facts = {at: self._with_paths(queries[at], triples) for at, triples in facts.items()}
        found = ([*passages.get(at, ()), *facts.get(at, ())] for at in range(len(queries)))
        return [Exhibits(self._search.corpus, pieces) for pieces in found]

    @property
    def searchable(self) -> bool:
        """Whether the corpus has anything that a channel searches."""
        kinds: dict[str, list[PieceKind]] = {"text": ["chunk"], "graph": [self._facts], "all": ["chunk", self._facts]}
        return any(self._search.count(kind) for name in self.names for kind in kinds[self._sources[name]])

    def _has_source(self, channel: str) -> bool:
        return self._sources[channel] != "graph" or self._search.count(self._facts) > 0

    def _with_paths(self, query: GroundedQuery, triples: list[Piece]) -> list[Piece]:
        """Return triples fused with the paths of a sub-question's patterns."""
        if not query.patterns:
            return triples
        words = self.words(RELATIONAL, query)
        paths = self._search.tolerant(lambda: self._paths.search(query.patterns, words, self._k))
        if self._published:
            known = {triple for piece in triples for triple in piece.triples}
            paths = [path for path in paths if not known.issuperset(path.triples)]
        if not paths:
            return triples
        self._search.record([query.text], [paths], [query.number], RELATIONAL)
        return facts_first(triples, paths, self._k)

    @staticmethod
    def words(channel: str, query: GroundedQuery) -> str:
        """Return the query of a sub-question in a channel: its text, or the words of its patterns."""
        return (pattern_words(query.patterns) if channel == RELATIONAL else "") or query.text


def _shown(pieces: Sequence[Piece], corpus: Corpus) -> Exhibits[Piece]:
    """Return the first pieces, as many as a prompt shows; facts without words that can be quoted are left out."""
    chunks = {piece.iri: piece for piece in pieces if piece.kind == "chunk"}
    passages = within_tokens(list(chunks.values()), PASSAGE_TOKENS)
    shown = {piece.iri for piece in passages}
    facts: dict[str, Piece] = {}
    for each in pieces:
        known = each.kind == "chunk" or normalise(each.text) in facts
        if known or len(facts) == MAX_FACTS:
            continue
        if any(span.chunk in shown for span in each.spans) or _sentence(each, corpus):
            facts[normalise(each.text)] = each
    return Exhibits(corpus, [*passages, *facts.values()])


def interleaved(several: Iterable[Sequence[Piece]]) -> Iterator[Piece]:
    """Yield the first pieces of all sequences, then the second ones, and so on; each piece once."""
    found: dict[str, Piece] = {}
    for row in zip_longest(*several):
        for piece in filter(None, row):
            found.setdefault(piece.iri, piece)
    yield from found.values()


def prompt_values(shown: Exhibits[Piece]) -> dict[str, Any]:
    """Return pieces as values of a prompt: the passages, and the facts with the words that state them."""
    facts = []
    for piece in shown.facts:
        place = next((number for span in piece.spans if (number := shown.number(span.chunk))), 0)
        sentence = "" if place else _sentence(piece, shown.corpus)
        facts.append({"text": piece.text, "passage": place, "sentence": sentence})
    return {"passages": shown_passages(shown.passages, shown.corpus), "facts": facts}


def _sentence(piece: Piece, corpus: Corpus) -> str:
    """Return the sentences around the first place of a fact; "" if they are too long to be shown."""
    for span in piece.spans:
        chunk = corpus.chunk(span.chunk) if span.chunk else None
        if chunk is not None:
            around = [each for each in sentence_spans(chunk.text) if each[0] < span.end and span.begin < each[1]]
            text = chunk.text[around[0][0] : around[-1][1]] if around else ""
            return text if len(text) <= MAX_FACT_CHARS else ""
    return ""
