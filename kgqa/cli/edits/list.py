"""`kgqa edits list`: the edits of a corpus."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.edits.options import CORPUS, headline
from kgqa.cli.options import JSON, print_result, say, verbosity_options, whole
from kgqa.text.words import counted


@click.command("list")
@CORPUS
@click.option("--session", metavar="NAME", help="only the edits of this session")
@click.option("--source", metavar="IRI|URL", help="only the edits that rest on this source")
@click.option("--kind", type=click.Choice(["insert", "update", "delete", "undo"]), help="only the edits of this kind")
@click.option(
    "--state",
    type=click.Choice(["live", "undone", "held", "waiting", "rejected", "gated"]),
    help="live: in the log and not undone; undone; held: hides a text of a conflict until a review; waiting: proposed; "
    "rejected: in a review; gated: rejected by a gate",
)
@click.option("--limit", type=whole(1), default=50, show_default=True, help="how many to show, last ones")
@JSON
@verbosity_options
def list_(
    folder: Path,
    session: str | None,
    source: str | None,
    kind: str | None,
    state: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the edits of CORPUS: those of its log, those that wait for a review, and those that were rejected.

    \b
    Examples:
      kgqa edits list corpus/
      kgqa edits list corpus/ --state waiting
      kgqa edits list corpus/ --source https://example.org/page --json
    """
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.history.listing import chosen_views, edit_views, view_object, with_texts
    from kgqa.corpus.history.reviewing import read_book

    with Corpus.open(folder) as corpus:
        book = read_book(corpus.folder, corpus.database)
        views = edit_views(corpus.database, book, texts=False)
        found = chosen_views(views, session=session, source=source, kind=kind, state=state)
        shown = [with_texts(corpus.database, book, each) for each in found[-limit:]]
    print_result(as_json, [view_object(each) for each in shown], map(headline, shown))
    if len(shown) < len(found):
        say(f"kgqa: {counted(len(found) - len(shown), 'earlier edit')} not shown; --limit shows more.")
    if not found and not as_json:
        say("kgqa: No edits.")
