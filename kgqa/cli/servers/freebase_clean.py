"""`kgqa freebase clean`: clean a dump into N-Triples files, or count its lines."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.options import JSON, verbosity_options
from kgqa.cli.servers.freebase_options import DUMP, cleaning_options, parse_languages
from kgqa.cli.servers.freebase_output import DumpBar, print_tally
from kgqa.cli.servers.options import print_json
from kgqa.virtuoso.freebase.cleaning import clean_dump
from kgqa.virtuoso.freebase.dump.layout import LINES_PER_CHUNK
from kgqa.virtuoso.freebase.journal import LoadOptions


@click.command("clean")
@DUMP
@click.option("--out", type=click.Path(path_type=Path), help="folder for the chunk files, created if needed")
@click.option("--dry-run", is_flag=True, help="count the lines without writing files")
@cleaning_options
@JSON
@verbosity_options
def clean_command(
    dump: Path,
    out: Path | None,
    dry_run: bool,
    languages: str | None,
    keep_noise: bool,
    lines_per_chunk: int | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Clean DUMP into N-Triples files for any server, or count its lines.

    All written lines are valid N-Triples. Dropped lines are counted by reason, with a few examples.

    \b
    Examples:
      kgqa freebase clean freebase-rdf-latest.gz --out cleaned/
      kgqa freebase clean freebase-rdf-latest.gz --dry-run
    """
    if (out is None) != dry_run:
        raise click.UsageError("Give --out FOLDER to write files, or --dry-run to count lines, but not both.")
    print_cleaned(dump, out, languages, keep_noise, lines_per_chunk, workers, as_json)


def print_cleaned(
    dump: Path,
    out: Path | None,
    languages: str | None,
    keep_noise: bool,
    lines_per_chunk: int | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Clean a dump with a progress bar and print the counts; write no files if `out` is None."""
    options = LoadOptions(languages=parse_languages(languages or "en"), keep_noise=keep_noise)
    bar = DumpBar(dump)
    try:
        tally = clean_dump(
            dump,
            options.cleaning(),
            out,
            lines_per_chunk=lines_per_chunk or LINES_PER_CHUNK,
            workers=workers,
            progress=bar.show_cleaning,
        )
    finally:
        bar.close()
    if as_json:
        print_json(tally.as_json())
    else:
        print_tally(tally)
