"""`kgqa edits review`: decide about proposed edits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgqa.cli.edits.options import BY, CORPUS, changed_corpus, person, text_lines
from kgqa.cli.options import check_usage, say, stop_message, verbosity_options
from kgqa.errors import CorpusError
from kgqa.text.words import counted

if TYPE_CHECKING:
    from kgqa.corpus.edit_log import Edit
    from kgqa.corpus.editing.proposals import ProposedEdit

_CHOICES = {"a": "accept", "r": "reject", "s": "skip", "q": "quit"}


@click.command("review")
@CORPUS
@click.option("--accept", "accepted", multiple=True, metavar="EDIT", help="accept this edit; may be repeated")
@click.option("--reject", "rejected", multiple=True, metavar="EDIT", help="reject this edit; may be repeated")
@click.option("--all", "all_", type=click.Choice(["accept", "reject"]), help="decide about all that wait")
@click.option("--session", metavar="NAME", help="only the edits of this session")
@click.option("--reason", default="", metavar="TEXT", help="a reason that is kept with the decisions")
@BY
@verbosity_options
def review(
    folder: Path,
    accepted: tuple[str, ...],
    rejected: tuple[str, ...],
    all_: str | None,
    session: str | None,
    reason: str,
    by: str | None,
) -> None:
    """Decide about the edits of CORPUS that wait: proposed ones, and texts that a merge holds back.

    Without options, each edit is shown, and you choose: accept, reject, skip, quit. Every decision is kept at once, so
    that Ctrl-C loses nothing. An accepted edit becomes a part of the log and the graph; a rejected one is kept as a
    decision only.

    \b
    Examples:
      kgqa edits review corpus/
      kgqa edits review corpus/ --accept 3f9a2c --reject 77b0d1
      kgqa edits review corpus/ --all accept --session s1
    """
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.history.reviewing import read_book

    check_usage(
        (all_ and (accepted or rejected), "Give either --all, or --accept and --reject."),
        (set(accepted) & set(rejected), "The same edit is given to --accept and --reject."),
        (session and (accepted or rejected), "--session is for --all and for a review without --accept or --reject."),
    )
    with Corpus.open(folder) as corpus:
        book = read_book(corpus.folder, corpus.database)
    waiting = book.pending(session)
    if accepted or rejected or all_:
        yes = waiting if all_ == "accept" else [book.find(name) for name in accepted]
        no = waiting if all_ == "reject" else [book.find(name) for name in rejected]
        reviewer = _Reviewer(folder, person(by), reason)
        reviewer.accept(yes)
        reviewer.reject(no)
        print(f"{reviewer.summary()}; {counted(_left(folder, session), 'edit')} waiting.")
        return
    if not waiting:
        print("No edit waits.")
        return
    _ask(folder, waiting, _Reviewer(folder, person(by), reason), session)


def _ask(folder: Path, waiting: Sequence[ProposedEdit | Edit], reviewer: _Reviewer, session: str | None) -> None:
    print(f"{counted(len(waiting), 'edit')} waiting.")
    with _kept_after_stop():
        for number, each in enumerate(waiting, 1):
            print(f"\n{number}/{len(waiting)}")
            for line in reviewer.lines(each):
                print(line)
            choice = click.prompt(
                "accept, reject, skip or quit", type=click.Choice([*_CHOICES, *_CHOICES.values()]), default="skip"
            )
            choice = _CHOICES.get(choice, choice)
            if choice == "quit":
                break
            try:
                if choice == "accept":
                    reviewer.accept([each])
                elif choice == "reject":
                    reviewer.reject([each])
            except CorpusError as error:
                say(f"kgqa: {error}")
    print(f"{reviewer.summary()}; {counted(_left(folder, session), 'edit')} waiting.")


@contextmanager
def _kept_after_stop() -> Iterator[None]:
    """On Ctrl-C or at the end of the input, say that the decisions are kept."""
    with stop_message("What you decided is kept."):
        try:
            yield
        except click.Abort:
            raise KeyboardInterrupt from None


class _Reviewer:
    """Keeps decisions, each at once; another process may write to the corpus between them."""

    def __init__(self, folder: Path, by: str, reason: str) -> None:
        self._folder = folder
        self._by = by
        self._reason = reason
        self._accepted = self._rejected = 0

    def lines(self, each: ProposedEdit | Edit) -> list[str]:
        from kgqa.corpus.corpus import Corpus
        from kgqa.corpus.editing.proposals import ProposedEdit
        from kgqa.corpus.history.listing import disputed_text, view_of, view_of_proposal
        from kgqa.corpus.history.reviewing import read_book

        with Corpus.open(self._folder) as corpus:
            book = read_book(corpus.folder, corpus.database)
            if not isinstance(each, ProposedEdit):
                return list(text_lines(view_of(corpus.database, book, each, "held")))
            view = view_of_proposal(book, each)
            return list(text_lines(view, disputed_text(view, book)))

    def accept(self, chosen: Sequence[ProposedEdit | Edit]) -> None:
        from kgqa.corpus.history.reviewing import accept, read_book

        if not chosen:
            return
        with changed_corpus(self._folder) as corpus:
            book = read_book(corpus.folder, corpus.database)
            self._accepted += len(accept(corpus.editor, book, chosen, by=self._by, why=self._reason))

    def reject(self, chosen: Sequence[ProposedEdit | Edit]) -> None:
        from kgqa.corpus.corpus import Corpus
        from kgqa.corpus.history.reviewing import read_book, reject

        if not chosen:
            return
        with Corpus.open(self._folder) as corpus:
            book = read_book(corpus.folder, corpus.database)
            reject(corpus.folder, book, chosen, by=self._by, why=self._reason)
        self._rejected += len(chosen)

    def summary(self) -> str:
        return f"{self._accepted:,} accepted, {self._rejected:,} rejected"


def _left(folder: Path, session: str | None) -> int:
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.history.reviewing import read_book

    with Corpus.open(folder) as corpus:
        book = read_book(corpus.folder, corpus.database)
    return len(book.pending(session))
