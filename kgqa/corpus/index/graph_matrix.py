"""The graph on which PageRank runs: entities and chunks, connected by statements, mentions and similar names.

Its nodes are the rows of the entities, then the rows of the chunks (HippoRAG 2, Gutiérrez et al. 2025, section 3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np

from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter, DamagedIndex
from kgqa.corpus.index.piece_table import PieceTable
from kgqa.corpus.index.similar_names import SimilarNames
from kgqa.corpus.records import CorpusReader
from kgqa.model import Entity

MAX_PAIRED = 8
"""Participants of a hyperedge that are connected with each other; those of a larger one meet only in its chunks."""


@dataclass(frozen=True)
class GraphMatrix:
    """The graph of a corpus.

    Attributes:
        entities, chunks: How many nodes there are of each kind; the entities come first.
        transitions: Sparse matrix (scipy, CSR) of shape (nodes, nodes); column j holds the probabilities of a step from
            node j. The column of a node without edges is empty.
        parties: The entities of all statements, then those of all hyperedges, int32.
        starts: Where the entities of each statement and hyperedge begin in `parties`, int64; the last one is its end.
        mentions: In how many chunks each entity is mentioned, int32 of shape (entities,).
    """

    entities: int
    chunks: int
    transitions: Any
    parties: np.ndarray
    starts: np.ndarray
    mentions: np.ndarray

    def entities_of(self, fact: int) -> list[int]:
        """Return the entities of a statement, or of a hyperedge, whose rows follow those of the statements."""
        nodes: list[int] = self.parties[self.starts[fact] : self.starts[fact + 1]].tolist()
        return nodes

    def facts_of(self, entities: Collection[int]) -> list[int]:
        """Return the statements and hyperedges, numbered as for `entities_of`, in which an entity takes part."""
        places = np.flatnonzero(np.isin(self.parties, list(entities)))
        facts: list[int] = np.unique(np.searchsorted(self.starts, places, side="right") - 1).tolist()
        return facts


def write_graph_matrix(
    writer: ArrayWriter, reader: CorpusReader, folder: ArrayFolder, similar: SimilarNames | None
) -> None:
    """Compute the graph of a corpus and write it.

    Args:
        writer: The new folder, whose pieces are already written.
        reader: The corpus.
        folder: The pieces of the new folder, opened.
        similar: The entities with similar names; None to connect none.
    """
    import scipy.sparse

    entities, chunks = PieceTable(folder, "entity"), PieceTable(folder, "chunk")
    entity_rows = {entities.iris[row]: row for row in range(len(entities))}
    chunk_rows = {chunks.iris[row]: row for row in range(len(chunks))}
    edges = _Edges(len(entities))
    facts: list[list[int]] = []
    for statement in reader.statements():
        subject = entity_rows.get(statement.subject, -1)
        value = entity_rows.get(statement.object.iri, -1) if isinstance(statement.object, Entity) else -1
        facts.append(sorted({subject, value} - {-1}))
        known = {place.chunk for place in statement.places} & chunk_rows.keys()
        if -1 not in (subject, value) and subject != value:
            edges.connect(subject, value, max(1, len(known)))
        for entity in facts[-1]:
            edges.mention(entity, (chunk_rows[chunk] for chunk in known))
    for hyperedge in reader.hyperedges():
        found = sorted({entity_rows[iri] for _, iri in hyperedge.participants if iri in entity_rows})
        facts.append(found)
        if 1 < len(found) <= MAX_PAIRED:
            for one, other in combinations(found, 2):
                edges.connect(one, other, 1 / (len(found) - 1))
        known = {place.chunk for place in hyperedge.places} & chunk_rows.keys()
        for entity in found:
            edges.mention(entity, (chunk_rows[chunk] for chunk in known))
    for row, record in enumerate(reader.entities()):
        known = {place.chunk for place in record.places} & chunk_rows.keys()
        edges.mention(row, (chunk_rows[chunk] for chunk in known))
    if similar is not None:
        edges.add(*similar.pairs())
    size = len(entities) + len(chunks)
    matrix = scipy.sparse.csr_matrix(edges.triples(), shape=(size, size), dtype=np.float64)
    matrix.sum_duplicates()
    degrees = np.asarray(matrix.sum(axis=0)).ravel()
    matrix.data /= degrees[matrix.indices]
    writer.add("graph.parties", np.array(list(chain.from_iterable(facts)), dtype=np.int32))
    writer.add("graph.facts", np.cumsum([0, *map(len, facts)], dtype=np.int64))
    writer.add("graph.mentions", edges.mentions_of(len(entities)))
    writer.add("graph.weights", matrix.data.astype(np.float32))
    writer.add("graph.columns", matrix.indices.astype(np.int32))
    writer.add("graph.starts", matrix.indptr.astype(np.int64))


def read_graph_matrix(folder: ArrayFolder, *, entities: int, chunks: int, facts: int) -> GraphMatrix:
    """Open the graph; `facts` is the number of statements and hyperedges.

    Raises:
        DamagedIndex: The files are not what `write_graph_matrix` writes.
    """
    import scipy.sparse

    size = entities + chunks
    parties, mentions = folder.array("graph.parties", "int32"), folder.array("graph.mentions", "int32")
    fact_starts = folder.array("graph.facts", "int64")
    weights, columns = folder.array("graph.weights", "float32"), folder.array("graph.columns", "int32")
    starts = folder.array("graph.starts", "int64")
    if (
        len(mentions) != entities
        or not _are_starts(fact_starts, facts, len(parties))
        or (len(parties) and not 0 <= parties.min() <= parties.max() < entities)
        or not _are_starts(starts, size, len(columns))
        or len(weights) != len(columns)
        or (len(columns) and not 0 <= columns.min() <= columns.max() < size)
    ):
        raise DamagedIndex("the matrix of the graph")  # scipy does not check positions when it multiplies
    if len(columns) < 1 << 31:
        starts = starts.astype(np.int32)  # else scipy copies the columns
    transitions = scipy.sparse.csr_matrix((weights, columns, starts), shape=(size, size))
    return GraphMatrix(entities, chunks, transitions, parties, fact_starts, mentions)


def _are_starts(starts: np.ndarray, count: int, end: int) -> bool:
    """Return whether an array divides `end` values into `count` parts."""
    return bool(len(starts) == count + 1 and starts[0] == 0 and starts[-1] == end and (np.diff(starts) >= 0).all())


class _Edges:
    """Collects undirected edges with weights; edges between the same nodes add up."""

    def __init__(self, entities: int) -> None:
        self._entities = entities
        self._pairs: dict[tuple[int, int], float] = {}
        self._mentions: set[tuple[int, int]] = set()
        self._more: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def connect(self, one: int, other: int, weight: float) -> None:
        pair = (one, other) if one < other else (other, one)
        self._pairs[pair] = self._pairs.get(pair, 0.0) + weight

    def mention(self, entity: int, chunks: Iterable[int]) -> None:
        self._mentions.update((entity, self._entities + chunk) for chunk in chunks)

    def add(self, ones: np.ndarray, others: np.ndarray, weights: np.ndarray) -> None:
        """Add edges in both directions."""
        self._more += [(ones, others, weights), (others, ones, weights)]

    def mentions_of(self, entities: int) -> np.ndarray:
        """Return in how many chunks each entity is mentioned."""
        counts = np.zeros(entities, dtype=np.int32)
        if self._mentions:
            np.add.at(counts, np.array([entity for entity, _ in self._mentions]), 1)
        return counts

    def triples(self) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return the weights of all edges, and their rows and columns."""
        pairs = np.array([*self._pairs, *sorted(self._mentions)], dtype=np.int64).reshape(-1, 2)
        weights = np.array([*self._pairs.values(), *[1.0] * len(self._mentions)])
        self.add(pairs[:, 0], pairs[:, 1], weights)
        rows, columns, values = (np.concatenate(each) for each in zip(*self._more))
        return values, (rows, columns)
