"""Stores of other packages, opened by a location such as `NAME:REST`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from kgqa.errors import SettingsError
from kgqa.graph.store import Store, is_address
from kgqa.plugins import plugin, plugin_names
from kgqa.text.words import clean

_LOCATION = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.*)", re.DOTALL)


def is_foreign(location: str | Path) -> bool:
    """Return whether a location has the form `NAME:REST`, where NAME is a store of a package or REST is no folder.

    A folder whose name has this form is written `./NAME:REST`, or given as a `Path`.
    """
    match = _LOCATION.fullmatch(location) if isinstance(location, str) and not is_address(location) else None
    return match is not None and (match[1] in plugin_names("store") or not Path(location).exists())


def open_foreign_store(location: str, *, writable: bool = False) -> Store:
    """Open a store of another package. Its entry point, in the group `kgqa.stores`, is called with REST and `writable`.

    Raises:
        SettingsError: no package has a store of this name.
        KgqaError: the store cannot be opened.
    """
    match = _LOCATION.fullmatch(location)
    assert match is not None
    name, rest = match.groups()
    if name not in plugin_names("store"):
        known = ", ".join(plugin_names("store")) or "none"
        raise SettingsError(
            f"{clean(location)[:200]} is neither a folder nor an address, and no installed package has a store named "
            f"{name} (installed: {known}).",
            "Correct the name, or install the package of the store with pip. Write ./ before the name of a folder.",
        )
    opened: Callable[..., Store] = plugin("store", name)
    return opened(rest, writable=writable)
