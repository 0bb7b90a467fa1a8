"""Writes the content of a corpus in other formats: N-Quads, statements with quotes, HippoRAG's triples."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Literal, get_args

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.standing import computed_standing, standing_of
from kgqa.corpus.rdf.edit_triples import edit_texts
from kgqa.corpus.rdf.triples import CONSTANTS, community_texts, quad_lines, texts_of
from kgqa.corpus.records import Place, StatementRecord
from kgqa.corpus.snapshot import snapshot_of
from kgqa.errors import SettingsError
from kgqa.model.terms import Entity
from kgqa.text.words import clean

ExportFormat = Literal["nquads", "jsonl", "csv", "openie"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_COLUMNS = ("subject", "relation", "object", "document", "begin", "end", "quote", "confidence", "model")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_corpus(corpus: Corpus, format_: ExportFormat, *, views: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the lines of an export.

    Args:
        corpus: The corpus.
        format_: `nquads`: the graph; `jsonl`: a statement or hyperedge with its quotes per line; `csv`: a place of a
            statement per line; `openie`: passages, entities and triples in the format of HippoRAG.
        views: The views of the graph to write, for `nquads`; empty for all.

    Raises:
        SettingsError: The corpus has no such view.
    """
    if format_ == "nquads":
        return _quads(corpus, views)
    return {"jsonl": _json_lines, "csv": _csv_lines, "openie": _openie}[format_](corpus)


def _quads(corpus: Corpus, views: tuple[str, ...]) -> Iterator[str]:
    if unknown := [view for view in views if view not in corpus.folder.graphs]:
        known = ", ".join(corpus.folder.graphs)
        raise SettingsError(f"There is no view {clean(unknown[0])}.", f"Choose from: {known}")
    database = corpus.database
    found = texts_of(snapshot_of(database.live.all(database.seq)))
    for view, texts in CONSTANTS.items():
        found[view].update(texts)
    for community in corpus.reader.communities():
        found["communities"].update(community_texts(community))
    for edit in database.edits():
        additions, removals = database.counts(edit)
        found["edits"].update(edit_texts(edit, additions=additions, removals=removals))
    for view, more in computed_standing(database, database.seq).texts().items():
        found[view].update(more)
    parts = ((view, sorted(found[view])) for view in views or found)
    for block in quad_lines(parts, base=corpus.folder.base):
        yield from block.decode().splitlines()


def _json_lines(corpus: Corpus) -> Iterator[str]:
    names = {each.iri: each.name for each in corpus.reader.entities()}
    quotes = Quotes(corpus)
    for statement in corpus.reader.statements():
        value = statement.object
        object_ = {"id": value.iri, "name": names.get(value.iri, value.iri)} if isinstance(value, Entity) else None
        yield _line(
            {
                "kind": "statement",
                "iri": statement.iri,
                "subject": {"id": statement.subject, "name": names.get(statement.subject, statement.subject)},
                "relation": {"id": statement.relation, "name": statement.relation_name},
                "object": object_ or {"value": value.value, "datatype": value.datatype, "language": value.language},  # type: ignore[union-attr]
                "words": statement.words,
                "places": [quotes.of(place) for place in statement.places],
            }
        )
    standing = standing_of(corpus.database, corpus.reader.seq)
    for hyperedge in corpus.reader.hyperedges():
        yield _line(
            {
                "kind": "hyperedge",
                "iri": hyperedge.iri,
                "segment": hyperedge.segment,
                "participants": [
                    {"role": role, "id": iri, "name": names.get(iri, iri)} for role, iri in hyperedge.participants
                ],
                "completeness": hyperedge.completeness,
                "trust": standing.trust(hyperedge.iri),
                "conflicts_with": sorted(standing.conflicts.get(hyperedge.iri, ())),
                "places": [quotes.of(place) for place in hyperedge.places],
            }
        )


def _line(data: dict[str, Any]) -> str:
    # JSON escapes all characters that could affect a terminal
    return json.dumps(data, ensure_ascii=True)


def _csv_lines(corpus: Corpus) -> Iterator[str]:
    names = {each.iri: each.name for each in corpus.reader.entities()}
    quotes = Quotes(corpus)
    yield _csv_line(_COLUMNS)
    for statement in corpus.reader.statements():
        triple = _words_of(statement, names)
        for place in statement.places or (Place("", "", 0, 0),):
            found = quotes.of(place)
            rest = (found["source"], place.begin, place.end, found["quote"], place.confidence, place.model)
            yield _csv_line((*triple, *("" if each is None else each for each in rest)))


def _csv_line(cells: tuple[Any, ...]) -> str:
    """Return a line of CSV. A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    texts = [clean(each) if isinstance(each, str) else str(each) for each in cells]
    safe = [
        f"'{text}" if isinstance(cell, str) and text.startswith(_FORMULA) else text for cell, text in zip(cells, texts)
    ]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(safe)
    return line.getvalue()


def _words_of(statement: StatementRecord, names: dict[str, str]) -> tuple[str, str, str]:
    value = statement.object
    object_ = names.get(value.iri, value.iri) if isinstance(value, Entity) else value.value
    return names.get(statement.subject, statement.subject), statement.relation_name, object_


def _openie(corpus: Corpus) -> Iterator[str]:
    """Yield one JSON object, chunk by chunk, as `kgqa corpus build --triples` reads it."""
    names = {each.iri: each.name for each in corpus.reader.entities()}
    entities: dict[str, list[str]] = {}
    triples: dict[str, list[tuple[str, str, str]]] = {}
    for entity in corpus.reader.entities():
        for chunk in dict.fromkeys(place.chunk for place in entity.places):
            entities.setdefault(chunk, []).append(entity.name)
    for statement in corpus.reader.statements():
        for chunk in dict.fromkeys(place.chunk for place in statement.places):
            triples.setdefault(chunk, []).append(_words_of(statement, names))
    yield '{"docs": ['
    before = ""
    for each in corpus.reader.chunks():
        data = {
            "idx": each.iri,
            "passage": each.text,
            "extracted_entities": entities.get(each.iri, []),
            "extracted_triples": triples.get(each.iri, []),
        }
        yield f"{before}{_line(data)}"
        before = ","
    yield "]}"


class Quotes:
    """The words at places of a corpus. Texts of documents are read once in a row."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._sources = {each.iri: each.source for each in corpus.reader.documents()}
        self._texts: dict[str, str] = {}

    def of(self, place: Place) -> dict[str, Any]:
        """Return a place with its source and the quote, as a JSON object."""
        return {
            "source": self._sources.get(place.document, place.document),
            "document": place.document,
            "chunk": place.chunk,
            "begin": place.begin,
            "end": place.end,
            "quote": self.text(place.document)[place.begin : place.end] if place.end else "",
            "confidence": place.confidence,
            "model": place.model,
        }

    def text(self, document: str) -> str:
        """Return the text of a document; "" if the corpus has none."""
        if document not in self._texts:
            if len(self._texts) >= _KEPT_TEXTS:
                self._texts.clear()
            self._texts[document] = self._corpus.reader.text(document) or ""
        return self._texts[document]


_KEPT_TEXTS = 1_000
