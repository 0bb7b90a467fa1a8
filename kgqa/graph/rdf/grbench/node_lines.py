"""The lines of nodes: type, label and features."""

from __future__ import annotations

import json

from kgqa.graph.rdf.grbench.names import NodeNames
from kgqa.graph.rdf.grbench.nodes import NodePart
from kgqa.graph.rdf.grbench.report import EXAMPLES, ConversionReport
from kgqa.graph.rdf.grbench.scan import Scan
from kgqa.graph.rdf.grbench.terms import (
    FEATURE,
    ORDER,
    RDF,
    RDFS,
    TYPE,
    label_text,
    literal,
    number_literal,
    predicate,
    texts_of,
)

MAX_CHARS = 2_000_000
"""The longest value, in characters; its line is shorter than the longest line that a load accepts."""


class NodeLines:
    """Writes the lines of nodes.

    Args:
        keep_order: whether to write the order of the values of a feature.
    """

    def __init__(self, scan: Scan, report: ConversionReport, keep_order: bool) -> None:
        self.features: dict[str, dict[str, None]] = {}
        """The types whose nodes have a feature."""
        self._report = report
        self._keep_order = keep_order
        self._tables = scan.links.tables
        self._names = NodeNames(scan, report.graph)
        self._types: dict[str, str] = {}
        self._predicates: dict[str, str] = {}
        self._mains: dict[str, str] = {}

    def add(self, part: NodePart, lines: list[str]) -> None:
        """Add the lines of a node, or of a part of one."""
        if not part.first and not part.features:
            return
        subject, shared = self._names.subject(part.type, part.id)
        if part.first:
            self._report.nodes[part.type] = self._report.nodes.get(part.type, 0) + 1
            if shared:
                self._report.shared_ids += 1
                if len(self._report.shared_examples) < EXAMPLES:
                    self._report.shared_examples.append(f"{part.type}/{part.id}")
            if part.type not in self._types:
                self._types[part.type] = f" <{RDF}type> {predicate(TYPE, part.type)} .\n"
            lines.append(subject + self._types[part.type])
        self._add_label(subject, part, lines)
        for key, value in part.features.items():
            texts = [value] if isinstance(value, str) and value else list(dict.fromkeys(texts_of(value)))
            self.features.setdefault(key, {}).setdefault(part.type)
            if not texts:
                self._report.empty_features += 1
                continue
            if sum(map(len, texts)) > MAX_CHARS:
                self._report.cut_values += sum(len(text) > MAX_CHARS for text in texts)
                texts = [text[:MAX_CHARS] for text in texts]
            start = f"{subject} {self._predicates.get(key) or self._predicate(key)} "
            if key in self._tables.numbers:
                lines += [f"{start}{number_literal(text)} .\n" for text in texts]
            else:
                lines += [f"{start}{literal(text)} .\n" for text in texts]
            if self._keep_order and len(texts) > 1:
                order = literal(json.dumps(texts, ensure_ascii=False))
                lines.append(f"{subject} {predicate(ORDER, key)} {order} .\n")

    def _predicate(self, key: str) -> str:
        return self._predicates.setdefault(key, predicate(FEATURE, key))

    def _add_label(self, subject: str, part: NodePart, lines: list[str]) -> None:
        for key in self._tables.main:
            if key in part.features and (text := next(texts_of(part.features[key]), "")):
                lines.append(f"{subject} <{RDFS}label> {literal(label_text(text))} .\n")
                return
