"""The lines of a converted graph: nodes with their label and features, edges, and the graph's schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from kgqa.evaluation.datasets.grbench.edges import edge_hashes, hashes_of, is_member, link_hash
from kgqa.evaluation.datasets.grbench.links import LinkRule, link_tables
from kgqa.evaluation.datasets.grbench.nodes import Node
from kgqa.evaluation.datasets.grbench.scan import Listed, Scan
from kgqa.evaluation.datasets.grbench.terms import (
    BASE,
    DEGREE,
    DOMAIN,
    FEATURE,
    LINK,
    ORDER,
    OWL,
    RDF,
    RDFS,
    TYPE,
    label_text,
    literal,
    local,
    number_literal,
    predicate,
    texts_of,
)

MAX_CHARS = 2_000_000
"""The longest value, in characters; its line is shorter than the longest line that a load accepts."""
MAX_ORDERED = 10_000
"""The longest list whose order is written."""
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
    of features without a value. `shared_ids`: ids that nodes of several types have; their IRIs contain the type.
    `unordered_lists`: lists too long for --keep-order. `cut_values`: values that were cut because no line of RDF may be
    so long. `dangling_examples`, `shared_examples`: some edges to ids of no node, and some shared ids.
    """

    graph: str
    nodes: dict[str, int] = field(default_factory=dict)
    triples: int = 0
    links: list[LinkCounts] = field(default_factory=list)
    empty_features: int = 0
    shared_ids: int = 0
    unordered_lists: int = 0
    cut_values: int = 0
    dangling_examples: list[str] = field(default_factory=list)
    shared_examples: list[str] = field(default_factory=list)
    seconds: float = 0.0


