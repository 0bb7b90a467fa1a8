"""All triples of a graph as numbers, and back as N-Triples: what rewiring works on."""

from __future__ import annotations

import gzip
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgqa.errors import KgqaError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.templates import render, render_term
from kgqa.model import Entity, Literal

MAX_TRIPLES = 5_000_000
SECONDS = 600.0
_LINES = 10_000

Progress = Callable[[str, int, int], None]
"""Told of a stage by name, how much of it is done, and of how much."""


class FictionError(KgqaError):
    """A graph cannot be rewired. The message says why and what to do."""


@dataclass(frozen=True)
class Facts:
    """Triples by relation.

    `terms`: every subject and object as N-Triples text, in the order of the text, so that the numbers of nodes are the
    same on any machine; `relations`: IRIs in order; `subjects`, `objects`: for each relation an int64 array of its
    distinct triples, ordered.
    """

    terms: list[str]
    relations: list[str]
    subjects: list[np.ndarray]
    objects: list[np.ndarray]

    @property
    def triples(self) -> int:
        return sum(map(len, self.subjects))

    def number(self, term: str) -> int | None:
        """The number of a term's N-Triples text, None where the graph does not have it."""
        place = bisect_left(self.terms, term)
        return place if place < len(self.terms) and self.terms[place] == term else None

    def literal_kind(self, node: int) -> str:
        """What follows the text of a literal: its language or datatype; a space where there is neither. Empty for
        entities.
        """
        term = self.terms[node]
        return term[term.rindex('"') + 1 :] or " " if term[0] == '"' else ""


def read_facts(graph: KnowledgeGraph, progress: Progress = lambda *_: None) -> Facts:
    """Read a whole graph, relation by relation.

    Raises:
        FictionError: it is empty, or larger than can be rewired. StoreError: as `select` does.
    """
    counts = graph.relations
    total = sum(counts.values())
    if not total:
        raise FictionError("The graph has no triples, so there is nothing to rewire. Load it: kgqa graph load")
    if total > MAX_TRIPLES:
        raise FictionError(
            f"The graph has {total:,} triples and rewiring works on {MAX_TRIPLES:,} at most: take a part of it."
        )
    numbers: dict[str, int] = {}
    relations = sorted(counts)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    done = 0
    for relation in relations:
        query = render("predicate_pairs", view=graph.view, predicate=Entity(relation))
        rows = graph.store.select(query, timeout=SECONDS, max_rows=MAX_TRIPLES)
        found = np.fromiter(
            (numbers.setdefault(_text(term), len(numbers)) for row in rows for term in row), dtype=np.int64
        )
        pairs.append((found[0::2], found[1::2]))
        done += len(rows)
        progress("reading", done, total)
    terms = sorted(numbers)
    place = np.empty(len(terms), dtype=np.int64)
    place[[numbers[term] for term in terms]] = np.arange(len(terms))
    subjects, objects = [], []
    for subject, object_ in pairs:
        subject, object_ = place[subject], place[object_]
        order = np.lexsort((object_, subject))
        subjects.append(subject[order])
        objects.append(object_[order])
    return Facts(terms, relations, subjects, objects)


def _text(term: Entity | Literal | None) -> str:
    if term is None:
        raise FictionError("The graph gives an edge without a subject or object, which cannot be rewired.")
    return render_term(term)


def write_facts(lines: Iterable[str], file: Path) -> None:
    """Write N-Triples lines, gzipped; the same lines give the same bytes."""
    with open(file, "wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as out:
        for block in _blocks(lines):
            out.write("".join(block).encode("utf-8"))


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == _LINES:
            yield block
            block = []
    yield block
