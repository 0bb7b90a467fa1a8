"""What SPARQL servers differ in, as data: endpoints.toml, one table a kind of server. Nothing else knows their names."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any
from typing import Literal as OneOf
from urllib.parse import urlsplit

from kgqa.errors import SettingsError


@dataclass(frozen=True)
class Profile:
    """A kind of server.

    `server` is a regular expression for its Server header, `hosts` hosts known to be of this kind. With `needs_graph`
    every query has to name its graph; `own_graphs` are the server's, not the user's. `timeout_parameter` or
    `timeout_header` tells the server how long a query may take, in `timeout_unit`, at least `least_timeout` seconds.
    A reply with one of `late_headers`, or an error with one of `late_texts`, ran out of time; with one of
    `short_headers`, or exactly as many rows as one of `row_caps`, it was cut. `concurrency` and `rate` (requests a
    second, 0: any) are what the server is asked to bear unless somebody says otherwise.
    """

    name: str
    title: str
    server: str = ""
    hosts: tuple[str, ...] = ()
    needs_graph: bool = False
    own_graphs: tuple[str, ...] = ()
    timeout_parameter: str = ""
    timeout_header: str = ""
    timeout_unit: OneOf["ms", "s-suffix"] = "ms"
    least_timeout: float = 0.0
    late_headers: tuple[str, ...] = ()
    short_headers: tuple[str, ...] = ()
    row_caps: tuple[int, ...] = ()
    late_texts: tuple[str, ...] = ()
    full_text: OneOf["", "bif"] = ""
    update_path: str = ""
    update_login: OneOf["basic", "digest"] = "basic"
    named_blanks: bool = False
    concurrency: int = 4
    rate: float = 0.0

    def time_limit(self, seconds: float) -> str:
        """A time limit as this server reads it."""
        seconds = max(seconds, self.least_timeout)
        return f"{max(1, round(seconds))}s" if self.timeout_unit == "s-suffix" else str(round(seconds * 1000))


@lru_cache(maxsize=1)
def profiles() -> dict[str, Profile]:
    """All profiles by name."""
    tables = tomllib.loads((files("kgqa.graph") / "endpoints.toml").read_text(encoding="utf-8"))
    known = {field.name for field in fields(Profile)}
    found = {}
    for name, table in tables.items():
        assert set(table) <= known, f"endpoints.toml: {name} has unknown keys {set(table) - known}"
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        found[name] = Profile(name, **values)
    return found


def profile_named(name: str) -> Profile:
    """Raises SettingsError where there is none of this name."""
    known = profiles()
    if name not in known:
        raise SettingsError(f"There is no endpoint profile {name!r}: choose auto or one of {', '.join(known)}.")
    return known[name]


def profile_of(url: str, server_header: str = "") -> Profile:
    """The profile that fits an address, or what its server calls itself; `generic` otherwise."""
    host = (urlsplit(url).hostname or "").lower()
    for profile in profiles().values():
        if host in profile.hosts:
            return profile
    for profile in profiles().values():
        if profile.server and re.search(profile.server, server_header, re.IGNORECASE):
            return profile
    return profiles()["generic"]
