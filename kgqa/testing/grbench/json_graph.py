"""Looks up nodes and neighbours in a graph of GRBench as `json.load` gives it, without any RDF."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

End = tuple[str, str]
"""The type of the nodes that list a link, and the name of the link."""
MAIN = ("title", "name", "full_name", "pacer_case_id", "syllabus", "plain_text", "case_name")


class JsonGraph:
    """A graph by node id.

    Args:
        data: the content of graph.json.
        pairs: links that say the same from both ends, such as (paper, author) and (author, paper).
    """

    def __init__(self, data: Mapping[str, Any], pairs: Sequence[tuple[End, End]]) -> None:
        self.data = data
        self.types: dict[str, str] = {}
        self._nodes: dict[str, Any] = {}
        for section, nodes in data.items():
            for ident, node in nodes.items():
                self.types[ident], self._nodes[ident] = section.removesuffix("_nodes"), node
        self._other_end = {first: second for pair in pairs for first, second in (pair, pair[::-1])}
        self._listed_by: dict[tuple[End, str], list[str]] = defaultdict(list)
        for ident, node in self._nodes.items():
            for link, listed in node["neighbors"].items():
                for each in listed:
                    self._listed_by[(self.types[ident], link), each].append(ident)

    def of_type(self, type_: str) -> list[str]:
        """Return the ids of all nodes of a type."""
        return list(self.data[f"{type_}_nodes"])

    def name(self, ident: str) -> str:
        """Return the main feature of a node; empty if it has none."""
        features = self._nodes[ident]["features"]
        found = next((features[key] for key in MAIN if _is_value(features.get(key))), "")
        return " ".join(str(found).split())[:300].rstrip()

    def values(self, ident: str, key: str) -> list[str]:
        """Return the values of a feature as text."""
        value = self._nodes[ident]["features"].get(key)
        listed = value if isinstance(value, list) else [value]
        return [str(each) for each in listed if _is_value(each)]

    def neighbours(self, ident: str, link: str) -> list[str]:
        """Return the nodes that a node lists, and those that list it at the other end of the link."""
        end = (self.types[ident], link)
        listed = [each for each in self._nodes[ident]["neighbors"].get(link, ()) if each in self._nodes]
        if end in self._other_end:
            listed += self._listed_by[self._other_end[end], ident]
        return list(dict.fromkeys(listed))

    def degree(self, ident: str, link: str) -> int:
        """Return the number of neighbours; the length of the list if some of its ids are of no node, or repeated."""
        listed = self._nodes[ident]["neighbors"].get(link, ())
        is_whole = len(listed) == len({each for each in listed if each in self._nodes})
        return len(self.neighbours(ident, link)) if is_whole else len(listed)


def listed_by(nodes: Mapping[str, Any], link: str) -> dict[str, list[str]]:
    """Return, by id, the nodes that list it under a link."""
    found: dict[str, list[str]] = {}
    for ident, node in nodes.items():
        for each in node["neighbors"][link]:
            found.setdefault(each, []).append(ident)
    return found


def _is_value(value: Any) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and math.isnan(value))
