"""Writes documents into the log of a corpus: one edit for the first build, later one edit for each document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from kgqa.corpus.building.documents import DerivedDocument, DocumentSteps, EndOfFeed
from kgqa.corpus.building.plan import ToRead, key_of
from kgqa.corpus.editor import Editor
from kgqa.corpus.items import Addition
from kgqa.corpus.storage.ledger import REMOVED, DocumentEntry, FileEntry, Ledger, Problem

AGENT = "kgqa corpus build"
_EDIT_PENDING = ""
_DOCUMENTS_AT_ONCE = 100
"""How many documents are written in one transaction; waiting for the disk takes longer than writing."""


@dataclass
class Written:
    """What was written.

    Attributes:
        added, changed, removed: Numbers of documents.
        same: Documents that were read and have not changed.
        kept_out: Documents that were read, and that the user removed from the corpus.
        chunks: Chunks of the added and changed documents.
        edits: Number of edits.
        skipped: Files that could not be read, with the reason.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    same: int = 0
    kept_out: int = 0
    chunks: int = 0
    edits: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)


class DocumentWriter:
    """Writes what a build reads.

    Args:
        editor: The Editor of the corpus.
        ledger: The ledger of the corpus.
        steps: The steps from files to documents.
        progress: Called with the number of documents after each of them.
        restore: Whether documents are written that the user removed.
    """

    def __init__(
        self,
        editor: Editor,
        ledger: Ledger,
        steps: DocumentSteps,
        progress: Callable[[int], None],
        *,
        restore: bool = False,
    ) -> None:
        self._restore = restore
        self._editor = editor
        self._ledger = ledger
        self._steps = steps
        self._progress = progress
        self._done = 0
        self._remover = DocumentRemover(editor, ledger)
        self._written = Written()

    @property
    def written(self) -> Written:
        """What was written so far."""
        removed = self._remover.removed
        return replace(self._written, removed=removed, edits=self._written.edits + removed)

    def write_all(self, files: Sequence[ToRead]) -> None:
        """Write all documents of an empty corpus as one edit."""
        texts = _CurrentText()
        database = self._editor.database
        with database.transaction():  # all of it, with the ledger, or nothing
            edit = self._editor.apply(
                "insert", self._stream(files, texts), agent=AGENT, reason="first build", texts=texts
            )
            self._ledger.set_edit(_EDIT_PENDING, edit.id)
        self._written.edits += 1

    def _stream(self, files: Sequence[ToRead], texts: _CurrentText) -> Iterator[Addition]:
        seen: set[str] = set()
        for document in self._documents(files):
            if document.entry.iri in seen:
                continue
            seen.add(document.entry.iri)
            texts.set(document.entry.iri, document.text)
            yield from document.additions
            self._editor.database.put_text(document.entry.iri, document.entry.digest, document.text)
            self._ledger.put_documents([document.entry])
            self._written.added += 1
            self._written.chunks += document.entry.chunks

    def write_each(self, files: Sequence[ToRead]) -> None:
        """Write each new or changed document as an edit, and remove those that have vanished from their file."""
        documents, more = self._documents(files, prune=True), True
        while more:
            with self._editor.database.transaction():  # the edits of some documents, with the ledger, or nothing
                more = False
                for document in islice(documents, _DOCUMENTS_AT_ONCE):
                    more = True
                    self._write(document)

    def _write(self, document: DerivedDocument) -> None:
        entry = document.entry
        known = self._ledger.document(entry.iri)
        if known is not None and known.edit == REMOVED and not self._restore:
            self._written.kept_out += 1
            return
        old = self._editor.database.edits_of_document(entry.iri)
        if old and self._is_same(document, old):
            self._written.same += 1
            if (same := replace(entry, edit=old[-1])) != known:
                self._ledger.put_documents([same])
            return
        removals = self._editor.removals_of_document(entry.iri)
        edit = self._editor.apply(
            "update" if removals else "insert",
            document.additions,
            removals,
            agent=AGENT,
            reason="changed" if removals else "new",
            target=entry.iri,
            texts={entry.iri: document.text},
        )
        self._ledger.put_documents([replace(entry, edit=edit.id)])
        self._written.edits += 1
        self._written.chunks += entry.chunks
        if removals:
            self._written.changed += 1
        else:
            self._written.added += 1

    def _is_same(self, document: DerivedDocument, edits: Sequence[str]) -> bool:
        """Return whether edits added exactly what a document consists of, even if a later edit removed some of it."""
        database, iri = self._editor.database, document.entry.iri
        if len(edits) > 1:
            return False
        return set(database.additions_of_document(edits[0], iri)) == set(document.additions)

    def remove_file(self, name: str) -> None:
        """Remove the documents of a file that is no longer there."""
        self._remover.remove(list(self._ledger.documents(name)))
        self._ledger.forget_file(name)

    def _documents(self, files: Sequence[ToRead], *, prune: bool = False) -> Iterator[DerivedDocument]:
        """Yield the documents of files, and note in the ledger what was read, and what was left out.

        Args:
            prune: Whether to remove the documents that a file no longer contains.
        """
        planned = {file.feed.name: file for file in files}
        problems: dict[str, list[Problem]] = defaultdict(list)
        before: dict[str, dict[str, DocumentEntry]] = {}
        for feed, part in self._steps.derive([file.feed for file in files]):
            if prune and feed.name not in before:
                before[feed.name] = self._ledger.documents(feed.name)
            if isinstance(part, DerivedDocument):
                before.get(feed.name, {}).pop(part.entry.iri, None)
                problems[feed.name] += part.problems
                yield part
                self._done += 1
                self._progress(self._done)
            else:
                gone = before.pop(feed.name, {}).keys() - set(part.unchanged)
                if not part.error:
                    self._remover.remove(sorted(gone))
                self._finish(planned[feed.name], problems.pop(feed.name, []), part)

    def _finish(self, file: ToRead, problems: Sequence[Problem], end: EndOfFeed) -> None:
        name = file.feed.name
        skipped = [*end.skipped, *([(name, end.error)] if end.error else [])]
        self._written.skipped += skipped
        self._written.same += len(end.unchanged)
        found = [*problems, *(Problem("skipped", name, *each) for each in skipped)]
        self._ledger.put_problems(name, found, kept=set(end.unchanged))
        if not end.error:  # otherwise, it is read again by the next build
            self._ledger.put_file(FileEntry(name, file.feed.root, file.digest, key_of(file.feed, self._steps.key)))


class DocumentRemover:
    """Removes documents. `removed`: how many were there; each is one edit."""

    def __init__(self, editor: Editor, ledger: Ledger) -> None:
        self._editor = editor
        self._ledger = ledger
        self.removed = 0

    def remove(self, documents: Sequence[str], *, agent: str = AGENT, reason: str = "no longer there") -> None:
        """Remove documents by their IRIs."""
        for iri in documents:
            removals = self._editor.removals_of_document(iri)
            if removals:
                self._editor.apply("delete", (), removals, agent=agent, reason=reason, target=iri)
                self.removed += 1
        self._ledger.forget_documents(documents)


class _CurrentText(Mapping[str, str]):
    """The text of the document that is being written; the others are on disk already."""

    def __init__(self) -> None:
        self._iri, self._text = "", ""

    def set(self, iri: str, text: str) -> None:
        self._iri, self._text = iri, text

    def __getitem__(self, iri: str) -> str:
        if iri != self._iri or not iri:
            raise KeyError(iri)
        return self._text

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
