"""The Editor of a corpus, the only one that changes it.

An edit is made when it is committed to SQLite; `publish` then brings the graphs up to the log. If a process is killed
between these steps, the next `publish` finishes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from kgqa.corpus.edit_log import Edit, EditKind, EditSource, Removal
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.graph_writer import BulkLoad, GraphWriter
from kgqa.corpus.items import Addition, ChunkItem
from kgqa.corpus.records import CommunityRecord
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.text.hints import Hint


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class Editor:
    """Writes to a corpus. Only one Editor at a time; it holds the lock of the folder until it is closed.

    Args:
        folder: The corpus folder; it has a corpus.json (`CorpusFolder.create`).
        store: The server that holds the graphs, open for writing to them; None if the graphs are in the folder.
        bulk_load: How to load a file of N-Quads into that server for the first build; None to send updates.
        now: Returns the time of an edit.

    Attributes:
        database: The database, open for writing.

    Raises:
        CorpusError: Another process is writing, or the corpus cannot be opened or needs a `store`.
    """

    def __init__(
        self,
        folder: CorpusFolder | Path | str,
        *,
        store: EndpointStore | None = None,
        bulk_load: BulkLoad | None = None,
        now: Callable[[], str] = _now,
    ) -> None:
        self.folder = folder if isinstance(folder, CorpusFolder) else CorpusFolder(folder)
        if self.folder.file.url and store is None:
            raise CorpusError(
                f"The graph of the corpus is on {self.folder.file.url}.",
                Hint(python="Pass it: Editor(folder, store=...)"),
            )
        self._now = now
        self._resources = ExitStack()
        try:
            self._resources.enter_context(self.folder.locked())
            self.folder.remove_leftovers()
            self.database = Database(self.folder.database, writable=True)
            self._resources.callback(self.database.close)
            self._graphs = GraphWriter(self.folder, self.database, store=store, bulk_load=bulk_load)
            self._resources.callback(self._graphs.close)
        except BaseException:
            self._resources.close()
            raise

    def apply(
        self,
        kind: EditKind,
        additions: Iterable[Addition] = (),
        removals: Sequence[Removal] = (),
        *,
        agent: str,
        reason: str = "",
        session: str = "",
        question: str = "",
        sources: Sequence[EditSource] = (),
        target: str = "",
        texts: Mapping[str, str] | None = None,
    ) -> Edit:
        """Commit an edit; `publish` then shows it in the graphs.

        Args:
            kind: insert, update or delete; to undo an edit, use `undo`.
            additions: what it adds. An iterator of any length is committed in one transaction.
            removals: what it removes; see `removals_of_document`.
            agent: who makes the edit.
            reason, session, question, sources, target: see `Edit`.
            texts: the texts of the documents that it adds, by the IRIs of the documents.

        Returns:
            The edit with its id and number, without its content.

        Raises:
            CorpusError: a chunk is not what the text of its document contains, or the disk is full. Nothing is changed.
            ValueError: the kind is `undo`.
        """
        if kind == "undo":
            raise ValueError("use Editor.undo")
        texts = texts or {}
        edit = Edit("", 0, kind, agent, reason, session, question, tuple(sources), target, self._now())
        return self.database.append(edit, _checked(additions, texts), tuple(removals), texts=texts)

    def undo(
        self, id: str, *, agent: str, reason: str = "", session: str = "", question: str = "", cascade: bool = False
    ) -> tuple[Edit, ...]:
        """Cancel an edit; if it is an undo, the edit that it cancelled holds again.

        Args:
            id: the id of the edit.
            cascade: whether to cancel the edits that build on it, too.

        Returns:
            The new edits, one for each cancelled one: the last one in the log first.

        Raises:
            CorpusError: there is no such edit, it is cancelled already, or others build on it and `cascade` is False.
        """
        with self.database.transaction():
            edit = self.database.edit(id)
            if edit is None:
                raise CorpusError(f"There is no edit {id}.", "List the edits of the corpus.")
            if not self.database.is_active(edit):
                raise CorpusError(f"The edit {id} is undone already.", "Undo its undo to bring it back.")
            dependents = self.database.dependents(edit)
            if dependents and not cascade:
                names = ", ".join(each.id for each in dependents[:5]) + (", ..." if len(dependents) > 5 else "")
                count = f"{len(dependents)} edit builds" if len(dependents) == 1 else f"{len(dependents)} edits build"
                raise CorpusError(f"{count} on {id}: {names}.", "Undo them first, or all together (cascade).")
            at = self._now()
            return tuple(
                self.database.append(Edit("", 0, "undo", agent, reason, session, question, (), each.id, at))
                for each in (*reversed(dependents), edit)
            )

    def removals_of_document(self, document: str) -> tuple[Removal, ...]:
        """Return the removals that remove all that was read from a document (its IRI) so far."""
        return tuple(Removal(edit=id, document=document) for id in self.database.edits_of_document(document))

    def merge(self, edits: Iterable[Edit]) -> int:
        """Append the edits of another log that are missing here, with their content; return how many.

        Raises:
            CorpusError: an edit is not what its id says. Nothing is changed.
        """
        return self.database.append_foreign(edits)

    def set_communities(self, communities: Iterable[CommunityRecord]) -> None:
        """Put communities in the place of all earlier ones; `publish` then shows them in the graph."""
        self.database.communities.replace(communities)

    def publish(self, step: Callable[[str], None] = lambda name: None) -> bool:
        """Bring the graphs up to the log, so that readers see all edits. Return whether anything was written.

        Args:
            step: called after each step with its name.

        Raises:
            StoreError: see `Store.edit` and `load_graph`. The edits are kept, and the next `publish` tries again.
        """
        try:
            return self._graphs.catch_up(step)
        except BaseException:
            self._graphs.close()  # what it contains is looked up again
            raise

    def catch_up(self) -> bool:
        """Finish what an earlier process left; the same as `publish`."""
        return self.publish()

    def rebuild(self) -> None:
        """Write the graphs anew from the database."""
        self._graphs.rebuild()

    def close(self) -> None:
        """Close the corpus. Committed edits that were not published stay in the log."""
        self._resources.close()

    def __enter__(self) -> Editor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(additions: Iterable[Addition], texts: Mapping[str, str]) -> Iterator[Addition]:
    """Yield additions; check those that were read from one of the texts."""
    for each in additions:
        text = texts.get(each.document)
        if text is not None:
            if not 0 <= each.begin <= each.end <= len(text):
                raise CorpusError(f"The place {each.begin}-{each.end} is not in the text of {each.document}.")
            item = each.item
            if isinstance(item, ChunkItem) and text[item.begin : item.end] != item.text:
                raise CorpusError(f"The chunk {item.begin}-{item.end} of {each.document} is not a part of its text.")
        yield each
