"""Options of both `kgqa freebase load` and `kgqa freebase clean`."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.options import Command
from kgqa.schema import language_list
from kgqa.virtuoso.freebase.dump.rules import ALL_LANGUAGES

DUMP = click.argument("dump", type=click.Path(path_type=Path))
_OPTIONS = (
    click.option(
        "--languages",
        metavar="LIST",
        help="languages of texts to keep: tags such as en or en,de, or all; untagged texts are always kept. [en]",
    ),
    click.option("--keep-noise", is_flag=True, help="also keep keys, copies, web pages and bookkeeping"),
    click.option(
        "--lines-per-chunk",
        type=click.IntRange(min=1),
        metavar="N",
        help="lines of the dump per chunk file; a group has four chunk files. [10000000]",
    ),
    click.option(
        "--workers", type=click.IntRange(min=1), help="number of cleaning processes, at most 4. [one per core]"
    ),
)


def cleaning_options(function: Command) -> Command:
    """Add the options for cleaning the dump."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def parse_languages(text: str) -> tuple[str, ...]:
    """Return the language tags of --languages."""
    languages = language_list(text)
    if not languages or ("all" in languages and len(languages) > 1):
        raise click.UsageError("--languages is not a list of language tags. Give tags such as en,de, or all.")
    return ALL_LANGUAGES if languages == ALL_LANGUAGES else languages
