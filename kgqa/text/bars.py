"""Progress bars for programs and notebooks, on standard error or as widgets.

The command line has bars of its own (`kgqa.cli.bars`), which follow --quiet.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


def progress_bar(**options: Any) -> Any:
    """Return a progress bar of tqdm: a widget or text in a notebook, text on a terminal, and else nothing.

    Args:
        options: those of tqdm.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets, tqdm warns and shows text
        from tqdm.auto import tqdm

    return tqdm(disable=False if in_notebook() else None, **options)