class GraphLines:
    """Writes the lines of a graph, and counts in the report what it writes and leaves out.

    IRIs of nodes are `urn:grbench:GRAPH/ID`, or GRAPH/TYPE/ID for ids that several types have.

    Args:
        keep_order: whether to write the order of neighbours and of the values of a feature.
    """

    def __init__(self, scan: Scan, report: ConversionReport, keep_order: bool) -> None:
        self._scan = scan
        self._report = report
        self._keep_order = keep_order
        self._base = f"{BASE}{report.graph}/"
        self._shared = frozenset(scan.shared.view(np.int64).tolist())
        self._inverted = {rule.written for rule in scan.rules if rule.role != "written"}
        self._features: dict[str, dict[str, None]] = {}
        self._counts: dict[LinkRule, LinkCounts] = {}

    def node(self, node: Node) -> Iterator[str]:
        """Yield the lines of a node: type, label and features."""
        report, tables = self._report, link_tables()
        subject = self._iri(node.type, node.id)
        report.nodes[node.type] = report.nodes.get(node.type, 0) + 1
        if self._is_shared(node.id):
            report.shared_ids += 1
            if len(report.shared_examples) < EXAMPLES:
                report.shared_examples.append(f"{node.type}/{node.id}")
        yield f"{subject} <{RDF}type> {predicate(TYPE, node.type)} .\n"
        mains = (text for key in tables.main if key in node.features for text in texts_of(node.features[key]))
        if main := next(mains, ""):
            yield f"{subject} <{RDFS}label> {literal(label_text(main))} .\n"
        for key, value in node.features.items():
            self._features.setdefault(key, {}).setdefault(node.type)
            texts = list(dict.fromkeys(texts_of(value)))
            report.empty_features += not texts
            if sum(map(len, texts)) > MAX_CHARS:
                report.cut_values += sum(len(text) > MAX_CHARS for text in texts)
                texts = [text[:MAX_CHARS] for text in texts]
            start = f"{subject} {predicate(FEATURE, key)} "
            write = number_literal if key in tables.numbers else literal
            for text in texts:
                yield f"{start}{write(text)} .\n"
            if self._keep_order and len(texts) > 1:
                yield self._order(subject, key, texts)

    def edges(self, listed: Listed) -> Iterator[str]:
        """Yield the lines of the edges of a link, and of those that only its inverse lists."""
        rule, ids = listed.rule, listed.full_ids()
        hashes = hashes_of(ids)
        exist = is_member(hashes, self._scan.ids)
        alone = np.zeros(len(ids), dtype=np.bool_)
        if rule.role != "written" and not rule.prefix:
            nodes = np.repeat(hashes_of(listed.nodes), listed.lengths)
            alone = exist & is_member(edge_hashes(hashes, nodes, rule.written), self._scan.alone)
        counts = self._count(listed, exist.tolist())
        link, start = predicate(LINK, rule.written), 0
        for node, length, size in zip(listed.nodes, listed.lengths, listed.sizes, strict=True):
            part = slice(start, start + length)
            start += length
            subject, known = self._iri(rule.source, node), exist[part]
            if size != np.count_nonzero(known):
                yield f"{subject} {predicate(DEGREE, rule.name)} {number_literal(str(size))} .\n"
            if rule.role == "inverse" and not self._keep_order and not alone[part].any():
                continue
            iris = self._iris(rule.end, list(compress(ids[part], known)))
            if rule.role != "inverse":
                yield from (f"{subject} {link} {iri} .\n" for iri in iris if iri)
            for iri in filter(None, compress(iris, alone[part][known])):
                counts.added += 1
                yield f"{iri} {link} {subject} .\n"
            if self._keep_order and len(iris) > 1 and not rule.prefix:
                if len(iris) > MAX_ORDERED:
                    self._report.unordered_lists += 1
                else:
                    yield self._order(subject, rule.name, [iri[1:-1] for iri in iris if iri])

    def schema(self) -> Iterator[str]:
        """Yield the lines that describe the graph itself: types, links and features."""
        count = number_literal(str(sum(self._scan.types.values())))
        yield f"<{BASE}{local(self._report.graph)}> <{DOMAIN}> {count} .\n"
        for type_ in self._scan.types:
            yield f"{predicate(TYPE, type_)} <{RDF}type> <{RDFS}Class> .\n"
            yield f"{predicate(TYPE, type_)} <{RDFS}label> {literal(type_.replace('_', ' '))} .\n"
        for rule in self._scan.rules:
            link = predicate(LINK, rule.name)
            yield f"{link} <{RDF}type> <{RDF}Property> .\n"
            yield f"{link} <{RDFS}label> {literal(rule.label)} .\n"
            yield f"{link} <{RDFS}domain> {predicate(TYPE, rule.source)} .\n"
            if rule.end:
                yield f"{link} <{RDFS}range> {predicate(TYPE, rule.end)} .\n"
            if rule.role != "written":
                yield f"{predicate(LINK, rule.written)} <{OWL}inverseOf> {link} .\n"
        for key, types in self._features.items():
            feature = predicate(FEATURE, key)
            yield f"{feature} <{RDF}type> <{RDF}Property> .\n"
            yield f"{feature} <{RDFS}label> {literal(key)} .\n"
            for type_ in types:
                yield f"{feature} <{RDFS}domain> {predicate(TYPE, type_)} .\n"

    def _is_shared(self, ident: str) -> bool:
        return bool(self._shared) and hash(ident) in self._shared

    def _iri(self, type_: str, ident: str) -> str:
        return f"<{self._base}{local(type_) + '/' if self._is_shared(ident) else ''}{local(ident)}>"

    def _iris(self, type_: str, ids: list[str]) -> list[str]:
        """Return the IRIs of nodes of a type; ids that several types have get none if no type is given."""
        return [self._iri(type_, each) if type_ or not self._is_shared(each) else "" for each in ids]

    def _count(self, listed: Listed, exist: list[bool]) -> LinkCounts:
        rule = listed.rule
        if (counts := self._counts.get(rule)) is None:
            counts = LinkCounts(f"{rule.source}.{rule.label}", rule.role, rule.of, known=rule.known)
            if rule.written in self._inverted:
                counts.only_here = self._scan.one_sided[link_hash(rule.written), rule.role == "inverse"]
            self._counts[rule] = counts
            self._report.links.append(counts)
        counts.listed += len(listed.ids) + listed.repeated
        counts.duplicates += listed.repeated
        counts.edges += sum(exist)
        counts.dangling += len(exist) - sum(exist)
        counts.without_prefix += sum(not each.startswith(rule.prefix) for each in listed.ids) if rule.prefix else 0
        examples = self._report.dangling_examples
        if not all(exist) and len(examples) < EXAMPLES:
            nodes = (node for node, length in zip(listed.nodes, listed.lengths, strict=True) for _ in range(length))
            dangling = [pair for pair, known in zip(zip(nodes, listed.ids), exist, strict=True) if not known]
            examples += [f"{node} {rule.label} {each}" for node, each in dangling[: EXAMPLES - len(examples)]]
        return counts

    def _order(self, subject: str, name: str, values: list[str]) -> str:
        return f"{subject} {predicate(ORDER, name)} {literal(json.dumps(values, ensure_ascii=False))} .\n"
