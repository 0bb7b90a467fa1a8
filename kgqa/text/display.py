"""What programs and notebooks show: progress bars, and values as HTML.

The command line has bars of its own (`kgqa.cli.bars`), which follow --quiet. The data classes stand below the modules
that draw them: a class only calls `html_of`, and `kgqa/__init__.py` registers the function that draws its instances.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

_RENDERERS: dict[str, Callable[[Any], str]] = {}


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


def draw_with(kind: str, function: Callable[[Any], str]) -> None:
    """Register the function that returns the HTML of all instances of a class, given by its name."""
    _RENDERERS[kind] = function


def html_of(value: object) -> str:
    """Return a value as HTML for notebooks: self-contained, without scripts, all text escaped."""
    return _RENDERERS[type(value).__name__](value)
