"""All triples of a graph as arrays of numbers, and functions that read them from a graph and write N-Triples."""

from __future__ import annotations

import gzip
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BufferedWriter, TextIOWrapper
from pathlib import Path

import numpy as np

from kgqa.errors import KgqaError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import render, render_term
from kgqa.model import Entity
from kgqa.text.hints import Command

MAX_TRIPLES = 5_000_000
SECONDS = 600.0

StageProgress = Callable[[str, int, int], None]
"""Function that receives the name of a stage, the number of finished steps, and the total number (0 if unknown)."""


class FictionError(KgqaError):
    """A graph cannot be rewired. The message gives the reason and what to do."""


@dataclass(frozen=True)
class Facts:
    """Triples grouped by relation, with numbers for nodes and relations.

    `terms`: every subject and object as N-Triples text, sorted; the index of a node is its number, which is the same on
    every machine. `relations`: IRIs, sorted; the index of a relation is its number. `subjects`, `objects`: for each
    relation, an int64 array with the node numbers of its distinct triples, sorted.
    """

    terms: list[str]
    relations: list[str]
    subjects: list[np.ndarray]
    objects: list[np.ndarray]

    @property
    def triples(self) -> int:
        """Number of triples."""
        return sum(map(len, self.subjects))

    def number(self, term: str) -> int | None:
        """Return the number of a term in N-Triples syntax, None if the term is not in the graph."""
        place = bisect_left(self.terms, term)
        return place if place < len(self.terms) and self.terms[place] == term else None

    def literal_kind(self, node: int) -> str:
        """Return the language or datatype suffix of a literal, a space if there is none; empty for entities."""
        term = self.terms[node]
        return term[term.rindex('"') + 1 :] or " " if term[0] == '"' else ""


def read_facts(graph: KnowledgeGraph, progress: StageProgress = lambda *_: None) -> Facts:
    """Read a whole graph, relation by relation.

    Raises:
        FictionError: the graph is empty or too large.
        StoreError: see `Store.select`.
    """
    counts = graph.tables.relations
    total = sum(counts.values())
    if not total:
        raise FictionError("The graph has no triples.", "Load RDF files first: ", Command("graph load"))
    if total > MAX_TRIPLES:
        raise FictionError(
            f"The graph has {total:,} triples, but rewiring is limited to {MAX_TRIPLES:,} triples.",
            "Use a smaller graph.",
        )
    numbers: dict[str, int] = {}
    relations = sorted(counts)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    done = 0
    for relation in relations:
        query = render("predicate_pairs", view=graph.view, predicate=Entity(relation))
        rows = graph.store.select(query, timeout=SECONDS, max_rows=MAX_TRIPLES)
        terms_found = (render_term(term) for row in rows for term in row if term is not None)
        found = np.fromiter((numbers.setdefault(text, len(numbers)) for text in terms_found), dtype=np.int64)
        pairs.append((found[0::2], found[1::2]))
        done += len(rows)
        progress("reading", done, total)
    terms = sorted(numbers)
    place = np.empty(len(terms), dtype=np.int64)
    place[[numbers[term] for term in terms]] = np.arange(len(terms))
    subjects, objects = [], []
    for subject_numbers, object_numbers in pairs:
        subject, object_ = place[subject_numbers], place[object_numbers]
        order = np.lexsort((object_, subject))
        subjects.append(subject[order])
        objects.append(object_[order])
    return Facts(terms, relations, subjects, objects)


def write_facts(lines: Iterable[str], file: Path) -> None:
    """Write N-Triples lines to a gzipped file; the same lines always give the same bytes."""
    with (
        open(file, "wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed,
        TextIOWrapper(BufferedWriter(packed, 1 << 20), encoding="utf-8", newline="") as out,
    ):
        out.writelines(lines)
