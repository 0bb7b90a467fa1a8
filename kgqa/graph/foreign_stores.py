"""Stores of other packages, opened by a location such as `NAME:REST`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, cast

from kgqa.errors import KgqaError, SettingsError, StoreError
from kgqa.graph.store import Capabilities, EditReport, LoadReport, Rows, Store, is_address
from kgqa.graph.tables.labels import is_blank_node
from kgqa.model import Entity, Literal
from kgqa.plugins import SHOW_TRACEBACK, log_exception, plugin, plugin_names
from kgqa.text.words import clean

_LOCATION = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.*)", re.DOTALL)
MEMBERS = tuple(name for name in vars(Store) if not name.startswith("_"))
"""The members that a store must have."""
_RESULTS: dict[str, type | tuple[type, ...]] = {
    "select": Rows, "ask": bool, "edit": EditReport, "load": LoadReport, "capabilities": Capabilities, "location": str,
    "fingerprint_of": str, "version_of": str, "triples_of": (int, type(None)), "may_scan": bool, "responds": bool,
    "settings": Mapping, "notice": (str, type(None)), "edits_since": (list, type(None)), "has_free_slot": bool,
}  # fmt: skip
"""What the members return."""


def is_foreign(location: str | Path) -> bool:
    """Return whether a location has the form `NAME:REST`, where NAME is a store of a package or REST is no folder.

    A folder whose name has this form is written `./NAME:REST`, or given as a `Path`.
    """
    match = _LOCATION.fullmatch(location) if isinstance(location, str) and not is_address(location) else None
    return match is not None and (match[1] in plugin_names("store") or not Path(location).exists())


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
            f"{name} (installed: {known}).",
            "Correct the name, or install the package of the store with pip. Write ./ before the name of a folder.",
        )
    opened = plugin("store", name)
    try:
        store = opened(rest, writable=writable)
        check_store(store, name)
    except KgqaError:
        raise
    except (Exception, SystemExit) as error:  # another package may raise anything
        raise _failure(location, "opening", error) from error
    found = cast(Store, _ForeignStore(store, name))
    for member in ("location", "capabilities", "settings", "has_free_slot"):
        getattr(found, member)  # raises StoreError for a wrong type
    return found


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
            if not callable(getattr(store, member)):
                raise SettingsError(f"{member} of the store {name} is not a method; see kgqa.graph.store.Store.")
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


def _failure(name: str, what: str, error: BaseException) -> StoreError:
    log_exception(error)
    text = f"{type(error).__name__}: {clean(str(error))[:300]}".removesuffix(": ")
    return StoreError(f"The store {clean(name)[:100]} failed at {what}: {text}.", SHOW_TRACEBACK)


class _ForeignStore:
    """A store of another package. Unknown exceptions and results of a wrong type become StoreError."""

    def __init__(self, store: Any, name: str) -> None:
        self._store = store
        self._name = name

    def __getattr__(self, member: str) -> Any:
        found = self._guarded(member, lambda: getattr(self._store, member))
        if not inspect.isfunction(vars(Store).get(member)):
            return self._checked(member, found)

        @wraps(found)
        def call(*args: Any, **options: Any) -> Any:
            return self._checked(member, self._guarded(member, lambda: found(*args, **options)))

        return call

    def __enter__(self) -> _ForeignStore:
        return self

    def __exit__(self, *exception: Any) -> None:
        leave = getattr(self._store, "__exit__", lambda *_: self._store.close())
        self._guarded("the end of the with-statement", lambda: leave(*exception))

    def _guarded(self, member: str, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except KgqaError:
            raise
        except (Exception, SystemExit) as error:  # another package may raise anything
            raise _failure(self._name, member, error) from error

    def _checked(self, member: str, result: Any) -> Any:
        """Return the result of a member, or raise StoreError for a result that breaks the protocol."""
        wrong = ""
        if member in _RESULTS and not isinstance(result, _RESULTS[member]):
            wrong = f"a {type(result).__name__}"
        elif isinstance(result, Rows):
            wrong = _wrong_row(result)
        elif isinstance(result, list) and not all(isinstance(each, EditReport) for each in result):
            wrong = "a list with something else than an EditReport"
        if wrong:
            raise StoreError(
                f"The member {member} of the store {clean(self._name)[:100]} returned {wrong}.",
                "This is a defect of the store; see kgqa.graph.store.Store.",
            )
        return result


def _wrong_row(result: Rows) -> str:
    """Return what is wrong with a query's result; "" if nothing is."""
    width = len(result.variables)
    for row in result.rows:
        if not isinstance(row, tuple) or len(row) != width:
            return f"a row that is not a tuple of {width} values, one for each variable"
        for value in row:
            if value is not None and not isinstance(value, (Entity, Literal)):
                return f"a {type(value).__name__} as a value, which must be an Entity, a Literal or None"
            if isinstance(value, Entity) and is_blank_node(value):
                return (
                    f"the blank node {clean(value.iri)[:60]}; it must replace blank nodes by IRIs when it loads files"
                )
    return ""
