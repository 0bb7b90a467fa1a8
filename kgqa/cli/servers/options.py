"""Options and output functions of both `kgqa virtuoso` and `kgqa freebase`."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.options import say
from kgqa.text.words import clean

FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="the server's folder. [KGQA_VIRTUOSO_FOLDER, or virtuoso in kgqa's data folder]",
)


def say_clean(text: str) -> None:
    """Print a note on standard error, without the control characters that text from other programs may contain."""
    say(clean(text))
