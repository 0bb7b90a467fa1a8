"""Builds a corpus, or brings it up to date: the steps from documents to a graph that can be searched and asked.

find         feeds.py            files, extracted triples, given documents
compare      plan.py             with the ledger: what is unchanged is not read
read, chunk  documents.py        texts with offsets
extract      extracting.py       known results first; each new one is kept at once
write        writing.py          one edit for the first build, later one for each document
resolve      deriving.py         which names mean the same entity; links to a graph beside
communities  deriving.py         and their summaries
publish      editor.py           other processes see the graph
index        deriving.py         words, vectors, matrices
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs

from kgqa.cluster import Cluster
from kgqa.corpus.building.deriving import derive_all, set_community_size
from kgqa.corpus.building.documents import DocumentSteps
from kgqa.corpus.building.extracting import Extraction
from kgqa.corpus.building.feeds import TRIPLES, Feed, GivenFeed, find_feeds
from kgqa.corpus.building.options import BuildOptions
from kgqa.corpus.building.plan import Plan, key_of, make_plan
from kgqa.corpus.building.preparing import Preparation, open_folder, opened_corpus, prepared
from kgqa.corpus.building.reading import DocumentReader, ReadTask
from kgqa.corpus.building.report import BuildReport, Progress, no_progress
from kgqa.corpus.building.tools import Tools, open_tools
from kgqa.corpus.building.writing import DocumentWriter
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.rdf.beside import set_beside
from kgqa.corpus.storage.ledger import REMOVED, FileEntry, Ledger, Problem
from kgqa.errors import CorpusError, DocumentError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.text.hints import Command
from kgqa.text.words import clean


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Let Python look for unreachable cycles less often.

    Records of a corpus contain no cycles, and looking for them takes a third of the time that it takes to create them.
    Cycles that others create are still found, after some megabytes.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@fewer_collections()
def build_corpus(
    folder: Path | str,
    paths: Sequence[Path | str] = (),
    *,
    tools: Tools | None = None,
    options: BuildOptions = BuildOptions(),  # noqa: B008  immutable
    triples: Path | str | None = None,
    given: Sequence[GivenFeed] = (),
    must_exist: bool = False,
    graph_url: str | None = None,
    vectors: str | None = None,
    beside: KnowledgeGraph | None = None,
    progress: Progress = no_progress,
    **settings: Any,
) -> BuildReport:
    """Build a corpus, or bring it up to date.

    Args:
        folder: The corpus; created if it is missing.
        paths: Files and folders to read. If there are no documents of any kind, the paths of earlier builds.
        tools: The models, settings and cache; None to open those that the settings name.
        options: How documents are read.
        triples: A file of extracted triples in the format of HippoRAG.
        given: Documents of other origin.
        must_exist: Whether it is an error that there is no corpus yet.
        graph_url: The server that holds the graph of a new corpus; None for the folder.
        vectors: The LanceDB database that holds the vectors of a new corpus; None for the folder.
        beside: A knowledge graph to whose entities those of the corpus are linked.
        progress: Called as the work proceeds.
        settings: Settings by keyword, such as `llm="openai:NAME"` or `extract="rules"`, if `tools` is None.

    Returns:
        What was done. Failed chunks do not fail the build; they are counted, and the next build retries them.

    Raises:
        CorpusError: The corpus cannot be opened, or another process is writing to it.
        DocumentError: A path does not exist.
        SettingsError: An option is wrong, or a language model is missing.
        ModelUnavailable: The language model does not reply.
    """
    if tools is None:
        with open_tools(**settings) as opened_tools:
            return build_corpus(
                folder,
                paths,
                tools=opened_tools,
                options=options,
                triples=triples,
                given=given,
                must_exist=must_exist,
                graph_url=graph_url,
                vectors=vectors,
                beside=beside,
                progress=progress,
            )
    tools = replace(tools, max_cost=options.max_cost)
    if missing := [each for each in (*paths, *([triples] if triples else [])) if not Path(each).exists()]:
        raise DocumentError("there is no such file or folder", str(missing[0]))
    if not (paths or triples or given or CorpusFolder(folder).exists):
        raise CorpusError(
            "There are no documents to read.",
            "Give files or folders: ",
            Command("corpus build", "FILES", into="CORPUS"),
        )
    before = CorpusFolder(folder)
    ways = prepared(before if before.exists else None, options, tools)
    opened = open_folder(folder, must_exist=must_exist, graph_url=graph_url, vectors=vectors)
    if beside is not None:
        set_beside(opened, beside)
    report = BuildReport(str(opened.path))
    report.notes += ways.notes
    with opened_corpus(opened, tools, progress, trusted=graph_url is not None) as corpus:
        build = _Build(corpus, ways, report, progress, cluster=tools.cluster, restore=options.restore)
        with report.timed("plan"):
            plan = build.plan(paths, options, triples, given)
        build.read(plan)
        if options.community_size is not None:
            set_community_size(corpus, options.community_size)
        derive_all(corpus, tools, report, progress)
        if ways.stored is not None:
            opened.save(structs.replace(opened.file, **ways.stored))
    return report


class _Build:
    """The steps of one build."""

    def __init__(
        self,
        corpus: Corpus,
        ways: Preparation,
        report: BuildReport,
        progress: Progress,
        *,
        cluster: Cluster,
        restore: bool,
    ) -> None:
        self._editor = corpus.editor
        self._ledger = Ledger(corpus.database, writable=True)
        self._ways = ways
        self._cluster = cluster
        self._restore = restore
        self._report = report
        self._progress = progress

    def plan(
        self, paths: Sequence[Path | str], options: BuildOptions, triples: Path | str | None, given: Sequence[GivenFeed]
    ) -> Plan:
        """Find the documents, and compare them with those of the corpus."""
        self._ledger.follow()
        known = self._ledger.files()
        if not (paths or triples or given):
            paths, triples = _earlier_roots(known)
            if lost := [each for each in (*paths, *([triples] if triples else [])) if not Path(each).exists()]:
                raise CorpusError(
                    f"{clean(str(lost[0]))} does not exist any more.",
                    "Give the paths that exist, or remove the files that were read from there: kgqa corpus remove",
                )
        found = find_feeds(
            paths,
            triples=None if triples is None else Path(triples),
            given=given,
            roots={entry.root for entry in known.values()},
            ignore=options.ignore,
            hidden=options.hidden,
            keys=options.keys,
        )
        plan = make_plan(
            found.feeds,
            known,
            key=self._ways.key,
            retry=self._ledger.files_to_retry() | (self._ledger.files_with_removed() if options.restore else set()),
            prune=options.prune,
            restore=options.restore,
        )
        skipped = {root: [*found.skipped.get(root, ()), *plan.skipped[root]] for root in found.feeds}
        self._report.skipped += chain.from_iterable(skipped.values())
        documents = (each for name in plan.unchanged for each in self._ledger.documents(name).values())
        self._report.unchanged = sum(each.edit != REMOVED for each in documents)
        self._report.kept_out = len(plan.kept_out)
        for entry in plan.moved:
            self._ledger.put_file(entry)
        for root, left_out in skipped.items():
            self._ledger.put_problems(root, [Problem("skipped", root, name, why) for name, why in left_out])
        return plan

    def read(self, plan: Plan) -> None:
        """Read, extract and write the documents of a plan."""
        if any(not file.feed.extracted for file in plan.read):
            self._ways.check()
        extractor, database = self._ways.extractor, self._editor.database
        extraction = None
        if extractor is not None and extractor.needs_model:
            extraction, extractor = Extraction(extractor, database.build), None
        task = ReadTask(self._ways.size, extractor, self._ways.counter)
        retry = self._ledger.files_to_retry()

        def known(feed: Feed) -> dict[str, str]:
            if feed.extracted or feed.name in retry or self._restore:
                return {}  # the digest of a document does not depend on the facts that come with it
            key = key_of(feed, self._ways.key)
            documents = self._ledger.documents(feed.name).items()
            return {iri: each.digest for iri, each in documents if each.key == key and each.edit != REMOVED}

        steps = DocumentSteps(DocumentReader(task, self._cluster, known), extraction, self._ways.key)
        if extraction is not None:
            with self._report.timed("extract"):
                self._extract(plan, steps, extraction)

        def show(done: int) -> None:
            self._progress("documents", done, 0)

        writer = DocumentWriter(self._editor, self._ledger, steps, show, restore=self._restore)
        with self._report.timed("documents"):
            if plan.read and not database.seq:
                writer.write_all(plan.read)
            else:
                writer.write_each(plan.read)
            for name in plan.vanished:
                writer.remove_file(name)
        self._ledger.mark_followed()
        written, report = writer.written, self._report
        report.added, report.changed, report.removed = written.added, written.changed, written.removed
        report.unchanged += written.same
        report.kept_out += written.kept_out
        report.chunks, report.edits = written.chunks, report.edits + written.edits
        report.skipped += written.skipped
        counts = self._ledger.count_problems()
        report.failed, report.waiting = counts.get("failed", 0), counts.get("waiting", 0)
        report.malformed, report.rejected = counts.get("malformed", 0), counts.get("rejected", 0)

    def _extract(self, plan: Plan, steps: DocumentSteps, extraction: Extraction) -> None:
        for done in extraction.ask(steps.requests([file.feed for file in plan.read])):
            self._progress("extracting", done, 0)
        self._report.extracted, self._report.reused = extraction.extracted, extraction.reused
        spent = getattr(self._ways.extractor, "spent", None)
        if spent is not None:
            for name in ("calls", "prompt_tokens", "completion_tokens", "cost"):
                setattr(self._report, name, getattr(spent, name))


def _earlier_roots(known: dict[str, FileEntry]) -> tuple[list[Path], Path | None]:
    """Return the paths, and the file of triples, of earlier builds."""
    roots = dict.fromkeys(entry.root for entry in known.values() if not entry.removed)
    triples = [root.removeprefix(TRIPLES) for root in roots if root.startswith(TRIPLES)]
    return [Path(root) for root in roots if root.startswith("/")], Path(triples[0]) if triples else None
