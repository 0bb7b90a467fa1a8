"""Builds a corpus, or brings it up to date: the steps from documents to a graph that can be searched and asked.

    find         feeds.py            files, extracted triples, given documents
    compare      plan.py             with the ledger: what is unchanged is not read
    read, chunk  documents/          texts with offsets
    extract      extracting.py       known results first; each new one is kept at once
    write        documents.py        one edit for the first build, later one for each document
    resolve      deriving.py         which names mean the same entity; links to a graph beside
    communities  deriving.py         and their summaries
    index        deriving.py         words, vectors, matrices
    publish                          other processes see it
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgqa.corpus.building.feeds import GivenFeed, find_feeds
from kgqa.corpus.building.options import BuildOptions
from kgqa.corpus.building.plan import make_plan
from kgqa.corpus.building.report import BuildReport
from kgqa.settings import Settings

Progress = Callable[[str, int, int], None]
"""Called with a stage, and how many of how many items are done; 0 of 0 if that is unknown."""


def _silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""
