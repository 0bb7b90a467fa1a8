"""`kgqa edits undo`: undo edits."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.edits.options import BY, CORPUS, changed_corpus, headline, person
from kgqa.cli.options import check_usage, say, verbosity_options
from kgqa.text.words import counted


@click.command("undo")
@CORPUS
@click.argument("names", nargs=-1, metavar="[EDIT]...")
@click.option("--session", metavar="NAME", help="undo all edits of this session")
@click.option("--source", metavar="IRI|URL", help="undo all edits that rest on this source")
@click.option("--cascade", is_flag=True, help="undo the edits that build on them, too")
@click.option("--dry-run", is_flag=True, help="list what would be undone, and change nothing")
@click.option("--reason", default="", metavar="TEXT", help="a reason, for the log")
@BY
@verbosity_options
def undo(
    folder: Path,
    names: tuple[str, ...],
    session: str | None,
    source: str | None,
    cascade: bool,
    dry_run: bool,
    reason: str,
    by: str | None,
) -> int:
    """Undo edits of CORPUS. The log keeps them; an undo can be undone, too.

    EDIT is its number in the log, its id, or the first digits of its hash. If other edits build on what is undone,
    they are listed, and nothing changes without --cascade.

    \b
    Examples:
      kgqa edits undo corpus/ 12
      kgqa edits undo corpus/ --source https://example.org/page --dry-run
      kgqa edits undo corpus/ --session s1 --cascade
    """
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.history.listing import view_of
    from kgqa.corpus.history.reviewing import read_book
    from kgqa.corpus.history.undoing import find_edit, plan_undo, undo_all

    given = bool(names) + (session is not None) + (source is not None)
    check_usage((given != 1, "Give edits, --session or --source."))

    with Corpus.open(folder) as corpus:
        database = corpus.database
        chosen = [find_edit(database, name.removeprefix("#")) for name in names]
        plan = plan_undo(database, edits=chosen, session=session, source=source)
        book = read_book(corpus.folder, database)
        edits = [headline(view_of(database, book, each)) for each in plan.edits]
        others = [headline(view_of(database, book, each)) for each in plan.dependents]
    if plan.undone:
        say(f"kgqa: {counted(len(plan.undone), 'edit is', 'edits are')} undone already.")
    if not plan.edits:
        print("Nothing to undo.")
        return 0
    if dry_run or (others and not cascade):
        print(f"{counted(len(edits), 'edit')} to undo:")
        for line in edits:
            print(f"  {line}")
        if others:
            print(f"{counted(len(others), 'edit builds', 'edits build')} on {'it' if len(edits) == 1 else 'them'}:")
            for line in others:
                print(f"  {line}")
        if not dry_run:
            say("kgqa: Nothing was undone. To undo all of these: --cascade", also_quiet=True)
        return 0 if dry_run else 1
    with changed_corpus(folder) as corpus:
        plan = plan_undo(corpus.database, edits=chosen, session=session, source=source)
        done = undo_all(corpus.editor, plan, agent=person(by), reason=reason, cascade=cascade)
    print(f"{counted(len(done), 'edit')} undone.")
    return 0
