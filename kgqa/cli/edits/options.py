"""Options and helpers that several commands of `kgqa edits` share."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgqa.cli.corpus.options import opened_tools
from kgqa.text.words import counted

if TYPE_CHECKING:
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.history.listing import EditView

CORPUS = click.argument("folder", metavar="CORPUS", type=click.Path(path_type=Path))
BY = click.option("--by", metavar="NAME", help="who decides, for the log. [your user name]")
SHOWN_CHARS = 100


@contextmanager
def changed_corpus(folder: Path) -> Iterator[Corpus]:
    """Open a corpus for writing; at the end, its graph is brought up to the log, also after an error or Ctrl-C.

    An index in the folder follows when the corpus is next searched; vectors in a database elsewhere follow now.
    """
    from kgqa.corpus.building.deriving import update_index
    from kgqa.corpus.building.preparing import opened_corpus
    from kgqa.corpus.corpus import vectors_of
    from kgqa.corpus.folder import CorpusFolder

    opened = CorpusFolder(folder)
    opened.file  # noqa: B018 - raises the error for a folder without a corpus
    elsewhere = bool(vectors_of(opened))
    options = {} if elsewhere else {"rank__embeddings": "off"}
    with opened_tools(options, models=False) as tools, opened_corpus(opened, tools) as corpus:
        try:
            yield corpus
        finally:
            corpus.editor.publish()
        if elsewhere:
            update_index(corpus)


def person(by: str | None) -> str:
    """Return who decides."""
    if by:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "a person"


def headline(view: EditView) -> str:
    """Return one line about an edit: how it is called, its kind, its state, and what it changes."""
    from kgqa.text.words import clean

    name = f"#{view.seq} {view.short}" if view.seq else view.short or "-"
    texts = view.adds or view.removes
    text = clean(texts[0]) if texts else clean(view.reason or view.target)
    text = text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
    what = ""
    if view.additions > 1 or (view.additions and not view.adds):
        what = f" ({counted(view.additions, 'addition')})"
    trust = f" [{view.trust}]" if view.trust else ""
    return f"{name}  {view.state}  {view.kind}{trust}{what}  {text}".rstrip()


def text_lines(view: EditView, disputed: str = "") -> Iterator[str]:
    """Yield the lines about an edit: who made it, what it changes as a diff, its sources with their quotes."""
    from kgqa.text.words import clean

    name = f"#{view.seq} {view.short}" if view.seq else view.short or "(never part of the graph)"
    yield f"{view.kind} {name}: {view.state}"
    where = f", session {clean(view.session)}" if view.session else ""
    yield f"  by        {clean(view.agent)}{where}, {clean(view.at)}"
    for label, text in (("question", view.question), ("reason", view.reason), ("decided", view.decided)):
        if text:
            yield f"  {label:<9} {clean(text)}"
    if view.why:
        yield f"  why       {clean(view.why)}"
    if view.target:
        yield f"  about     {clean(view.target)}"
    for text in view.removes:
        yield f"  - {clean(text)}"
    if disputed:
        yield f"  = {clean(disputed)}  (kept, because it is trusted more)"
    for text in view.adds:
        yield f"  + {clean(text)}"
    if view.additions > len(view.adds) or view.removals > len(view.removes):
        yield f"  in all {counted(view.additions, 'addition')}, {counted(view.removals, 'removal')}"
    for number, source in enumerate(view.sources):
        yield f"  source    [{clean(source.trust) or 'unknown'}] {clean(source.iri)}"
        if number < len(view.quotes):
            yield f"            “{clean(view.quotes[number])}”"
