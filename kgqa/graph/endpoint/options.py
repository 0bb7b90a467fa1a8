"""Options for SPARQL endpoints, read from the settings, and the profiles of the kinds of servers (endpoints.toml)."""

from __future__ import annotations

import math
import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from typing import Literal as OneOf
from urllib.parse import urlsplit

import msgspec

from kgqa.errors import SettingsError
from kgqa.graph.store import is_address
from kgqa.net.servers import check_url, is_loopback
from kgqa.settings.keys import kept_key
from kgqa.settings.values import FILE_NAME, Settings
from kgqa.storage.corpus_file import CorpusFile
from kgqa.text.hints import Hint, Option
from kgqa.text.words import clean

PASSWORD_VARIABLE = "KGQA_ENDPOINT_PASSWORD"


@dataclass(frozen=True)
class Access:
    """Login and limits for the requests to an endpoint.

    Attributes:
        contact: e-mail address or URL of a person to contact, for the User-Agent header.
        concurrency: the largest number of concurrent requests; None for the value of the server's profile.
        rate: the largest number of requests per second; None for the value of the server's profile.
        patience: seconds during which a request is repeated while the server does not answer.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    contact: str = ""
    concurrency: int | None = None
    rate: float | None = None
    patience: float = 10.0


def check_address(url: str) -> str:
    """Check the address of an endpoint, and return it without surrounding spaces.

    Raises:
        SettingsError: see `check_url`.
    """
    url = url.strip()
    check_url(
        url,
        of="SPARQL endpoint",
        key=Hint(
            f"Set endpoint.user and {PASSWORD_VARIABLE} for a login, and name graphs with ", Option("graph-iri"), "."
        ),
    )
    return url


@dataclass(frozen=True)
class EndpointOptions:
    """Options for all SPARQL endpoints that a run uses.

    Attributes:
        caches: whether results are stored on disk.
        row_cap: number of rows at which the server is known to truncate results.
    """

    profile: str = "auto"
    access: Access = field(default_factory=Access)
    caches: bool = True
    row_cap: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> EndpointOptions:
        """Read the options from settings, and the password from the environment.

        Raises:
            SettingsError: a login is set, but only the settings file of the working folder contains the server's
                address. Somebody else may have written that file.
        """
        user, password = settings.endpoint.user or "", os.environ.get(PASSWORD_VARIABLE, "")
        location = settings.graph.path or ""
        if (user or password) and is_address(location) and "graph.path" in settings.local:
            url = check_address(location)
            raise SettingsError(
                f"Your login is not sent to {clean(url)[:200]}, because only {FILE_NAME} in the working folder names "
                "this server.",
                "To log in there, name the server yourself: ",
                Option("graph", "URL"),
                ", or the environment variable KGQA_GRAPH_PATH.",
            )
        return cls(
            profile=settings.endpoint.profile,
            access=Access(
                user=user,
                password=password,
                contact=settings.endpoint.contact or "",
                concurrency=settings.endpoint.concurrency,
                rate=settings.endpoint.rate,
            ),
            caches=settings.endpoint.cache == "on",
            row_cap=settings.endpoint.row_cap,
        )

    def check_login(self, corpus: CorpusFile, *, writing: bool = False) -> None:
        """Check that neither a login nor documents are sent to a server that only a corpus folder names.

        The folder may be another person's.

        Args:
            writing: whether documents will be written to the server.

        Raises:
            SettingsError: there is something to send, and the server is not on this machine, and the user has kept no
                password for it.
        """
        url = corpus.url and check_address(corpus.url)
        if not url or not (writing or self.access.user or self.access.password) or is_loopback(url) or kept_key(url):
            return
        what, do = ("Nothing is written", "write there") if writing else ("Your login is not sent", "log in there")
        raise SettingsError(
            f"{what} to {clean(url)[:200]}, because only the corpus folder {clean(str(corpus.folder))} names this "
            "server.",
            f"To {do}, keep your password for this server: kgqa keys set {url}",
        )

    def access_to(self, url: str) -> Access:
        """Return login and limits for a server; without a password, the login has the one kept for this address.

        Raises:
            SettingsError: see `read_keys`.
        """
        if not self.access.user or self.access.password:
            return self.access
        return replace(self.access, password=kept_key(check_address(url)))


FIXED_ORDER_MARK = "# from the first line to the last\n"
"""First line of a template in queries/ that lists its patterns in the best join order, starting from few nodes."""


@dataclass(frozen=True)
class Profile:
    """A kind of SPARQL server.

    Attributes:
        server: regular expression for the Server header of its replies. hosts: hosts known to be of this kind.
        allows_scans: whether kgqa may send queries that read all triples.
        system_graphs: named graphs that belong to the server; with any, every query must name its graphs.
        timeout_parameter, timeout_header: URL parameter or header in which a query's time limit is sent.
        timeout_unit: unit of the time limit. min_timeout: the shortest time limit that is sent, in seconds.
        limits_query: name of a template in queries/ that asks for the server's own time limit, in seconds; for a server
            that silently sends an incomplete result at the time limit. kgqa sends it a time limit only if its own limit
            is known to be no shorter.
        limit_error: regular expression for the error message that a time limit is too long; its group `seconds` is the
            longest limit that the server allows.
        timeout_headers, timeout_texts: headers and parts of error messages that mean that the server ran out of time.
        truncation_headers, row_caps: headers and numbers of rows that mean that the result was truncated.
        denied_texts: parts of error messages that mean that the user lacks a permission.
        retry_texts: parts of error messages after which the same query may succeed.
        full_text: kind of full-text search, see `Capabilities`.
        fixed_order: text put before queries that begin with FIXED_ORDER_MARK, so that the server joins patterns in the
            order in which they are written.
        update_path: URL path for updates; empty if updates have the same path as queries.
        concurrency: default number of concurrent requests.
        rate: default number of requests per second, 0 for no limit.
    """

    name: str
    title: str
    server: str = ""
    hosts: tuple[str, ...] = ()
    allows_scans: bool = True
    system_graphs: tuple[str, ...] = ()
    timeout_parameter: str = ""
    timeout_header: str = ""
    timeout_unit: OneOf["ms", "s-suffix"] = "ms"
    min_timeout: float = 0.0
    limits_query: str = ""
    limit_error: str = ""
    timeout_headers: tuple[str, ...] = ()
    truncation_headers: tuple[str, ...] = ()
    row_caps: tuple[int, ...] = ()
    timeout_texts: tuple[str, ...] = ()
    denied_texts: tuple[str, ...] = ()
    retry_texts: tuple[str, ...] = ()
    full_text: OneOf["", "virtuoso"] = ""
    fixed_order: str = ""
    update_path: str = ""
    concurrency: int = 4
    rate: float = 0.0

    def time_limit(self, seconds: float, longest: float | None) -> str:
        """Format the time limit of a query for this server, rounded up: the server must not give up before kgqa.

        If a query is sent with a time limit, Virtuoso stops at the limit and sends the rows found so far, with status
        200 and, unless the query aggregates, without any sign that rows are missing (measured: 8 rows of many
        thousand). It stops at its own limit if that is shorter. Therefore a reply that arrives before the limit sent by
        kgqa is certain to be complete only if the server's own limit is known to be at least as long. A query sent
        without a limit ends with an error at the server's own limit.

        Args:
            longest: the server's own limit in seconds; None if it is not known.

        Returns:
            The limit; empty if none may be sent.
        """
        seconds = max(seconds, self.min_timeout)
        if longest is None:
            longest = 0.0 if self.limits_query else math.inf
        if seconds > longest or not (self.timeout_parameter or self.timeout_header):
            return ""
        return f"{max(1, math.ceil(seconds))}s" if self.timeout_unit == "s-suffix" else str(math.ceil(seconds * 1000))


@lru_cache(maxsize=64)
def reply_signs(profile: Profile, kind: str) -> frozenset[str]:
    """Return the headers or texts, in lower case, that mark a reply as an error or as an incomplete result.

    Those of all profiles are returned, because a proxy can hide the kind of server.

    Args:
        kind: the attribute of profiles that lists them, such as `timeout_texts`.
    """
    return frozenset(sign.lower() for each in (profile, *profiles().values()) for sign in getattr(each, kind))


@lru_cache(maxsize=1)
def profiles() -> dict[str, Profile]:
    """Read all profiles of endpoints.toml, by name."""
    tables = tomllib.loads((files("kgqa.graph.endpoint") / "endpoints.toml").read_text(encoding="utf-8"))
    return {name: msgspec.convert({"name": name, **table}, Profile) for name, table in tables.items()}


def profile_named(name: str) -> Profile:
    """Return the profile with this name.

    Raises:
        SettingsError: there is no profile with this name.
    """
    known = profiles()
    if name not in known:
        raise SettingsError(f"Unknown endpoint profile {name!r}.", f"Choose auto or one of {', '.join(known)}.")
    return known[name]


def profile_of(url: str, server_header: str = "") -> Profile:
    """Return the profile for the host of an address, else for a Server header; `generic` if no profile fits."""
    host, known = (urlsplit(url).hostname or "").lower(), profiles().values()
    by_host = (each for each in known if host in each.hosts)
    by_header = (each for each in known if each.server and re.search(each.server, server_header, re.IGNORECASE))
    return next(by_host, None) or next(by_header, profiles()["generic"])
