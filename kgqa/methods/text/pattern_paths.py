"""Paths for patterns of triples, such as "Emma, author, ?": relation paths whose hops resemble the relations' words.

No language model is asked: paths are compared with the words of each hop by a prefilter and a chunked tournament.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.retrieve.fused import fuse
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.text.path_pieces import explored, path_pieces
from kgqa.model import Candidate, Entity, Piece
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.prefilter import prefilter
from kgqa.rank.tournaments.chooser import ScoringChooser, text_similarity
from kgqa.rank.tournaments.listwise import chunked
from kgqa.search.conjunction import JoinFinder
from kgqa.search.linking import find_mentions
from kgqa.text.words import normalise
from kgqa.trace.trace import Trace

Pattern = tuple[str, str, str]
"""Subject, relation and object in words; a subject or object such as ? or #1 is not known."""
MAX_HOPS = 3
MAX_CHAINS = 4
"""Most chains of patterns for which paths are searched."""
BEAM = 10
KEPT = 5
"""Most paths of a chain."""
PARTNERS = 20
_UNKNOWN = re.compile(r"\s*(?:\?\w*|(?:Entity)?#\d+)?\s*", re.IGNORECASE)
_FACTS_FIRST = (1.0, 0.999)
"""Weights of facts and of others in their fusion: where both have the same rank, the fact comes first."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Patterns that follow each other from a name to something unknown, in words.

    Attributes:
        name: The name at which the chain begins.
        relations: The relation of each hop.
        end: What is not known; chains with the same end meet there.
    """

    name: str
    relations: tuple[str, ...]
    end: str


def is_unknown(part: str) -> bool:
    """Return whether a part of a pattern is not known: empty, ?, or a reference such as #1."""
    return bool(_UNKNOWN.fullmatch(part))


def chains_of(patterns: Sequence[Pattern]) -> list[Chain]:
    """Return the longest chains that begin at each name of some patterns; a pattern without a name begins none.

    A chain follows what patterns share and is not known, in either direction, at most `MAX_HOPS` patterns.
    """
    names = dict.fromkeys(part for s, _, o in patterns for part in (s, o) if not is_unknown(part))
    found = [chain for name in names for chain in _from(name, name, (), (), patterns)]
    return list(dict.fromkeys(found))[:MAX_CHAINS]


def _from(
    name: str, at: str, relations: tuple[str, ...], used: tuple[int, ...], patterns: Sequence[Pattern]
) -> Iterator[Chain]:
    """Yield the chains that continue a chain at one of its ends."""
    longer = False
    for number, (subject, relation, object_) in enumerate(patterns):
        if number in used or at not in (subject, object_) or len(relations) == MAX_HOPS:
            continue
        there = object_ if at == subject else subject
        if is_unknown(there):
            longer = True
            yield from _from(name, there, (*relations, relation), (*used, number), patterns)
    if relations and not longer:
        yield Chain(name, relations, at)


class PatternPaths:
    """Finds the paths of patterns in the facts of a corpus.

    Args:
        graph: The view of the graph in which paths are searched, charged to the question.
        index: The index of the corpus.
        encoder: The embedding model; None to compare by words only.
    """

    def __init__(self, graph: KnowledgeGraph, index: CorpusIndex, encoder: CachedEncoder | None = None) -> None:
        self._graph = graph
        self._index = index
        self._encoder = encoder
        similarity = text_similarity(encoder)
        self._chooser = ScoringChooser(lambda question, pool: similarity(question, [c.words for c in pool]), "words")

    def search(self, patterns: Sequence[Pattern], query: str, k: int) -> list[Piece]:
        """Find the best paths for patterns.

        Args:
            patterns: The patterns.
            query: The words with which walks along the paths are compared.
            k: Most pieces.
        """
        found = {chain: self._paths(chain) for chain in chains_of(patterns)}
        joined = list(self._joined(found))
        met = {path.path for path in joined}
        paths = [*joined, *(path for several in found.values() for path in several if path.path not in met)]
        # walks share the name with the query; words tell them apart well enough, and cost no embeddings
        return path_pieces(self._graph, paths, query, self._index, None)[:k]

    def _paths(self, chain: Chain) -> list[Candidate]:
        """Return the paths that resemble a chain, best first."""
        topic = self._topic(chain.name)
        if topic is None:
            return []

        def asked(pool: Sequence[Candidate]) -> str:
            hops = max(len(candidate.hops) for candidate in pool)
            return ", ".join(chain.relations[:hops]) or ", ".join(chain.relations)

        def best(pool: Sequence[Candidate]) -> list[Candidate]:
            return prefilter(asked(pool), pool, keep=BEAM, encoder=self._encoder)

        def win(pool: Sequence[Candidate]) -> list[Candidate]:
            return chunked(asked(pool), pool, self._chooser, k=KEPT)

        hops = explored(self._graph, [topic], len(chain.relations), best, win, Trace())
        return list(hops[-1].kept) if hops else []

    def _topic(self, name: str) -> Entity | None:
        """Return the entity with a name, or else the one that the longest mention in it means; None without one."""
        text = normalise(name)
        if not text:
            return None
        if exact := self._graph.names.exact([text]).get(text):
            degrees = self._graph.paths.degrees({match.entity for match in exact})
            return max(exact, key=lambda match: degrees[match.entity]).entity
        longest = max(find_mentions(self._graph, name), key=lambda mention: len(mention.text), default=None)
        return longest.matches[0].entity if longest else None

    def _joined(self, found: dict[Chain, list[Candidate]]) -> Iterator[Candidate]:
        """Yield paths that meet paths of another chain with the same end."""
        finder = JoinFinder(self._graph)
        for chain, paths in found.items():
            others = [path for other in found if other is not chain and other.end == chain.end for path in found[other]]
            for path in paths:
                partners = [each for each in others if each.path.topic != path.path.topic][:PARTNERS]
                yield from finder.joined(path, partners, 1) if partners else ()


def facts_first(facts: Sequence[Piece], others: Sequence[Piece], k: int) -> list[Piece]:
    """Fuse a ranking of facts and another one by reciprocal ranks; a fact precedes what has the same rank."""
    pieces = {piece.iri: piece for piece in (*others, *facts)}
    rankings = [[(piece.iri, piece.score) for piece in ranking] for ranking in (facts, others)]
    return [replace(pieces[iri], score=score) for iri, score in fuse(rankings, _FACTS_FIRST)[:k]]
