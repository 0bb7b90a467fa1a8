"""What other packages bring: methods, choosers and datasets, found by entry point when they are asked for by name."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Literal

from kgqa.errors import SettingsError

Kind = Literal["method", "chooser", "dataset"]


def plugin_names(kind: Kind) -> list[str]:
    """Names of all that is installed of a kind."""
    return sorted({each.name for each in entry_points(group=f"kgqa.{kind}s")})


def plugin(kind: Kind, name: str, *, ours: list[str]) -> Any:
    """What an installed package brings under a name.

    Args:
        ours: names of what kgqa itself has of that kind, for the message.

    Raises:
        SettingsError: no package brings it, or the one that does fails.
    """
    for each in entry_points(group=f"kgqa.{kind}s", name=name):
        try:
            return each.load()
        except (Exception, SystemExit) as error:  # whatever a foreign package does when it is imported
            raise SettingsError(f"The {kind} {name} cannot be loaded from {each.value}: {error}") from error
    raise SettingsError(f"There is no {kind} {name}. There are: {', '.join([*ours, *plugin_names(kind)])}.")
