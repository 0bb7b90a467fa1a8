"""`kgqa corpus export`: write the graph, the statements or the triples of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgqa.cli.corpus.options import CORPUS
from kgqa.cli.options import say, verbosity_options

if TYPE_CHECKING:
    from kgqa.corpus.inspection.exporting import ExportFormat


@click.command("export")
@CORPUS
@click.option(
    "--format",
    "format_",
    type=click.Choice(["nquads", "jsonl", "csv", "openie"]),
    default="nquads",
    show_default=True,
    help="nquads: the graph; jsonl: statements and hyperedges with their quotes, one per line; csv: one place of a "
    "statement per line; openie: passages and triples in the format of HippoRAG",
)
@click.option("--view", "views", multiple=True, metavar="NAME", help="with nquads: only this view; may be repeated")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="file to write. [standard output]")
@verbosity_options
def export(folder: Path, format_: ExportFormat, views: tuple[str, ...], out: Path | None) -> None:
    """Write the content of CORPUS in another format.

    \b
    Examples:
      kgqa corpus export corpus/ > corpus.nq
      kgqa corpus export corpus/ --view facts --out facts.nq
      kgqa corpus export corpus/ --format jsonl --out statements.jsonl
      kgqa corpus export corpus/ --format openie --out openie.json
    """
    from kgqa.corpus.corpus import Corpus
    from kgqa.corpus.inspection.exporting import export_corpus
    from kgqa.storage.atomic_files import replace_file

    if views and format_ != "nquads":
        raise click.UsageError("--view is only for --format nquads.")
    with Corpus.open(folder) as corpus:
        lines = export_corpus(corpus, format_, views=views)
        if out is None:
            for line in lines:
                print(line)
            return
        replace_file(out, (f"{line}\n".encode() for line in lines))
    say(f"kgqa: Written to {out}.")
