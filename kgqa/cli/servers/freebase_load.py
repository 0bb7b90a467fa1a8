"""`kgqa freebase load`: clean a dump, load it into a Virtuoso server run by kgqa, and index its names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, say, verbosity_options
from kgqa.cli.servers.freebase_clean import print_cleaned
from kgqa.cli.servers.freebase_options import DUMP, cleaning_options, parse_languages
from kgqa.cli.servers.freebase_output import DumpBar, print_tally
from kgqa.cli.servers.options import FOLDER, print_json
from kgqa.virtuoso.freebase.journal import LoadOptions
from kgqa.virtuoso.freebase.loading import load_dump
from kgqa.virtuoso.server.server import Server
from kgqa.words import clean


@click.command("load")
@DUMP
@click.option("--graph-iri", metavar="IRI", help="graph to load into. [http://freebase.com]")
@cleaning_options
@click.option("--resume", is_flag=True, help="resume an interrupted load")
@click.option("--restart", is_flag=True, help="discard an interrupted load and load the whole dump")
@click.option(
    "--loaders",
    type=click.IntRange(min=1, max=4),
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
    if resume and restart:
        raise click.UsageError("--resume and --restart cannot be combined. Give only one of them.")
    if dry_run:
        if resume or restart:
            raise click.UsageError("--dry-run only counts the lines of the dump. Omit --resume and --restart.")
        print_cleaned(dump, None, languages, keep_noise, lines_per_chunk, workers, as_json)
        return
    given: dict[str, Any] = {
        "graph_iri": graph_iri,
        "languages": parse_languages(languages) if languages else None,
        "keep_noise": keep_noise or None,
        "lines_per_chunk": lines_per_chunk,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if resume and chosen:
        names = ", ".join("--" + name.replace("_", "-") for name in chosen)
        raise click.UsageError(f"--resume uses the options of the interrupted load. Omit {names}.")
    bar, server = DumpBar(dump), Server.at(folder)
    try:
        report = load_dump(
            server,
            dump,
            options=None if resume else LoadOptions(**chosen),
            resume=resume,
            restart=restart,
            workers=workers,
            loaders=loaders,
            progress=bar.show_loading,
        )
    except KeyboardInterrupt as stopped:
        bar.close()
        say(f"\nkgqa: Stopped. {stopped}".rstrip())
        raise KeyboardInterrupt("reported") from None
    finally:
        bar.close()
    if as_json:
        print_json(report.as_json())
        return
    seconds = report.seconds
    print(
        f"<{clean(report.graph_iri)}> has {report.triples:,} triples, {report.names:,} of them names and aliases, "
        f"after {seconds['total']:,.0f} s (cleaning {seconds.get('cleaning', 0):,.0f} s, in parallel loading "
        f"{seconds.get('loading', 0):,.0f} s; names {seconds['indexing']:,.0f} s)."
    )
    print_tally(report.tally)
    print(f'Ask it: kgqa ask "..." --graph {server.url} --graph-iri {clean(report.graph_iri)}')
