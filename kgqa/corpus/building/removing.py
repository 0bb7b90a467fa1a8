"""Removes documents from a corpus because a user asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from kgqa.corpus.building.deriving import derive_all
from kgqa.corpus.building.preparing import opened_corpus
from kgqa.corpus.building.report import BuildReport
from kgqa.corpus.building.tools import Tools
from kgqa.corpus.building.writing import DocumentRemover
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.storage.ledger import REMOVED, Ledger
from kgqa.errors import CorpusError
from kgqa.text.words import clean

AGENT = "kgqa corpus remove"


def remove_sources(path: Path | str, sources: Sequence[str], *, tools: Tools) -> BuildReport:
    """Remove documents, and bring the graph and the index up to date.

    Args:
        path: The corpus.
        sources: Names of files, or of documents in a file, or patterns of these names (`*`, `?`).
        tools: The models, settings and cache.

    Raises:
        CorpusError: There is no corpus, or a name matches nothing. Nothing is changed.
    """
    folder = CorpusFolder(path)
    report = BuildReport(str(folder.path))
    with opened_corpus(folder, tools) as corpus:
        ledger = Ledger(corpus.database, writable=True)
        ledger.follow()
        files = ledger.files()
        documents = {iri: each for iri, each in ledger.documents().items() if each.edit != REMOVED}
        chosen_files: dict[str, None] = {}
        chosen: dict[str, None] = {}
        for name in sources:
            matching = [each for each in files if _matches(each, name) and not files[each].removed]
            of_files = [iri for iri, each in documents.items() if each.file in matching]
            found = of_files + [iri for iri, each in documents.items() if _matches(each.source, name)]
            if not (found or matching):
                raise CorpusError(
                    f"{clean(name)} is not a file or document of the corpus.",
                    f"List them: kgqa corpus status {folder.path} --documents",
                )
            chosen_files |= dict.fromkeys(matching)
            chosen |= dict.fromkeys(found)
        remover = DocumentRemover(corpus.editor, ledger)
        remover.remove(list(chosen), agent=AGENT, reason="removed by the user")
        ledger.put_documents(replace(documents[iri], edit=REMOVED) for iri in chosen)
        for name in chosen_files:
            ledger.put_file(replace(files[name], removed=True))
            ledger.put_problems(name, ())
        ledger.mark_followed()
        report.removed, report.edits = remover.removed, remover.removed
        derive_all(corpus, tools, report)
    return report


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)
