"""The graph on which PageRank runs: entities and chunks, connected by statements, mentions and similar names.

Its nodes are the rows of the entities, then the rows of the chunks (HippoRAG 2, Gutiérrez et al. 2025, section 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter, DamagedIndex
from kgqa.corpus.index.piece_table import PieceTable
from kgqa.corpus.index.vector_store import VectorSnapshot
from kgqa.corpus.records import CorpusReader
from kgqa.model import Entity

SIMILAR = 0.8
"""Least cosine of two names that are connected."""
MOST_SIMILAR = 100
"""Most similar names to which one name is connected."""
MAX_COMPARED = 200_000
"""With more entities than this, names are not compared: the time grows with the square of their number."""
MAX_PAIRED = 8
"""Participants of a hyperedge that are connected with each other; those of a larger one meet only in its chunks."""
_COMPARED_AT_A_TIME = 1 << 26


@dataclass(frozen=True)
class GraphMatrix:
    """The graph of a corpus.

    Attributes:
        entities, chunks: How many nodes there are of each kind; the entities come first.
        transitions: Sparse matrix (scipy, CSR) of shape (nodes, nodes); column j holds the probabilities of a step from
            node j. The column of a node without edges is empty.
        facts: The nodes of each statement's subject and object, int32 of shape (statements, 2); -1 for a literal.
        mentions: In how many chunks each entity is mentioned, int32 of shape (entities,).
    """

    entities: int
    chunks: int
    transitions: Any
    facts: np.ndarray
    mentions: np.ndarray


def write_graph_matrix(
    writer: ArrayWriter, reader: CorpusReader, folder: ArrayFolder, vectors: VectorSnapshot | None
) -> None:
    """Compute the graph of a corpus and write it.

    Args:
        writer: The new folder, whose pieces are already written.
        reader: The corpus.
        folder: The pieces of the new folder, opened.
        vectors: The vectors of the entities; None to connect no similar names.
    """
    import scipy.sparse

    entities, chunks = PieceTable(folder, "entity"), PieceTable(folder, "chunk")
    entity_rows = {entities.iris[row]: row for row in range(len(entities))}
    chunk_rows = {chunks.iris[row]: row for row in range(len(chunks))}
    edges = _Edges(len(entities))
    facts = np.full((sum(1 for _ in reader.statements()), 2), -1, dtype=np.int32)
    for row, statement in enumerate(reader.statements()):
        subject = entity_rows.get(statement.subject, -1)
        value = entity_rows.get(statement.object.iri, -1) if isinstance(statement.object, Entity) else -1
        facts[row] = subject, value
        known = {place.chunk for place in statement.places} & chunk_rows.keys()
        if -1 not in (subject, value) and subject != value:
            edges.connect(subject, value, max(1, len(known)))
        for entity in {subject, value} - {-1}:
            edges.mention(entity, (chunk_rows[chunk] for chunk in known))
    for hyperedge in reader.hyperedges():
        found = sorted({entity_rows[iri] for _, iri in hyperedge.participants if iri in entity_rows})
        if 1 < len(found) <= MAX_PAIRED:
            for one, other in combinations(found, 2):
                edges.connect(one, other, 1 / (len(found) - 1))
        known = {place.chunk for place in hyperedge.places} & chunk_rows.keys()
        for entity in found:
            edges.mention(entity, (chunk_rows[chunk] for chunk in known))
    names: list[str] = []
    for row, record in enumerate(reader.entities()):
        known = {place.chunk for place in record.places} & chunk_rows.keys()
        edges.mention(row, (chunk_rows[chunk] for chunk in known))
        names.append(record.name)
    if vectors is not None and 1 < len(entities) <= MAX_COMPARED:
        edges.add(*similar_names(entity_rows, names, vectors))
    size = len(entities) + len(chunks)
    matrix = scipy.sparse.csr_matrix(edges.triples(), shape=(size, size), dtype=np.float64)
    matrix.sum_duplicates()
    degrees = np.asarray(matrix.sum(axis=0)).ravel()
    matrix.data /= degrees[matrix.indices]
    writer.add("graph.facts", facts)
    writer.add("graph.mentions", edges.mentions_of(len(entities)))
    writer.add("graph.weights", matrix.data.astype(np.float32))
    writer.add("graph.columns", matrix.indices.astype(np.int32))
    writer.add("graph.starts", matrix.indptr.astype(np.int64))


def read_graph_matrix(folder: ArrayFolder, *, entities: int, chunks: int, statements: int) -> GraphMatrix:
    """Open the graph.

    Raises:
        DamagedIndex: The files are not what `write_graph_matrix` writes.
    """
    import scipy.sparse

    size = entities + chunks
    facts, mentions = folder.array("graph.facts", "int32", 2), folder.array("graph.mentions", "int32")
    weights, columns = folder.array("graph.weights", "float32"), folder.array("graph.columns", "int32")
    starts = folder.array("graph.starts", "int64")
    if (
        len(facts) != statements
        or len(mentions) != entities
        or len(starts) != size + 1
        or (len(facts) and not -1 <= facts.min() <= facts.max() < entities)
        or starts[0] != 0
        or starts[-1] != len(columns)
        or len(weights) != len(columns)
        or (np.diff(starts) < 0).any()
        or (len(columns) and not 0 <= columns.min() <= columns.max() < size)
    ):
        raise DamagedIndex("the matrix of the graph")  # scipy does not check positions when it multiplies
    if len(columns) < 1 << 31:
        starts = starts.astype(np.int32)  # else scipy copies the columns
    transitions = scipy.sparse.csr_matrix((weights, columns, starts), shape=(size, size))
    return GraphMatrix(entities, chunks, transitions, facts, mentions)


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


def similar_names(
    rows: Mapping[str, int], names: Sequence[str], vectors: VectorSnapshot
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of entities with similar names: the rows of each pair, and their cosine.

    Names with different numbers are not similar, however close their vectors are: 1941 is not 1942.
    """
    iris, array = vectors.vectors("entity")
    nodes = np.array([rows.get(iri, -1) for iri in iris], dtype=np.int64)
    numbers: dict[str, int] = {}
    digits = [_digits(names[row]) if row >= 0 else "" for row in nodes]
    classes = np.array([numbers.setdefault(each, len(numbers)) for each in digits])
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    step = max(1, _COMPARED_AT_A_TIME // max(1, len(array)))
    for start in range(0, len(array), step):
        cosines = array[start : start + step] @ array[start:].T  # each pair once
        ones, others = np.nonzero(cosines >= SIMILAR)
        kept = (others > ones) & (classes[start + ones] == classes[start + others])
        kept &= (nodes[start + ones] >= 0) & (nodes[start + others] >= 0)
        kept &= nodes[start + ones] != nodes[start + others]
        ones, others = ones[kept], others[kept]
        found.append((nodes[start + ones], nodes[start + others], cosines[ones, others].astype(np.float64)))
    ones, others, weights = (np.concatenate(each) for each in zip(*found)) if found else (np.empty(0, int),) * 3
    return _nearest(ones, others, weights, len(rows))


def _nearest(
    ones: np.ndarray, others: np.ndarray, weights: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keep the `MOST_SIMILAR` best pairs of each entity."""
    kept = np.ones(len(weights), dtype=bool)
    for side in (ones, others):
        order = np.lexsort((others, ones, -weights, side))
        sizes = np.bincount(side, minlength=count)
        place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept[order[place >= MOST_SIMILAR]] = False
    return ones[kept], others[kept], weights[kept]


def _digits(text: str) -> str:
    return " ".join(re.findall(r"\d+", text))
