"""`kgqa freebase`: a dump of Freebase, cleaned, and loaded into a server of one's own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, say, verbosity, verbosity_options

DUMP = click.argument("dump", type=click.Path(path_type=Path))


def _cleaning_options(function: Callable) -> Callable:
    for decorate in (
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="Processes that clean. [one a core, at most 4, which share the work]",
        ),
        click.option(
            "--lines-per-chunk",
            type=click.IntRange(min=1),
            metavar="N",
            help="Lines of the dump that go into a chunk file; four files are a group. [10000000]",
        ),
        click.option("--keep-noise", is_flag=True, help="Keep keys, copies, web pages and bookkeeping as well."),
        click.option(
            "--languages",
            metavar="LIST",
            help="Languages of names and texts to keep, such as en or en,de, or all. Texts without a language stay. [en]",
        ),
    ):
        function = decorate(function)
    return function


@click.group("freebase")
def command() -> None:
    """Freebase, from its dump to a server that can be asked.

    \b
    From the dump to answers:
      kgqa virtuoso install
      kgqa virtuoso start
      kgqa freebase load freebase-rdf-latest.gz
      kgqa ask "..." --graph http://127.0.0.1:8890/sparql

    The dump is 32 GB of gzip with 3.1 billion lines, a good half of which no question needs; some are broken. What is
    dropped, and why, is counted. docs/freebase.md says what loading takes.
    """


@command.command("load")
@DUMP
@click.option("--graph-iri", metavar="IRI", help="Graph to load into. [http://freebase.com]")
@_cleaning_options
@click.option("--resume", is_flag=True, help="Go on with an interrupted load.")
@click.option("--restart", is_flag=True, help="Forget an interrupted load and begin anew.")
@click.option(
    "--loaders", type=click.IntRange(min=1, max=4), default=2, show_default=True, help="Chunks loaded at once."
)
@click.option(
    "--folder", type=click.Path(path_type=Path), help="The server's folder. [KGQA_VIRTUOSO_FOLDER, or your own]"
)
@click.option("--dry-run", is_flag=True, help="Clean and count, and load nothing. Needs no server.")
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

    DUMP holds a triple a line, as text or gzip. It is cleaned in groups of chunk files; while the server loads one
    group, the next one is cleaned. Never more than eight chunk files exist. A group that is loaded is noted, so a load
    that was stopped, by Ctrl-C, a crash or a full disk, goes on with --resume, and nothing is lost.

    \b
    Examples:
      kgqa freebase load freebase-rdf-latest.gz
      kgqa freebase load freebase-rdf-latest.gz --languages en,de
      kgqa freebase load freebase-rdf-latest.gz --resume
      kgqa freebase load freebase-rdf-latest.gz --dry-run --json
    """
    from kgqa.virtuoso.freebase.journal import LoadOptions
    from kgqa.virtuoso.freebase.loading import load_dump
    from kgqa.virtuoso.server.server import Server

    if resume and restart:
        raise click.UsageError("--resume goes on, --restart begins anew: give one of them.")
    if dry_run:
        if resume or restart:
            raise click.UsageError("--dry-run loads nothing: leave out --resume and --restart.")
        _clean(dump, None, languages, keep_noise, lines_per_chunk, workers, as_json)
        return
    given = {
        "graph_iri": graph_iri,
        "languages": _languages(languages) if languages else None,
        "keep_noise": keep_noise or None,
        "lines_per_chunk": lines_per_chunk,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if resume and chosen:
        names = ", ".join("--" + name.replace("_", "-") for name in chosen)
        raise click.UsageError(f"--resume goes on with the options the load was begun with: leave out {names}.")
    bar = _Bar(dump)
    server = Server.at(folder)
    try:
        report = load_dump(
            server,
            dump,
            options=None if resume else LoadOptions(**chosen),
            resume=resume,
            restart=restart,
            workers=workers,
            loaders=loaders,
            progress=bar.loading,
        )
    except KeyboardInterrupt as stopped:
        bar.close()
        say(f"\nkgqa: Stopped. {stopped}")
        raise KeyboardInterrupt("said") from None
    finally:
        bar.close()
    if as_json:
        _print_json(report.as_json())
        return
    seconds = report.seconds
    print(
        f"<{_clean_text(report.graph_iri)}> has {report.triples:,} triples, {report.names:,} names and aliases among them, "
        f"after {seconds['total']:,.0f} s (cleaning {seconds.get('cleaning', 0):,.0f} s, meanwhile loading "
        f"{seconds.get('loading', 0):,.0f} s; names {seconds['indexing']:,.0f} s)."
    )
    _print_tally(report.tally)
    print(f'Ask it: kgqa ask "..." --graph {server.url} --graph-iri {_clean_text(report.graph_iri)}')


@command.command("clean")
@DUMP
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the chunk files; made if it is not there.")
@click.option("--dry-run", is_flag=True, help="Count only, and write nothing.")
@_cleaning_options
@JSON
@verbosity_options
def clean(
    dump: Path,
    out: Path | None,
    dry_run: bool,
    languages: str | None,
    keep_noise: bool,
    lines_per_chunk: int | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Clean DUMP into files of N-Triples, for any server; or see what is in it.

    Each line that is written is valid N-Triples. What is dropped is counted by reason, with a few examples.

    \b
    Examples:
      kgqa freebase clean freebase-rdf-latest.gz --out cleaned/
      kgqa freebase clean freebase-rdf-latest.gz --dry-run
    """
    if (out is None) != dry_run:
        raise click.UsageError("Give either --out FOLDER, or --dry-run to count only.")
    _clean(dump, out, languages, keep_noise, lines_per_chunk, workers, as_json)


def _clean(
    dump: Path,
    out: Path | None,
    languages: str | None,
    keep_noise: bool,
    lines_per_chunk: int | None,
    workers: int | None,
    as_json: bool,
) -> None:
    from kgqa.virtuoso.freebase.cleaning import clean_dump
    from kgqa.virtuoso.freebase.dump.layout import LINES_PER_CHUNK
    from kgqa.virtuoso.freebase.journal import LoadOptions

    options = LoadOptions(languages=_languages(languages or "en"), keep_noise=keep_noise)
    bar = _Bar(dump)
    try:
        tally = clean_dump(
            dump,
            options.cleaning(),
            out,
            lines_per_chunk=lines_per_chunk or LINES_PER_CHUNK,
            workers=workers,
            progress=bar.cleaning,
        )
    finally:
        bar.close()
    if as_json:
        _print_json(tally.as_json())
    else:
        _print_tally(tally)


def _languages(text: str) -> tuple[str, ...]:
    from kgqa.schema import language_list
    from kgqa.virtuoso.freebase.dump.rules import ALL_LANGUAGES

    languages = language_list(text)
    if not languages or ("all" in languages and len(languages) > 1):
        raise click.UsageError("--languages takes tags such as en,de, or all.")
    return ALL_LANGUAGES if languages == ALL_LANGUAGES else languages


class _Bar:
    """A progress bar over the bytes of the dump, with rate and remaining time. It shows itself on a terminal only."""

    def __init__(self, dump: Path) -> None:
        self._total = dump.stat().st_size if dump.is_file() else None
        self._bar: Any = None

    def cleaning(self, advance) -> None:
        self._show(advance.bytes_read, f"cleaning group {advance.group + 1}")

    def loading(self, step) -> None:
        what = {
            "waiting": "waiting for the server to end an earlier load",
            "cleaning": f"cleaning group {step.groups_done + 1} and on",
            "loading": f"the server loads group {step.groups_done + 1}",
            "indexing": "indexing names",
        }[step.stage]
        self._show(step.bytes_read, f"{what}; {step.groups_done} on disk")

    def _show(self, bytes_read: int, what: str) -> None:
        if verbosity() < 0:
            return
        if self._bar is None:
            from tqdm import tqdm

            # what an earlier run has read is no part of this one's rate
            self._bar = tqdm(
                total=self._total, initial=bytes_read, unit="B", unit_scale=True, disable=None, file=sys.stderr
            )
        self._bar.set_description(what, refresh=False)
        self._bar.update(max(0, bytes_read - self._bar.n))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _print_tally(tally) -> None:
    share = 100 * tally.kept / tally.lines if tally.lines else 0
    print(f"{tally.lines:,} lines: {tally.kept:,} kept ({share:.1f}%), {tally.lines - tally.kept:,} dropped.")
    data = tally.as_json()
    for what, count in data["repaired"].items():
        print(f"  {count:>14,}  mended: {what}")
    for reason, count in data["dropped"].items():
        print(f"  {count:>14,}  dropped: {reason}")
        # one example tells what a rule or a complaint means; --json has more
        for example in data["examples"].get(reason, [])[:1]:
            number = f"line {example['line']:,}: " if example["line"] else ""
            print(f"                    {number}{_clean_text(example['text'])[:100]}")


def _print_json(data: dict[str, Any]) -> None:
    from kgqa.answer_json import json_text

    print(json_text(data, indent=1))


def _clean_text(text: str) -> str:
    from kgqa.words import clean

    return clean(text)
