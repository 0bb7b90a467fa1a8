"""The lines of edges."""

from __future__ import annotations

import json

import numpy as np

from kgqa.graph.rdf.grbench.edge_sides import Hashes, edge_hashes, hashes_of, is_member
from kgqa.graph.rdf.grbench.names import NodeNames
from kgqa.graph.rdf.grbench.nodes import NodePart
from kgqa.graph.rdf.grbench.report import EXAMPLES, ConversionReport, LinkCounts
from kgqa.graph.rdf.grbench.scan import Scan
from kgqa.graph.rdf.grbench.tables import LinkRule
from kgqa.graph.rdf.grbench.terms import LINK, ORDER, literal, predicate

MAX_ORDERED = 10_000
"""The longest list whose order is written."""


class EdgeLines:
    """Collects the edges of nodes and writes those that belong into the graph.

    Args:
        keep_order: whether to write the order of the neighbours of a node.
    """

    def __init__(self, scan: Scan, report: ConversionReport, keep_order: bool) -> None:
        self.waiting = 0
        """Number of edges that were added and not yet written."""
        self._scan = scan
        self._report = report
        self._keep_order = keep_order
        self._names = NodeNames(scan, report.graph)
        self._kept: dict[tuple[str, str], list[tuple[str, list[str], bool]]] = {}
        self._counts: dict[tuple[str, str], LinkCounts] = {}
        self._seen: dict[str, Hashes] = {}

    def add(self, part: NodePart) -> None:
        """Add the edges of a node, or of a part of one."""
        for link, listed in part.links.items():
            rule = self._scan.links.rule(part.type, link)
            counts = self._counts.get((part.type, link)) or self._new_counts(part.type, link, rule)
            if not listed:
                continue
            counts.listed += len(listed)
            ids = listed if len(set(listed)) == len(listed) else list(dict.fromkeys(listed))
            if not (part.first and part.last):
                ids = self._not_seen(link, ids)
            counts.duplicates += len(listed) - len(ids)
            if ids:
                self._kept.setdefault((part.type, link), []).append((part.id, ids, part.first and part.last))
                self.waiting += len(ids)
        if part.last:
            self._seen.clear()

    def _new_counts(self, type_: str, link: str, rule: LinkRule) -> LinkCounts:
        counts = LinkCounts(f"{type_}.{link}", rule.role, rule.of, known=rule.known)
        self._counts[type_, link] = counts
        self._report.links.append(counts)
        if rule.role != "written" or rule.paired:
            only_written, only_inverse = self._scan.one_sided.get(self._scan.links.number(rule), (0, 0))
            counts.only_here = only_written if rule.role != "inverse" else only_inverse
        return counts

    def _not_seen(self, link: str, ids: list[str]) -> list[str]:
        """Return the ids that earlier parts of the same node did not list."""
        hashes = hashes_of(ids)
        before = self._seen.get(link, np.empty(0, dtype=np.uint64))
        new = ~is_member(hashes, before)
        self._seen[link] = np.union1d(before, hashes)
        return [each for each, wanted in zip(ids, new.tolist(), strict=True) if wanted]

    def write(self, lines: list[str]) -> None:
        """Add the lines of all edges that wait."""
        for (type_, link), nodes in self._kept.items():
            self._write_link(type_, self._scan.links.rule(type_, link), self._counts[type_, link], nodes, lines)
        self._kept, self.waiting = {}, 0

    def _write_link(
        self,
        type_: str,
        rule: LinkRule,
        counts: LinkCounts,
        nodes: list[tuple[str, list[str], bool]],
        lines: list[str],
    ) -> None:
        flat = [each for _, ids, _ in nodes for each in ids]
        if rule.prefix:
            lacking = [each for each in flat if not each.startswith(rule.prefix)]
            counts.without_prefix += len(lacking)
            flat = [each if each.startswith(rule.prefix) else rule.prefix + each for each in flat]
        hashes = hashes_of(flat)
        exist = self._scan.exist(hashes)
        dangling = len(flat) - int(exist.sum())
        counts.dangling += dangling
        counts.edges += len(flat) - dangling
        alone = self._alone(rule, nodes, hashes, exist)
        written = rule.role != "inverse"
        if not written and alone is None and not self._keep_order:
            if dangling:
                self._note_dangling(rule, nodes, exist.tolist())
            return
        shown = predicate(LINK, rule.of or rule.name)
        known, start = exist.tolist(), 0
        lone = alone.tolist() if alone is not None else None
        if dangling:
            self._note_dangling(rule, nodes, known)
        for ident, ids, whole in nodes:
            end = start + len(ids)
            here = known[start:end]
            found = flat[start:end] if all(here) else [each for each, is_node in zip(flat[start:end], here) if is_node]
            subject, _ = self._names.subject(type_, ident)
            iris = self._names.objects(rule.end, found)
            if written:
                lines += [f"{subject} {shown} {iri} .\n" for iri in iris if iri]
            if lone is not None and any(lone[start:end]):
                marks = [mark for mark, is_node in zip(lone[start:end], here) if is_node]
                added = [f"{iri} {shown} {subject} .\n" for iri, mark in zip(iris, marks, strict=True) if mark and iri]
                counts.added += len(added)
                lines += added
            if self._keep_order and len(iris) > 1 and not rule.prefix:
                self._add_order(subject, rule, found, iris, whole, lines)
            start = end

    def _alone(
        self, rule: LinkRule, nodes: list[tuple[str, list[str], bool]], hashes: Hashes, exist: np.ndarray
    ) -> np.ndarray | None:
        """Return which edges must be added the other way round; None if there are none."""
        if rule.role == "written" or rule.prefix or not len(self._scan.alone):
            return None
        lengths = [len(ids) for _, ids, _ in nodes]
        subjects = np.repeat(hashes_of([ident for ident, _, _ in nodes]), lengths)
        edges = edge_hashes(hashes, subjects, self._scan.links.number(rule))
        alone = is_member(edges, self._scan.alone) & exist
        return alone if alone.any() else None

    def _note_dangling(self, rule: LinkRule, nodes: list[tuple[str, list[str], bool]], known: list[bool]) -> None:
        examples, place = self._report.dangling_examples, 0
        for ident, ids, _ in nodes:
            for each in ids:
                if len(examples) >= EXAMPLES:
                    return
                if not known[place]:
                    examples.append(f"{ident} {rule.label} {each}")
                place += 1

    def _add_order(
        self, subject: str, rule: LinkRule, found: list[str], iris: list[str], whole: bool, lines: list[str]
    ) -> None:
        if not whole or len(iris) > MAX_ORDERED:
            self._report.unordered_lists += 1
            return
        text = json.dumps([iri[1:-1] for iri in iris if iri], ensure_ascii=False)
        lines.append(f"{subject} {predicate(ORDER, rule.name)} {literal(text)} .\n")
