"""The lines that describe a graph itself: types, links, features and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kgqa.graph.rdf.grbench.report import ConversionReport
from kgqa.graph.rdf.grbench.scan import Scan
from kgqa.graph.rdf.grbench.terms import (
    BASE,
    DOMAIN,
    FEATURE,
    LINK,
    OWL,
    RDF,
    RDFS,
    TYPE,
    integer,
    literal,
    local,
    predicate,
)


def schema_lines(scan: Scan, report: ConversionReport, features: Mapping[str, Mapping[str, None]]) -> Iterator[str]:
    """Yield the lines of types, links and features.

    Args:
        features: by feature, the types whose nodes have it.
    """
    yield f"<{BASE}{local(report.graph)}> <{DOMAIN}> {integer(sum(scan.types.values()))} .\n"
    for type_ in scan.types:
        yield f"{predicate(TYPE, type_)} <{RDF}type> <{RDFS}Class> .\n"
        yield f"{predicate(TYPE, type_)} <{RDFS}label> {literal(type_.replace('_', ' '))} .\n"
    for rule in dict.fromkeys(scan.links.rules.values()):
        link = predicate(LINK, rule.name)
        yield f"{link} <{RDF}type> <{RDF}Property> .\n"
        yield f"{link} <{RDFS}label> {literal(rule.label)} .\n"
        yield f"{link} <{RDFS}domain> {predicate(TYPE, rule.source)} .\n"
        if rule.end:
            yield f"{link} <{RDFS}range> {predicate(TYPE, rule.end)} .\n"
        if rule.role == "symmetric":
            yield f"{link} <{OWL}inverseOf> {link} .\n"
        elif rule.role == "inverse":
            yield f"{predicate(LINK, rule.of)} <{OWL}inverseOf> {link} .\n"
    for key, types in features.items():
        feature = predicate(FEATURE, key)
        yield f"{feature} <{RDF}type> <{RDF}Property> .\n"
        yield f"{feature} <{RDFS}label> {literal(key)} .\n"
        for type_ in types:
            yield f"{feature} <{RDFS}domain> {predicate(TYPE, type_)} .\n"
