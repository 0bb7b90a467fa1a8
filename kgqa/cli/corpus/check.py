"""`kgqa corpus check`: check a corpus for damage."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from kgqa.cli.corpus.options import CORPUS
from kgqa.cli.options import JSON, print_result, settings_from, verbosity_options
from kgqa.text.words import clean


@click.command("check")
@CORPUS
@JSON
@verbosity_options
def check(folder: Path, as_json: bool) -> int:
    """Check the log, the texts, the quotes and the graph of CORPUS. Exit code 1 if something is wrong.

    \b
    Example:
      kgqa corpus check corpus/
    """
    from kgqa.corpus.checking import check as check_corpus
    from kgqa.corpus.corpus import Corpus
    from kgqa.graph.opening import open_graph_of
    from kgqa.graph.store import is_address

    with Corpus.open(folder) as corpus, ExitStack() as opened:
        # a server may want the login and the limits of the settings
        store = None
        if is_address(corpus.graph_location):
            store = opened.enter_context(open_graph_of(settings_from({}), folder)).store
        findings = check_corpus(corpus, store)
    lines = [*map(clean, findings)] if findings else [f"{folder}: no problems found."]
    print_result(as_json, {"findings": findings}, lines)
    return 1 if findings else 0
