"""`kgqa edits merge`: merge the log of another corpus."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.edits.options import CORPUS, changed_corpus
from kgqa.cli.options import say, verbosity_options
from kgqa.text.words import counted


@click.command("merge")
@CORPUS
@click.argument("other", metavar="OTHER", type=click.Path(path_type=Path))
@click.option("--hold", is_flag=True, help="hide the new texts of conflicts until a review")
@verbosity_options
def merge(folder: Path, other: Path, hold: bool) -> None:
    """Merge the log of OTHER into CORPUS: the edits that are missing, and proposed ones with their quotes.

    OTHER is the folder of another corpus, such as a copy that was edited elsewhere, or a file of proposals
    (proposals.jsonl). Merging twice changes nothing, and the order of merges does not matter. Where both logs replaced
    the same text, both new texts live and are shown together; with --hold, none of them does until a review. Merge
    only logs that you trust: they say themselves how far their sources are trusted.

    \b
    Examples:
      kgqa edits merge corpus/ colleague/corpus/
      kgqa edits merge corpus/ colleague/corpus/ --hold
    """
    from kgqa.corpus.history.merging import merge_from

    with changed_corpus(folder) as corpus:
        done = merge_from(corpus.editor, other, hold=hold)
    print(f"{counted(done.edits, 'edit')} and {counted(done.proposals, 'proposed edit')} merged.")
    if done.conflicts or done.disputes:
        print(f"{counted(done.conflicts, 'pair')} of edits in conflict.")
    if done.held:
        count = counted(len(done.held), "text is", "texts are")
        say(f"kgqa: {count} hidden until a review: kgqa edits review {folder}")
