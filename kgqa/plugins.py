"""Loads methods, choosers, data set readers and stores from other packages, by entry point."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Literal

from kgqa.errors import SettingsError

Kind = Literal["method", "chooser", "dataset", "store"]


def plugin_names(kind: Kind) -> list[str]:
    """List the names of all installed plugins of a kind."""
    return sorted({each.name for each in entry_points(group=f"kgqa.{kind}s")})


def plugin(kind: Kind, name: str, *, ours: list[str]) -> Any:
    """Load a plugin by name.

    Args:
        ours: names of the methods, choosers, data sets or stores in kgqa itself, for the error message.

    Raises:
        SettingsError: there is no such plugin, or it cannot be imported.
    """
    for each in entry_points(group=f"kgqa.{kind}s", name=name):
        try:
            return each.load()
        except (Exception, SystemExit) as error:  # the import of a foreign package may raise anything
            raise SettingsError(f"The {kind} {name} cannot be loaded from {each.value}: {error}") from error
    raise SettingsError(f"Unknown {kind} {name}. Choose one of: {', '.join([*ours, *plugin_names(kind)])}.")
