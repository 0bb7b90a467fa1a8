"""What a conversion wrote and what it left out."""

from __future__ import annotations

from dataclasses import dataclass, field

EXAMPLES = 5


@dataclass
class LinkCounts:
    """The edges of a link, as the nodes of one type list them.

    `link`: TYPE.LINK. `role`: `written`, `symmetric`, or `inverse` of the link `of`. `listed`: ids in the lists.
    `duplicates`: ids that a list repeats. `dangling`: ids of no node. `edges`: different edges between nodes.
    `added`: edges that were written because only an inverse or symmetric link has them. `only_here`: edges that the
    inverse link lacks. `without_prefix`: ids that lack a prefix; they are compared with it, and never added.
    `known`: whether kgqa knows the link.
    """

    link: str
    role: str
    of: str = ""
    listed: int = 0
    duplicates: int = 0
    dangling: int = 0
    edges: int = 0
    added: int = 0
    only_here: int = 0
    without_prefix: int = 0
    known: bool = True


@dataclass
class ConversionReport:
    """The result of a conversion.

    `graph`: name of the graph in IRIs. `nodes`: number by type. `links`: counts of each link. `empty_features`: number
    of features without a value. `repeated_nodes`: nodes that the file has more than once; the last one is written.
    `shared_ids`: ids that nodes of several types have; their IRIs contain the type. `unordered_lists`: lists too long
    for --keep-order. `cut_values`: values that were cut because no line of RDF may be so long. `dangling_examples`,
    `shared_examples`: some edges to ids of no node, and some shared ids.
    """

    graph: str
    nodes: dict[str, int] = field(default_factory=dict)
    triples: int = 0
    links: list[LinkCounts] = field(default_factory=list)
    empty_features: int = 0
    repeated_nodes: int = 0
    shared_ids: int = 0
    unordered_lists: int = 0
    cut_values: int = 0
    dangling_examples: list[str] = field(default_factory=list)
    shared_examples: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def total(self, count: str) -> int:
        """Return the sum of a count over all links."""
        counts = {
            "listed": sum(each.listed for each in self.links),
            "duplicates": sum(each.duplicates for each in self.links),
            "dangling": sum(each.dangling for each in self.links),
            "added": sum(each.added for each in self.links),
            "only_here": sum(each.only_here for each in self.links),
        }
        return counts[count]
