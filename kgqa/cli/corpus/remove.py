"""`kgqa corpus remove`: remove documents, and what only they say."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kgqa.cli.corpus.options import CORPUS, embedding_options, model_options, opened_tools
from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.text.words import counted


@click.command("remove")
@CORPUS
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@model_options
@embedding_options
@JSON
@verbosity_options
def remove(folder: Path, sources: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Remove documents from CORPUS. A fact stays as long as another document states it.

    SOURCE is the name of a file or document, as `kgqa corpus status --json` lists it, or a pattern such as 'notes/*'.
    Later builds leave the files out, until `kgqa corpus add` adds them again. The removal is an edit, so the log keeps
    what was removed.

    \b
    Example:
      kgqa corpus remove corpus/ docs/old-report.pdf
    """
    from kgqa.corpus.building.removing import remove_sources

    with opened_tools(options) as tools:
        report = remove_sources(folder, sources, tools=tools)
    lines = [f"{counted(report.removed, 'document')} removed from {folder}."]
    print_result(as_json, asdict(report), lines)
