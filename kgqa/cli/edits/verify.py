"""`kgqa edits verify`: check that no edit was changed."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.edits.options import CORPUS
from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.text.words import clean, counted


@click.command("verify")
@CORPUS
@JSON
@verbosity_options
def verify(folder: Path, as_json: bool) -> int:
    """Check the chain of hashes of the log of CORPUS and of its proposals. Exit code 1 if a byte was changed.

    `kgqa corpus check` also compares the texts, the index and the graph with the log.

    \b
    Example:
      kgqa edits verify corpus/
    """
    from kgqa.corpus.checking import log_findings
    from kgqa.corpus.corpus import Corpus

    with Corpus.open(folder) as corpus:
        findings = log_findings(corpus)
        edits = corpus.database.seq
    lines = [*map(clean, findings)] if findings else [f"{folder}: {counted(edits, 'edit')}, none was changed."]
    print_result(as_json, {"edits": edits, "findings": findings}, lines)
    return 1 if findings else 0
