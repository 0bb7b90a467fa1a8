"""Builds the graph of names for a Virtuoso server: reads all names, writes N-Triples, loads and indexes them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from kgqa.errors import InvalidTerm, StoreUnavailable
from kgqa.graph.names.name_reader import Name, count_names, read_names
from kgqa.graph.names.server.name_tokens import NameTokens, key_number
from kgqa.graph.names.server.names_graph import (
    KEY,
    LISTED_WORDS,
    TEXTS,
    WORD,
    WORDS,
    NamesFacts,
    count_node,
    facts_lines,
    name_node,
    names_graph_iri,
    prefix_node,
)
from kgqa.graph.names.server.word_counts import PrefixLists, WordCounts
from kgqa.graph.names.spellings import spellings
from kgqa.graph.query.templates import render_term
from kgqa.graph.store import Store
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.words import normalise

LINES_PER_FILE = 2_000_000
PROGRESS_EVERY = 50_000
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


@dataclass(frozen=True, slots=True)
class BuiltNames:
    """A new graph of names: `graph` is its IRI; `names` and `triples` are its numbers of names and triples."""

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
    lines_per_file: int = LINES_PER_FILE,
) -> BuiltNames:
    """Build the graph of names for the graphs in a view. If the build is interrupted, the result is never used.

    Args:
        folder: a folder whose files the server can read; files are written there, loaded and removed.
        clear: function that empties the graph with the given IRI.
        load: function that loads an N-Triples file into the graph with the given IRI, or raises an error.
        index: function that receives the IRI of a graph and predicates, and adds the objects of these predicates in
            this graph to the full-text index.
        names: all names; None to read them from the store.
        progress: function called after every PROGRESS_EVERY names with the number of names read.
        lines_per_file: the largest number of lines in a file.

    Raises:
        StoreUnavailable: the graph has no names.
        StoreError: the names could not be read, see `read_names`. Errors raised by `clear`, `load` and `index` are
            passed on.
    """
    graph = names_graph_iri(schema, view)
    triples = count_names(store, schema, view)
    clear(graph)
    with tempfile.TemporaryDirectory(prefix="kgqa-names-") as scratch:
        writer = _LineWriter(NameTokens.of(graph), WordCounts(Path(scratch)))
        files = _Files(folder, graph, load, lines_per_file)
        with files.closing():
            for name in read_names(store, schema, view) if names is None else names:
                files.write(writer.lines(*name))
                if progress and writer.names % PROGRESS_EVERY == 0:
                    progress(writer.names)
            if not writer.names:
                raise StoreUnavailable(
                    "This graph has no names to index. In its schema file, list the predicates of labels and aliases "
                    "under [names] label and alias."
                )
            files.write(writer.word_lines())
    index(graph, tuple(TEXTS.values()))
    with files.closing():
        files.write(facts_lines(graph, writer.facts(triples, view)))
    return BuiltNames(graph, writer.names, files.written)


class _LineWriter:
    """Converts names to lines of N-Triples, and counts the names and their words."""

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
            return  # a blank node: the index in SQLite counts it too, but no query can name it
        subject = render_term(Entity(name_node(iri)))
        yield f'{subject} <{TEXTS[kind]}> "{self._tokens.text(norm)}" .'
        for spelling, how in spellings(name).items():
            if how != "initials":
                yield f'{subject} <{KEY}> "{key_number(spelling)}"^^{INTEGER} .'

    def word_lines(self) -> Iterator[str]:
        prefixes = PrefixLists(LISTED_WORDS)
        for word, names in self._words.sorted():
            yield f'<{count_node(names)}> <{WORD}> "{key_number(word)}"^^{INTEGER} .'
            yield from map(_prefix_line, prefixes.add(word, names))
        yield from map(_prefix_line, prefixes.rest())


def _prefix_line(item: tuple[str, list[tuple[str, int]]]) -> str:
    prefix, words = item
    text = " ".join(f"{word} {names}" for word, names in words)
    return f'<{prefix_node(prefix)}> <{WORDS}> "{text}" .'


class _Files:
    """Writes lines to one file at a time; a full file is loaded and removed."""

    def __init__(self, folder: Path, graph: str, load: Callable[[Path, str], object], max_lines: int) -> None:
        self._folder = folder
        self._graph = graph
        self._load = load
        self._max_lines = max_lines
        self._file: TextIO | None = None
        self._lines = 0
        self.written = 0

    def write(self, lines: Iterable[str]) -> None:
        for line in lines:
            if self._file is None:
                # each file gets a new name, because Virtuoso does not load two files of the same name
                descriptor, path = tempfile.mkstemp(prefix="names-", suffix=".nt", dir=self._folder)
                os.fchmod(descriptor, 0o644)  # the server may run as another user
                self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed by _load_file
                os.close(descriptor)
            self._file.write(line + "\n")
            self._lines += 1
            self.written += 1
            if self._lines >= self._max_lines:
                self._load_file()

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Load the last file at the end of the block; after an error, remove that file."""
        try:
            yield
            self._load_file()
        finally:
            if self._file is not None:
                self._file.close()
                Path(self._file.name).unlink(missing_ok=True)
                self._file = None

    def _load_file(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._load(Path(self._file.name), self._graph)
        Path(self._file.name).unlink(missing_ok=True)
        self._file, self._lines = None, 0
