"""Checks a corpus: everything that is derived is computed again from the log of edits, and compared."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.edit_log import Edit, cancelled_edits, content_hash, verify_chain
from kgqa.corpus.editing.proposals import ProposalFile
from kgqa.corpus.editing.standing import computed_standing, standing_of
from kgqa.corpus.graph_writer import graph_position
from kgqa.corpus.items import Addition, ChunkItem, DocumentItem, item_key
from kgqa.corpus.rdf.edit_triples import edit_triples
from kgqa.corpus.rdf.terms import triple_of
from kgqa.corpus.rdf.triples import community_triples, constant_triples, triples_of
from kgqa.corpus.snapshot import snapshot_of
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError, PartialResult, StoreError, StoreTimeout
from kgqa.graph.editing import present_triples
from kgqa.graph.opening import open_store
from kgqa.graph.query.text import render
from kgqa.graph.store import Store, single_count
from kgqa.model import Entity, Triple
from kgqa.text.words import counted

MAX_EXAMPLES = 5
_MORE_ROWS = 100_000
_NOT_THE_LOG = "Restore corpus.sqlite from a copy, or build the corpus again."
_NOT_THE_GRAPH = "Remove the graph and run the build again, which writes it anew."


def check(corpus: Corpus, store: Store | None = None) -> list[str]:
    """Check a corpus.

    Args:
        corpus: the corpus.
        store: the store of its graphs; None to open it.

    Returns:
        What is wrong, a sentence each; an empty list if the corpus is whole.
    """
    database = corpus.database
    findings = log_findings(corpus)
    if not findings:  # the log can be trusted, so that what follows from it can be compared
        findings += _collected(_derived_tables(database))
        findings += _collected(_live(database))
    findings += _collected(_texts(database))
    try:
        opened = store or open_store(corpus.graph_location)
        try:
            findings += _collected(_graphs(corpus, opened))
        finally:
            if store is None:
                opened.close()
    except StoreError as error:
        findings.append(f"The graph cannot be read: {error}")
    return findings


def log_findings(corpus: Corpus) -> list[str]:
    """Return what was changed in the log of edits, and in the file of proposals, a sentence each."""
    findings = _collected(_log(corpus.database))
    proposals = ProposalFile(corpus.folder.path).findings()
    return findings + _collected(f"The proposals were changed: {each}" for each in proposals)


def _collected(findings: Iterator[str]) -> list[str]:
    """Return findings, the last of which may be that the database cannot be read."""
    found: list[str] = []
    try:
        found += findings
    except (CorpusError, ValueError) as error:
        found.append(f"The database cannot be read: {error}")
    return found


def _log(database: Database) -> Iterator[str]:
    def content(edit: Edit) -> str:
        additions = ((item_key(each.item), each) for each in database.additions_of(edit))
        return content_hash(additions, database.removals_of(edit))

    for problem in verify_chain(database.edits(), content):
        yield f"The log of edits was changed: {problem}. {_NOT_THE_LOG}"
    wrong = sum(key != item_key(item) for key, item in database.items())
    if wrong:
        yield f"{counted(wrong, 'item')} in the database {_do(wrong)} not have the name of the content. {_NOT_THE_LOG}"
    cancelled = cancelled_edits(database.edits())
    if any(database.is_active(edit) == (edit.id in cancelled) for edit in database.edits()):
        yield f"Which edits are undone does not agree with the log of edits. {_NOT_THE_LOG}"


def _derived_tables(database: Database) -> Iterator[str]:
    """Append all edits to a new database, and compare what is derived from them."""
    with (
        tempfile.TemporaryDirectory(prefix="kgqa-check-") as folder,
        Database(Path(folder) / "corpus.sqlite", writable=True) as again,
    ):
        for edit in database.edits():
            again.append_foreign([database.whole(edit)])
        for table in ("flips", "concerns", "items", "removals"):
            if database.hash_of_table(table) != again.hash_of_table(table):
                yield f"The table {table} does not agree with the log of edits. {_NOT_THE_LOG}"


def _live(database: Database) -> Iterator[str]:
    """Compare which tags are live with the definition in `kgqa.corpus.edit_log`."""
    edits = list(database.edits())
    cancelled = cancelled_edits(edits)
    removals = {each for edit in edits if edit.id not in cancelled for each in database.removals_of(edit)}
    removed = {(each.edit, each.document, each.item) for each in removals}
    wrong = 0
    for edit, document, item, live in database.tags():
        keys = ((edit, "", item), (edit, document, ""), ("", document, item), (edit, document, item))
        wrong += live == (edit in cancelled or any(key in removed for key in keys))
    if wrong:
        yield f"{counted(wrong, 'item')} {_do(wrong)} not have the state that follows from the edits. {_NOT_THE_LOG}"


def _texts(database: Database) -> Iterator[str]:
    seq = database.seq
    digests = [(digest, hashlib.sha256(text.encode()).hexdigest()) for digest, text in database.texts()]
    wrong = sum(digest != found for digest, found in digests)
    if wrong:
        yield f"{counted(wrong, 'stored text')} changed since it was read. {_NOT_THE_LOG}"
    texts: dict[str, list[str]] = {}  # a document has several live versions after an undo of its removal
    missing = set()
    for item in {each.item for each in database.live.all(seq, ("document",))}:
        if isinstance(item, DocumentItem):
            text = database.text(item.document, item.digest)
            texts.setdefault(item.document, []).extend([] if text is None else [text])
            missing.update([item.document] if text is None else [])
    if missing:
        yield f"The text of {_examples(sorted(missing))} is missing. Add the documents again: kgqa corpus add"
    lost = []
    for addition in database.live.all(seq):
        versions = [] if addition.document in missing else texts.get(addition.document, [])
        if versions and not any(_stands_in(addition, text) for text in versions):
            lost.append(addition.chunk or addition.document)
    if lost:
        yield f"The text does not contain what was read at {_examples(lost)}. {_NOT_THE_LOG}"


def _stands_in(addition: Addition, text: str) -> bool:
    item = addition.item
    if isinstance(item, ChunkItem) and text[item.begin : item.end] != item.text:
        return False
    return 0 <= addition.begin <= addition.end <= len(text)


def _graphs(corpus: Corpus, store: Store) -> Iterator[str]:
    database, graphs = corpus.database, corpus.folder.graphs
    at, seq = graph_position(store, graphs["edits"], database), database.seq
    if at is None:
        yield f"The graph belongs to another corpus. {_NOT_THE_GRAPH}"
        return
    if at < seq:
        yield f"The graph does not contain the last {counted(seq - at, 'edit')} yet. Run the build again."
    wanted = triples_of(snapshot_of(database.live.all(at)))
    wanted["communities"] = {triple for each in database.communities.all() for triple in community_triples(each)}
    wanted["edits"] = set()
    for edit in database.edits(0, at):
        additions, removals = database.counts(edit)
        wanted["edits"] |= edit_triples(edit, additions=additions, removals=removals)
    standing = computed_standing(database, at)
    if standing != standing_of(database, at):
        yield f"What the database keeps about the trust of hyperedges is wrong. {_NOT_THE_LOG}"
    for view, texts in standing.texts().items():
        wanted[view] |= set(map(triple_of, texts))
    for view, constants in constant_triples().items():
        missing, extra, examples = _compared(store, graphs[view], wanted[view] | constants)
        if missing or extra:
            yield (
                f"The graph {view} has {counted(extra, 'triple')} too many and lacks {missing:,}: "
                f"{_examples(examples)}. {_NOT_THE_GRAPH}"
            )


def _compared(store: Store, graph: str, wanted: set[Triple]) -> tuple[int, int, list[str]]:
    """Return how many triples a graph lacks, how many it has too many, and examples."""
    view = (Entity(graph),)
    try:
        rows = store.select(render("all_triples", view=view), max_rows=len(wanted) + _MORE_ROWS, fresh=True)
        found = {
            Triple(subject, relation.iri, value)
            for subject, relation, value in rows
            if isinstance(subject, Entity) and isinstance(relation, Entity) and value is not None
        }
        return len(wanted - found), len(found - wanted), _words(wanted ^ found)
    except (PartialResult, StoreTimeout):
        pass  # a server may return only a part of its triples at once, so they are asked about
    present = present_triples(store, graph, list(wanted))
    total = single_count(store.select(render("count_triples", view=view), fresh=True))
    return len(wanted - present), total - len(present), _words(wanted - present)


def _words(triples: Collection[Triple]) -> list[str]:
    texts = (f"{triple.subject.iri} {triple.relation} {triple.object}" for triple in triples)
    return sorted(text if len(text) <= 200 else f"{text[:199]}…" for text in texts)


def _examples(names: list[str]) -> str:
    more = f" and {len(names) - MAX_EXAMPLES:,} more" if len(names) > MAX_EXAMPLES else ""
    return ", ".join(names[:MAX_EXAMPLES]) + more


def _do(number: int) -> str:
    return "does" if number == 1 else "do"
