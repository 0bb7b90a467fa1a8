"""Makes the graph of names for a Virtuoso server: reads all names, writes N-Triples, has them loaded and indexed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from kgqa.errors import InvalidTerm, StoreUnavailable
from kgqa.graph.names.counting import Beginnings, WordCounts
from kgqa.graph.names.index import loose_keys
from kgqa.graph.names.reading import Name, count_names, read_names
from kgqa.graph.names.server.names_graph import (
    KEY,
    LISTED_WORDS,
    TEXTS,
    WORD,
    WORDS,
    NamesFacts,
    beginning_node,
    count_node,
    facts_lines,
    name_node,
    names_graph_iri,
)
from kgqa.graph.names.text import NameTokens, key_number
from kgqa.graph.query.templates import render_term
from kgqa.graph.store import Store
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.words import normalise

LINES_A_FILE = 2_000_000
PROGRESS_EVERY = 50_000
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


@dataclass(frozen=True, slots=True)
class BuiltNames:
    """A graph of names that was made: its IRI, how many names it has, and how many triples, all told."""

    graph: str
    names: int
    triples: int


def build_names_graph(
    store: Store,
    schema: Schema,
    view: Sequence[Entity],
    *,
    folder: Path,
    clear: Callable[[str], object],
    load: Callable[[Path, str], object],
    index: Callable[[str, Sequence[str]], object],
    names: Iterable[Name] | None = None,
    progress: Callable[[int], None] | None = None,
    lines_a_file: int = LINES_A_FILE,
) -> BuiltNames:
    """Make the graph of names of the graphs of a view. Whatever interrupts it, a graph that is not whole is never used.

    Args:
        folder: where files are written that the server can read; each is removed when it has been loaded.
        clear: empties the graph with this IRI.
        load: loads an N-Triples file into the graph with this IRI, and raises if it could not.
        index: puts what these predicates say in the graph with this IRI into the full-text index.
        names: all names, where the caller has them; None to read them from the store.
        progress: is told now and then how many names have been read.
        lines_a_file: lines of one file, at most.

    Raises:
        StoreUnavailable: the graph has no names.
        StoreError: reading them failed, see `read_names`. What the callables raise is passed on.
    """
    graph = names_graph_iri(schema, view)
    triples = count_names(store, schema, view)
    clear(graph)
    with tempfile.TemporaryDirectory(prefix="kgqa-names-") as scratch:
        writer = _Writer(NameTokens.of(graph), WordCounts(Path(scratch)))
        files = _Files(folder, graph, load, lines_a_file)
        with files.closing():
            for name in read_names(store, schema, view) if names is None else names:
                files.write(writer.lines(*name))
                if progress and writer.names % PROGRESS_EVERY == 0:
                    progress(writer.names)
            if not writer.names:
                raise StoreUnavailable(
                    "There is no name in this graph that could be indexed. Name the predicates of labels and aliases in "
                    "its schema, [names] label and alias."
                )
            files.write(writer.word_lines())
    index(graph, tuple(TEXTS.values()))
    with files.closing():
        files.write(facts_lines(graph, writer.facts(triples, view)))
    return BuiltNames(graph, writer.names, files.written)


class _Writer:
    """Turns names into lines of N-Triples, and counts them."""

    def __init__(self, tokens: NameTokens, words: WordCounts) -> None:
        self._tokens = tokens
        self._words = words
        self.names = self._all_words = self._longest = 0

    def facts(self, triples: int, view: Sequence[Entity]) -> NamesFacts:
        graphs = tuple(entity.iri for entity in view)
        return NamesFacts(triples, self.names, self._all_words, self._longest, graphs)

    def lines(self, iri: str, name: str, kind: str) -> Iterator[str]:
        norm = normalise(name)
        if kind not in TEXTS or not norm:
            return
        words = norm.split()
        self.names += 1
        self._all_words += len(words)
        self._longest = max(self._longest, len(words))
        self._words.add(set(words))
        try:
            render_term(Entity(iri))
        except InvalidTerm:
            return  # a blank node: it counts, as in other indexes, but no query could ask about it
        subject = render_term(Entity(name_node(iri)))
        yield f'{subject} <{TEXTS[kind]}> "{self._tokens.text(norm)}" .'
        for key, how in loose_keys(name).items():
            if how != "initials":
                yield f'{subject} <{KEY}> "{key_number(key)}"^^{INTEGER} .'

    def word_lines(self) -> Iterator[str]:
        beginnings = Beginnings(LISTED_WORDS)
        for word, names in self._words.sorted():
            yield f'<{count_node(names)}> <{WORD}> "{key_number(word)}"^^{INTEGER} .'
            yield from map(_list_line, beginnings.add(word, names))
        yield from map(_list_line, beginnings.rest())


def _list_line(item: tuple[str, list[tuple[str, int]]]) -> str:
    beginning, words = item
    text = " ".join(f"{word} {names}" for word, names in words)
    return f'<{beginning_node(beginning)}> <{WORDS}> "{text}" .'


class _Files:
    """Files of lines, one at a time, each loaded and removed when it is full."""

    def __init__(self, folder: Path, graph: str, load: Callable[[Path, str], object], most: int) -> None:
        self._folder = folder
        self._graph = graph
        self._load = load
        self._most = most
        self._file: TextIO | None = None
        self._lines = 0
        self.written = 0

    def write(self, lines: Iterable[str]) -> None:
        for line in lines:
            if self._file is None:
                # a new name each time: Virtuoso remembers the names of files and loads none twice
                descriptor, place = tempfile.mkstemp(prefix="names-", suffix=".nt", dir=self._folder)
                os.fchmod(descriptor, 0o644)  # the server may be another user
                self._file = Path(place).open("w", encoding="utf-8")
                os.close(descriptor)
            self._file.write(line + "\n")
            self._lines += 1
            self.written += 1
            if self._lines >= self._most:
                self._send()

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Send what is left, or, after an error, remove it."""
        try:
            yield
            self._send()
        finally:
            if self._file is not None:
                self._file.close()
                Path(self._file.name).unlink(missing_ok=True)
                self._file = None

    def _send(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._load(Path(self._file.name), self._graph)
        Path(self._file.name).unlink(missing_ok=True)
        self._file, self._lines = None, 0
