"""`kgqa freebase clean`: clean a dump into N-Triples files, or count its lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgqa.cli.bars import StageBar
from kgqa.cli.options import JSON, check_usage, combined, print_result, stop_message, verbosity_options, whole
from kgqa.cli.servers.options import FOLDER
from kgqa.schema import language_list
from kgqa.text.words import clean, counted
from kgqa.virtuoso.freebase.blocks import Tally
from kgqa.virtuoso.freebase.cleaning import LINES_PER_CHUNK, clean_dump
from kgqa.virtuoso.freebase.judge import ALL_LANGUAGES, Cleaning

if TYPE_CHECKING:
    from kgqa.virtuoso.freebase.loading import FreebaseProgress

DUMP = click.argument("dump", type=click.Path(path_type=Path))
cleaning_options = combined(
    click.option(
        "--languages",
        metavar="LIST",
        help="languages of texts to keep: tags such as en or en,de, or all; untagged texts are always kept. [en]",
    ),
    click.option("--keep-noise", is_flag=True, help="also keep keys, copies, web pages and bookkeeping"),
    click.option(
        "--lines-per-chunk",
        type=whole(1),
        metavar="N",
        help="lines of the dump per chunk file; a group has four chunk files. [10000000]",
    ),
    click.option("--workers", type=whole(1), help="number of cleaning processes, at most 4. [one per core]"),
)


def parse_languages(text: str) -> tuple[str, ...]:
    """Return the language tags of --languages."""
    languages = language_list(text)
    if not languages or ("all" in languages and len(languages) > 1):
        raise click.UsageError("--languages is not a list of language tags. Give tags such as en,de, or all.")
    return ALL_LANGUAGES if languages == ALL_LANGUAGES else languages


class DumpBar(StageBar):
    """A progress bar over the bytes of the dump, with rate and remaining time."""

    def __init__(self, dump: Path) -> None:
        super().__init__(unit="B", unit_scale=True)
        self._total = dump.stat().st_size if dump.is_file() else 0

    def show_cleaning(self, group: int, bytes_read: int) -> None:
        """Show the progress of `clean_dump`."""
        self("dump", bytes_read, self._total, f"cleaning group {group + 1}")

    def show_loading(self, progress: FreebaseProgress) -> None:
        """Show the progress of `load_dump`."""
        activity = {
            "cleaning": f"cleaning group {progress.groups_done + 1} and later",
            "loading": f"loading group {progress.groups_done + 1}",
            "indexing": "indexing names",
        }[progress.stage]
        self("dump", progress.bytes_read, self._total, f"{activity}; {progress.groups_done} on disk")


def tally_lines(tally: Tally) -> Iterator[str]:
    """Yield the counts of kept, repaired and dropped lines, with one example per reason."""
    share = 100 * tally.kept / tally.lines if tally.lines else 0
    yield f"{counted(tally.lines, 'line')}: {tally.kept:,} kept ({share:.1f}%), {tally.lines - tally.kept:,} dropped."
    data = tally.as_json()
    yield from (f"  {count:>14,}  repaired: {repair}" for repair, count in data["repaired"].items())
    for reason, count in data["dropped"].items():
        yield f"  {count:>14,}  dropped: {reason}"
        for example in data["examples"].get(reason, [])[:1]:
            number = f"line {example['line']:,}: " if example["line"] else ""
            yield f"                    {number}{clean(example['text'])[:100]}"


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
    check_usage(
        ((out is None) != dry_run, "Give --out FOLDER to write files, or --dry-run to count lines, but not both.")
    )
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
    cleaning = Cleaning(parse_languages(languages or "en"), keep_noise)
    with DumpBar(dump) as bar:
        tally = clean_dump(
            dump,
            cleaning,
            out,
            lines_per_chunk=lines_per_chunk or LINES_PER_CHUNK,
            workers=workers,
            progress=bar.show_cleaning,
        )
    print_result(as_json, tally.as_json(), tally_lines(tally))


@click.command("load")
@DUMP
@click.option("--graph-iri", metavar="IRI", help="graph to load into. [http://freebase.com]")
@cleaning_options
@click.option("--resume", is_flag=True, help="resume an interrupted load")
@click.option("--restart", is_flag=True, help="discard an interrupted load and load the whole dump")
@click.option(
    "--loaders",
    type=whole(1, 4),
    default=2,
    show_default=True,
    help="number of chunk files that the server loads at the same time",
)
@FOLDER
@click.option("--dry-run", is_flag=True, help="count the lines without loading them; needs no server")
@JSON
@verbosity_options
def load(
    dump: Path,
    graph_iri: str | None,
    languages: str | None,
    keep_noise: bool,
    lines_per_chunk: int | None,
    workers: int | None,
    resume: bool,
    restart: bool,
    loaders: int,
    folder: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Clean DUMP and load it into the server that `kgqa virtuoso start` started, then index its names.

    DUMP has one triple per line, as text or gzip. The dump is cleaned in groups of chunk files; while the server loads
    one group, kgqa cleans the next group. At most eight chunk files exist at the same time. Loaded groups are recorded,
    so that after Ctrl-C, a crash or a full disk --resume continues with the next group.

    \b
    Examples:
      kgqa freebase load freebase-rdf-latest.gz
      kgqa freebase load freebase-rdf-latest.gz --languages en,de
      kgqa freebase load freebase-rdf-latest.gz --resume
      kgqa freebase load freebase-rdf-latest.gz --dry-run --json
    """
    from kgqa.virtuoso.freebase.loading import GRAPH_IRI, load_dump
    from kgqa.virtuoso.server import Server

    check_usage(
        (resume and restart, "--resume and --restart cannot be combined. Give only one of them."),
        (
            dry_run and (resume or restart),
            "--dry-run only counts the lines of the dump. Omit --resume and --restart.",
        ),
    )
    if dry_run:
        print_cleaned(dump, None, languages, keep_noise, lines_per_chunk, workers, as_json)
        return
    given: dict[str, Any] = {
        "graph_iri": graph_iri,
        "languages": languages,
        "keep_noise": keep_noise or None,
        "lines_per_chunk": lines_per_chunk,
    }
    names = ", ".join("--" + name.replace("_", "-") for name, value in given.items() if value is not None)
    check_usage((resume and names, f"--resume uses the options of the interrupted load. Omit {names}."))
    server = Server.at(folder)
    with stop_message(), DumpBar(dump) as bar:
        report = load_dump(
            server,
            dump,
            graph_iri=graph_iri or GRAPH_IRI,
            cleaning=Cleaning(parse_languages(languages or "en"), keep_noise),
            lines_per_chunk=lines_per_chunk or LINES_PER_CHUNK,
            resume=resume,
            restart=restart,
            workers=workers,
            loaders=loaders,
            progress=bar.show_loading,
        )
    lines = (
        f"<{clean(report.graph_iri)}> has {counted(report.triples, 'triple')}, {report.names:,} of them names and "
        f"aliases, after {report.seconds:,.0f} s.",
        *tally_lines(report.tally),
        f'Ask it: kgqa ask "..." --graph {server.url} --graph-iri {clean(report.graph_iri)}',
    )
    print_result(as_json, report.as_json(), lines)
