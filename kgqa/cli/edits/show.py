"""`kgqa edits show`: one edit with its sources."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.edits.options import CORPUS, text_lines
from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.errors import CorpusError
from kgqa.text.words import counted


@click.command("show")
@CORPUS
@click.argument("name", metavar="EDIT")
@JSON
@verbosity_options
def show(folder: Path, name: str, as_json: bool) -> None:
    """Show EDIT of CORPUS: what it changes as a diff, its sources with quotes, and what builds on it.

    EDIT is its number in the log, its id, or the first digits of its hash.

    \b
    Examples:
      kgqa edits show corpus/ 12
      kgqa edits show corpus/ 3f9a2c
    """
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.editing.proposals import ProposedEdit
    from kgqa.corpus.editing.standing import standing_of
    from kgqa.corpus.history.listing import disputed_text, view_object, view_of, view_of_proposal
    from kgqa.corpus.history.reviewing import read_book, short
    from kgqa.corpus.history.undoing import find_edit

    with Corpus.open(folder) as corpus:
        database, book = corpus.database, read_book(corpus.folder, corpus.database)
        opposed: list[str] = []
        builds: list[str] = []
        try:
            edit = find_edit(database, name.removeprefix("#"))
        except CorpusError:
            found = book.find(name)
            if not isinstance(found, ProposedEdit):
                raise
            view = view_of_proposal(book, found)
        else:
            held = any(edit.id == each.id for each in book.held)
            view = view_of(database, book, edit, "held" if held else "")
            pairs = standing_of(database, database.seq).disputes.edits
            opposed = sorted({id for pair in pairs if edit.id in pair for id in pair} - {edit.id})
            builds = [short(each) for each in database.dependents(edit)]
        disputed = disputed_text(view, book)
    lines = list(text_lines(view, disputed))
    if builds:
        lines.append(f"  {counted(len(builds), 'edit')} {'builds' if len(builds) == 1 else 'build'} on it: ")
        lines[-1] += ", ".join(builds[:10]) + (", ..." if len(builds) > 10 else "")
    lines += [f"  conflicts with {id}" for id in opposed]
    more = {"disputes": disputed, "conflicts_with": opposed, "dependents": builds}
    print_result(as_json, {**view_object(view), **more}, lines)
