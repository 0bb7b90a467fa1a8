"""Stores of other packages, opened by a location such as `NAME:REST`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, cast

from kgqa.errors import KgqaError, SettingsError, StoreError
from kgqa.graph.store import Capabilities, EditReport, LoadReport, Rows, Store, is_address
from kgqa.plugins import plugin, plugin_names
from kgqa.words import clean

_LOCATION = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.*)", re.DOTALL)
MEMBERS = tuple(name for name in vars(Store) if not name.startswith("_"))
"""The members that a store must have."""
_RESULTS: dict[str, type | tuple[type, ...]] = {
    "select": Rows, "ask": bool, "edit": EditReport, "load": LoadReport, "capabilities": Capabilities, "location": str,
    "fingerprint_of": str, "version_of": str, "triples_of": (int, type(None)), "may_scan": bool, "responds": bool,
}  # fmt: skip
"""What the members return, where kgqa depends on it most."""


def is_foreign(location: str | Path) -> bool:
    """Return whether a location has the form `NAME:REST` and is not a folder."""
    text = str(location)
    return bool(_LOCATION.fullmatch(text)) and not is_address(text) and not Path(text).exists()


def open_foreign_store(location: str, *, writable: bool = False) -> Store:
    """Open a store of another package. Its entry point, in the group `kgqa.stores`, is called with REST and `writable`.

    Raises:
        SettingsError: no package has a store of this name, or the store lacks a member of the `Store` protocol.
        KgqaError: the store cannot be opened.
    """
    match = _LOCATION.fullmatch(location)
    assert match is not None
    name, rest = match.groups()
    if name not in plugin_names("store"):
        known = ", ".join(plugin_names("store")) or "none"
        raise SettingsError(
            f"{clean(location)[:200]} is neither a folder nor an address, and no installed package has a store named "
            f"{name} (installed: {known})."
        )
    opened = plugin("store", name)
    try:
        store = opened(rest, writable=writable)
    except KgqaError:
        raise
    except Exception as error:  # another package may raise anything
        raise StoreError(_failure(location, "opening", error)) from error
    check_store(store, name)
    return cast(Store, _ForeignStore(store, name))


def check_store(store: object, name: str) -> None:
    """Check that an object has all members of the `Store` protocol, and that its methods take their arguments.

    Raises:
        SettingsError: the message names what is missing.
    """
    missing = [member for member in MEMBERS if not hasattr(store, member)]
    if missing:
        raise SettingsError(f"The store {name} lacks {', '.join(missing)}; see kgqa.graph.store.Store.")
    for member, expected in vars(Store).items():
        if member in MEMBERS and inspect.isfunction(expected):
            arguments = dict.fromkeys(list(inspect.signature(expected).parameters)[1:])
            try:
                inspect.signature(getattr(store, member)).bind(**arguments)
            except TypeError as error:
                raise SettingsError(
                    f"The method {member} of the store {name} must accept the arguments {', '.join(arguments)} "
                    f"({error}); see kgqa.graph.store.Store."
                ) from error
            except ValueError:
                pass  # not written in Python


def _failure(name: str, what: str, error: object) -> str:
    return f"The store {clean(name)[:100]} failed at {what}: {clean(str(error))[:300] or type(error).__name__}"


class _ForeignStore:
    """A store of another package. Unknown exceptions and results of a wrong type become StoreError."""

    def __init__(self, store: Any, name: str) -> None:
        self._store = store
        self._name = name

    def __getattr__(self, member: str) -> Any:
        found = self._guarded(member, lambda: getattr(self._store, member))
        if not inspect.isfunction(vars(Store).get(member)):
            return found

        @wraps(found)
        def call(*args: Any, **options: Any) -> Any:
            return self._guarded(member, lambda: found(*args, **options), called=True)

        return call

    def _guarded(self, member: str, run: Callable[[], Any], *, called: bool = False) -> Any:
        try:
            result = run()
        except KgqaError:
            raise
        except Exception as error:  # another package may raise anything
            raise StoreError(_failure(self._name, member, error)) from error
        expected = _RESULTS.get(member)
        method = inspect.isfunction(vars(Store).get(member))
        if expected and called == method and not isinstance(result, expected):
            raise StoreError(_failure(self._name, member, f"it returned a {type(result).__name__}"))
        return result
