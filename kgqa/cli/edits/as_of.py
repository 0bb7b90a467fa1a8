"""`kgqa edits as-of`: write an earlier state of a corpus."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.edits.options import CORPUS
from kgqa.cli.options import say, verbosity_options
from kgqa.text.words import clean, counted


@click.command("as-of")
@CORPUS
@click.argument("moment", metavar="SEQ|TIME")
@click.option("--into", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="folder to write")
@verbosity_options
def as_of(folder: Path, moment: str, into: Path) -> None:
    """Write CORPUS as it was after edit SEQ, or at TIME, to a new folder, which can be asked like any corpus.

    TIME is in ISO 8601, in UTC unless it says otherwise; a day means its end.

    \b
    Examples:
      kgqa edits as-of corpus/ 12 --into corpus-12/
      kgqa edits as-of corpus/ 2026-01-31 --into january/
      kgqa ask "..." --graph january/
    """
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.editing.proposals import ACCEPTED
    from kgqa.corpus.history.as_of import edit_number, write_as_of
    from kgqa.corpus.history.reviewing import read_book

    with Corpus.open(folder) as corpus:
        decisions = read_book(corpus.folder, corpus.database).decisions
        accepted = {id: each.at for id, each in decisions.items() if each.decision == ACCEPTED}
        seq = edit_number(corpus.database, moment, accepted)
        notes = write_as_of(corpus.folder, corpus.database, seq, into)
    for note in notes:
        say(f"kgqa: {clean(note)}")
    print(f"{into}: the corpus after {counted(seq, 'edit')}.")
