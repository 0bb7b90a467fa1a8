"""Checks a corpus: whether its log, its texts, its graph and its ledger agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kgqa.cache import Cache
from kgqa.corpus.building.ledger import Ledger
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.edit_log import content_of, verify_chain
from kgqa.corpus.rdf.triples import CONSTANTS, community_texts, texts_of
from kgqa.corpus.records import HyperedgeRecord, StatementRecord
from kgqa.corpus.snapshot import snapshot_of
from kgqa.errors import KgqaError
from kgqa.graph.opening import open_graph

MAX_FINDINGS = 100


def check_corpus(path: Path | str, *, cache: Cache | None = None) -> list[str]:
    """Return what is wrong with a corpus, one line each; an empty list if nothing is.

    Raises:
        CorpusError: There is no corpus, or its database cannot be opened.
    """
    with Corpus.open(path) as corpus:
        found: list[str] = []
        for check in (_file, _log, _texts, _ledger, _graph):
            try:
                for finding in check(corpus, cache):
                    found.append(finding)
                    if len(found) >= MAX_FINDINGS:
                        return [*found, "There are more."]
            except KgqaError as error:
                found.append(str(error))
        return found


def _file(corpus: Corpus, cache: Cache | None) -> Iterator[str]:
    with corpus.database.reading() as run:
        for (line,) in run.execute("PRAGMA quick_check"):
            if line != "ok":
                yield f"The database is damaged: {line}"


def _log(corpus: Corpus, cache: Cache | None) -> Iterator[str]:
    database = corpus.database
    yield from verify_chain(database.edits(), lambda edit: content_of(database.whole(edit)))


def _texts(corpus: Corpus, cache: Cache | None) -> Iterator[str]:
    """Check that each chunk stands at its place in the stored text, and that each place of a fact is in its chunk."""
    chunks = {}
    documents: dict[str, str | None] = {}
    for chunk in corpus.reader.chunks():
        chunks[chunk.iri] = (chunk.begin, chunk.end)
        if chunk.document not in documents:
            documents = {chunk.document: corpus.reader.text(chunk.document)}
        text = documents[chunk.document]
        if text is None:
            yield f"The text of {chunk.document} is missing."
        elif text[chunk.begin : chunk.end] != chunk.text:
            yield f"The chunk {chunk.iri} is not what stands at {chunk.begin}-{chunk.end} in {chunk.document}."
    records: list[StatementRecord | HyperedgeRecord] = [*corpus.reader.statements(), *corpus.reader.hyperedges()]
    for record in records:
        for place in record.places:
            if not place.chunk:
                continue
            begin, end = chunks.get(place.chunk, (0, -1))
            if place.chunk not in chunks:
                yield f"{record.iri} stands in the chunk {place.chunk}, which is missing."
            elif place.end and not begin <= place.begin <= place.end <= end:
                yield f"{record.iri} stands at {place.begin}-{place.end}, outside of its chunk ({begin}-{end})."


def _ledger(corpus: Corpus, cache: Cache | None) -> Iterator[str]:
    known = Ledger(corpus.database).documents()
    present = {each.iri: each.source for each in corpus.reader.documents()}
    for iri in known.keys() - present.keys():
        yield f"The document {known[iri].source} was read, but is not in the corpus. Build again to read it."
    # documents of a merged log are in no file here, so they are not in the ledger


def _graph(corpus: Corpus, cache: Cache | None) -> Iterator[str]:
    """Compare the triples of the graph with those that follow from the log."""
    snapshot = snapshot_of(corpus.database.live.all(corpus.database.seq))
    wanted = texts_of(snapshot)
    for each in corpus.reader.communities():
        wanted["communities"].update(community_texts(each))
    with open_graph(corpus.folder.path, cache=cache) as graph:
        for view, iris in corpus.views.items():
            if view not in wanted or view == "edits":
                continue
            expected = len(wanted[view] | set(CONSTANTS.get(view, ())))
            number = graph.store.triples_of(iris[:1])
            if number is not None and number != expected:
                yield (
                    f"The view {view} has {number:,} triples in the graph and {expected:,} in the log. Bring it up to "
                    "date: kgqa corpus build"
                )
