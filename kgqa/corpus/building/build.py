"""Builds a corpus, or brings it up to date: the steps from documents to a graph that can be searched and asked.

    find         feeds.py            files, extracted triples, given documents
    compare      plan.py             with the ledger: what is unchanged is not read
    read, chunk  documents.py        texts with offsets
    extract      extracting.py       known results first; each new one is kept at once
    write        writing.py          one edit for the first build, later one for each document
    resolve      deriving.py         which names mean the same entity; links to a graph beside
    communities  deriving.py         and their summaries
    publish      kgqa/corpus/editor  other processes see the graph
    index        deriving.py         words, vectors, matrices
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgqa.cache import Cache
from kgqa.corpus.building.deriving import Tools, derive
from kgqa.corpus.building.documents import DocumentSteps
from kgqa.corpus.building.extracting import Extraction
from kgqa.corpus.building.feeds import GivenFeed, find_feeds
from kgqa.corpus.building.ledger import Ledger
from kgqa.corpus.building.options import BuildOptions
from kgqa.corpus.building.plan import make_plan
from kgqa.corpus.building.preparing import open_folder, prepared
from kgqa.corpus.building.report import BuildReport
from kgqa.corpus.building.writing import write_documents
from kgqa.corpus.editor import Editor
from kgqa.settings import Settings, resolve

Progress = Callable[[str, int, int], None]
"""Called with a stage, and how many of how many items are done; the total is 0 if it is unknown."""


def _no_progress(stage: str, done: int, total: int) -> None:
    """Show nothing."""
