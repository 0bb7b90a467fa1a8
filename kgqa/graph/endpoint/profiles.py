"""What SPARQL servers differ in, as data: endpoints.toml, one table a kind of server. Nothing else knows their names."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any
from typing import Literal as OneOf
from urllib.parse import urlsplit

from kgqa.errors import SettingsError

IN_ORDER = "# from the first line to the last\n"
"""The first line of a template in queries/ whose text begins at few nodes and goes on from there."""


@dataclass(frozen=True)
class Profile:
    """A kind of server.

    `server` is a regular expression for its Server header, `hosts` hosts known to be of this kind. With `needs_graph`
    every query has to name its graph; `own_graphs` are the server's, not the user's.

    Without `scans` no query over all triples is tried. `timeout_parameter` or `timeout_header` tells the server how long
    a query may take, in `timeout_unit`, at least `least_timeout` seconds. With `silent_timeout` a query that reaches the limit gives what it has without a sign:
    such a server is told a limit only where its own, which would come first, is known to be no shorter.
    `limits_query` names a template in queries/ that asks for its own limits; `refused_limit` is a regular expression
    for what it says to a limit that is longer than its own, with `seconds` in it.

    A reply with one of `late_headers`, or an error with one of `late_texts`, ran out of time; with one of
    `short_headers`, or exactly as many rows as one of `row_caps`, it was cut. An error with one of `denied_texts` is
    about what the user may do, one with one of `retry_texts` passes: the same query is sent again. `in_order` before a query has the server join in the order it is written in, for queries
    that begin with the comment IN_ORDER. `concurrency` and `rate` (requests a second, 0: any) are what the server is asked to
    bear unless somebody says otherwise.
    """

    name: str
    title: str
    server: str = ""
    hosts: tuple[str, ...] = ()
    needs_graph: bool = False
    scans: bool = True
    own_graphs: tuple[str, ...] = ()
    timeout_parameter: str = ""
    timeout_header: str = ""
    timeout_unit: OneOf["ms", "s-suffix"] = "ms"
    least_timeout: float = 0.0
    silent_timeout: bool = False
    limits_query: str = ""
    refused_limit: str = ""
    late_headers: tuple[str, ...] = ()
    short_headers: tuple[str, ...] = ()
    row_caps: tuple[int, ...] = ()
    late_texts: tuple[str, ...] = ()
    denied_texts: tuple[str, ...] = ()
    retry_texts: tuple[str, ...] = ()
    full_text: OneOf["", "bif"] = ""
    in_order: str = ""
    update_path: str = ""
    concurrency: int = 4
    rate: float = 0.0

    def worded(self, query: str) -> str:
        """A query as this server is sent it."""
        return f"{self.in_order}\n{query}" if self.in_order and query.startswith(IN_ORDER) else query

    def time_limit(self, seconds: float) -> str:
        """A time limit as this server reads it, rounded up: it must not give up before us."""
        seconds = max(seconds, self.least_timeout)
        return f"{max(1, math.ceil(seconds))}s" if self.timeout_unit == "s-suffix" else str(math.ceil(seconds * 1000))


@dataclass(frozen=True)
class Signs:
    """What tells an answer that is not whole, on any server: one behind a proxy does not say its name."""

    late_headers: frozenset[str]
    short_headers: frozenset[str]
    late_texts: tuple[str, ...]
    denied_texts: tuple[str, ...]
    retry_texts: tuple[str, ...]


@lru_cache(maxsize=16)
def signs(profile: Profile) -> Signs:
    """The signs of this profile and of all others."""
    known = (profile, *profiles().values())
    return Signs(
        frozenset(header for profile in known for header in profile.late_headers),
        frozenset(header for profile in known for header in profile.short_headers),
        tuple(dict.fromkeys(text.lower() for profile in known for text in profile.late_texts)),
        tuple(dict.fromkeys(text.lower() for profile in known for text in profile.denied_texts)),
        tuple(dict.fromkeys(text.lower() for profile in known for text in profile.retry_texts)),
    )


@lru_cache(maxsize=1)
def profiles() -> dict[str, Profile]:
    """All profiles by name."""
    tables = tomllib.loads((files("kgqa.graph.endpoint") / "endpoints.toml").read_text(encoding="utf-8"))
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
