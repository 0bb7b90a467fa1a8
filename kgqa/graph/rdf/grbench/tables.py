"""The links of GRBench's graphs: which are written, which are inverses of others, and where they lead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal as OneOf

_BETWEEN_TYPES = re.compile(r"([^-]+)-(.+)-([^-]+)")
"""A link that names the types at both ends, such as Gene-participates-Biological Process."""


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
    role: OneOf["written", "inverse", "symmetric"]
    of: str = ""
    paired: bool = False
    prefix: str = ""
    known: bool = True


@dataclass(frozen=True)
class LinkTables:
    """The tables of all graphs; a link has the same rule in each.

    `main`: features that may be the name of a node, the best first. `numbers`: features that are numbers.
    """

    main: tuple[str, ...]
    numbers: frozenset[str]
    ends: Mapping[str, str]
    inverse_of: Mapping[str, str]
    symmetric: frozenset[str]
    prefixes: Mapping[str, str]

    def rule(self, source: str, link: str) -> LinkRule:
        """Return the rule of a link that nodes of the type `source` list."""
        name = f"{source}.{link}"
        if name in self.inverse_of:
            of, prefix = self.inverse_of[name], self.prefixes.get(name, "")
            return LinkRule(name, link, source, self.ends[name], "inverse", of, prefix=prefix)
        role: OneOf["written", "symmetric"] = "symmetric" if name in self.symmetric else "written"
        if name in self.ends:
            return LinkRule(name, link, source, self.ends[name], role, paired=name in self.inverse_of.values())
        match = _BETWEEN_TYPES.fullmatch(link)
        begin, end = (match[1].replace(" ", "_"), match[3].replace(" ", "_")) if match else ("", "")
        if source in (begin, end):
            if source != begin:
                return LinkRule(name, link, source, begin, "inverse", link)
            return LinkRule(link, link, source, end, role, paired=begin != end)
        return LinkRule(name, link, source, "", "written", known=False)


@cache
def link_tables() -> LinkTables:
    """Read tables.toml."""
    data = tomllib.loads((files("kgqa.graph.rdf.grbench") / "tables.toml").read_text("utf-8"))
    graphs = data["graphs"].values()
    return LinkTables(
        main=tuple(data["main"]),
        numbers=frozenset(data["numbers"]),
        ends={name: end for graph in graphs for name, end in graph.get("ends", {}).items()},
        inverse_of={second: first for graph in graphs for first, second in graph.get("pairs", ())},
        symmetric=frozenset(name for graph in graphs for name in graph.get("symmetric", ())),
        prefixes={name: text for graph in graphs for name, text in graph.get("prefixes", {}).items()},
    )
