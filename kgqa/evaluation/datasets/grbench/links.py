"""The links of GRBench's graphs: which are written, which are inverses of others, and where they lead."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal as OneOf

import msgspec

_BETWEEN_TYPES = re.compile(r"([^-]+)-(.+)-([^-]+)")
"""A link that names the types at both ends, such as Gene-participates-Biological Process."""
Role = OneOf["written", "inverse", "symmetric"]


class LinkTables(msgspec.Struct, frozen=True):
    """The tables of links.toml, whose comments explain the fields; a link has the same rule in each graph.

    `main`: features that may be the name of a node, the best first. `numbers`: features that are numbers.
    """

    main: tuple[str, ...]
    numbers: frozenset[str]
    pairs: tuple[tuple[str, str], ...]
    symmetric: frozenset[str]
    prefixes: dict[str, str]
    ends: dict[str, str]


@dataclass(frozen=True)
class LinkRule:
    """What becomes of a link in RDF.

    `name`: TYPE.LINK, or the link's name if it names the types at both ends. `label`: the link's name. `source`, `end`:
    types of the nodes that list it and that are listed; `end` is empty if it is not known. `role`: `written`: an edge
    from the node that lists it; `inverse`: compared with the edges of the link `of`; `symmetric`: written from both
    ends. `paired`: whether a written link may have an inverse. `prefix`: what the ids lack. `known`: whether the link
    is in the tables.
    """

    name: str
    label: str
    source: str
    end: str
    role: Role
    of: str = ""
    paired: bool = False
    prefix: str = ""
    known: bool = True

    @property
    def written(self) -> str:
        """The name of the link that is written: the link itself, or the one whose inverse it is."""
        return self.of or self.name

    @property
    def compared(self) -> bool:
        """Whether both of its ends may list an edge."""
        return self.paired or self.role != "written"


@cache
def link_tables() -> LinkTables:
    """Read links.toml."""
    data = tomllib.loads(files(__package__).joinpath("links.toml").read_text("utf-8"))
    return msgspec.convert(data, LinkTables)


@cache
def link_rule(source: str, link: str) -> LinkRule:
    """Return the rule of a link that nodes of the type `source` list."""
    tables, name = link_tables(), f"{source}.{link}"
    of = {second: first for first, second in tables.pairs}
    if name in of:
        return LinkRule(
            name, link, source, tables.ends[name], "inverse", of[name], prefix=tables.prefixes.get(name, "")
        )
    role: Role = "symmetric" if name in tables.symmetric else "written"
    if name in tables.ends:
        return LinkRule(name, link, source, tables.ends[name], role, paired=name in of.values())
    match = _BETWEEN_TYPES.fullmatch(link)
    begin, end = (match[1].replace(" ", "_"), match[3].replace(" ", "_")) if match else ("", "")
    if source not in (begin, end):
        return LinkRule(name, link, source, "", "written", known=False)
    if source != begin:
        return LinkRule(name, link, source, begin, "inverse", link)
    return LinkRule(link, link, source, end, role, paired=begin != end)
