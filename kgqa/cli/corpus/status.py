"""`kgqa corpus status`: what a corpus contains, how it was built, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgqa.cli.corpus.options import CORPUS
from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.text.words import clean, counted

if TYPE_CHECKING:
    from kgqa.corpus.inspection.status import CorpusStatus

SHOWN = 10
_SIZES = ("corpus.sqlite", "graph", "index")
_TITLES = {
    "skipped": ("file left out", "files left out"),
    "failed": ("chunk failed; the next build retries it", "chunks failed; the next build retries them"),
    "waiting": ("chunk not read because of --max-cost", "chunks not read because of --max-cost"),
    "malformed": ("malformed triple left out", "malformed triples left out"),
    "rejected": ("statement of the model left out", "statements of the model left out"),
}


@click.command("status")
@CORPUS
@click.option("--documents", "list_documents", is_flag=True, help="list the documents")
@click.option("--all", "show_all", is_flag=True, help=f"list all that was left out, not only {SHOWN} of a kind")
@JSON
@verbosity_options
def status(folder: Path, list_documents: bool, show_all: bool, as_json: bool) -> None:
    """Show what CORPUS contains, how it was built, its size, and what was left out, with the reasons.

    \b
    Example:
      kgqa corpus status corpus/
    """
    from kgqa.corpus.inspection.status import corpus_documents, corpus_status, status_object

    found = corpus_status(folder)
    documents = corpus_documents(folder) if list_documents else []
    data = {**status_object(found), **({"documents": documents} if list_documents else {})}
    lines = list(_lines(found, None if show_all else SHOWN))
    if documents:
        lines += ["Documents:", *(f"  {clean(each['source'])}" for each in documents)]
    print_result(as_json, data, lines)


def _lines(found: CorpusStatus, most: int | None) -> Iterator[str]:
    number = found.counts
    documents, chunks = counted(number["documents"], "document"), counted(number["chunks"], "chunk")
    communities = counted(number["communities"], "community", "communities")
    yield f"{clean(found.folder)}: {documents}, {chunks}"
    yield f"  facts        {counted(number['statements'], 'statement')}, {counted(number['hyperedges'], 'hyperedge')}"
    yield f"  entities     {number['entities']:,} in {communities}"
    undone = f", {found.undone:,} of them undone" if found.undone else ""
    yield f"  edits        {found.edits:,}{undone}"
    who = f" ({found.extractor})" if found.extractor and found.extract not in (found.extractor, "given") else ""
    size = found.chunk_size.removesuffix("chars")
    unit = "tokens" if size == found.chunk_size else "characters"
    how = f"{found.extract or 'none'}{who}, chunks of {size} {unit}" if size else "no build is finished yet"
    yield f"  extraction   {how}"
    yield f"  graph        {clean(found.graph)}, views {', '.join(found.views)}"
    yield f"  index        {found.index}{f', vectors at {found.vectors}' if found.vectors else ''}"
    sizes = (f"{clean(name)} {size / 1e6:.1f} MB" for name, size in found.bytes.items() if name in _SIZES)
    yield f"  size         {', '.join(sizes)}"
    for kind, (one, many) in _TITLES.items():
        count = found.problems.get(kind, 0)
        if not count:
            continue
        yield f"{counted(count, one, many)}:"
        listed = [each for each in found.listed if each.kind == kind]
        for each in listed[:most]:
            yield f"  {clean(each.place)}: {clean(each.reason)}"
        if count > len(listed[:most]):
            yield f"  ... and {count - len(listed[:most]):,} more ({'--json' if most is None else '--all'} lists more)"
    if found.removed_files:
        names = ", ".join(map(clean, found.removed_files[:SHOWN]))
        yield f"{counted(len(found.removed_files), 'file')} removed with `kgqa corpus remove`: {names}"
