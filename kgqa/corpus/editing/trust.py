"""How far a text is trusted: what a user wrote most, then the corpus, then allowed domains, then the web."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

WEB, DOMAIN, CORPUS, USER = TRUSTS = ("web", "domain", "corpus", "user")
"""The degrees of trust, the lowest first."""


def rank(trust: str) -> int:
    """Return the rank of a trust; an unknown one has the lowest, 0."""
    return TRUSTS.index(trust) if trust in TRUSTS else 0


def lowest(trusts: Iterable[str]) -> str:
    """Return the lowest of some trusts, that of a text which rests on all of them. `web` if there are none."""
    return TRUSTS[min(map(rank, trusts), default=0)]


def highest(trusts: Iterable[str]) -> str:
    """Return the highest of some trusts, that of a text which several say. `web` if there are none."""
    return TRUSTS[max(map(rank, trusts), default=0)]


def trust_of_address(address: str, domains: Iterable[str] = ()) -> str:
    """Return the trust of a page of the web: `domain` if its host is an allowed domain or below one, else `web`.

    Args:
        address: its URL.
        domains: the allowed domains, such as `example.org`.
    """
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").rstrip(".").casefold()
    except ValueError:
        return WEB
    if parts.scheme not in ("http", "https") or not host or "\\" in address:  # browsers end the host at a backslash
        return WEB
    names = (domain.strip().strip(".").casefold() for domain in domains)
    return DOMAIN if any(name and (host == name or host.endswith(f".{name}")) for name in names) else WEB
