"""Reads topic entities from gold queries, for data sets without separate topic entities."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kgqa.evaluation.datasets.fields import distinct
from kgqa.graph.query.tokens import tokens

FREEBASE = "http://rdf.freebase.com/ns/"
WIKIDATA = "http://www.wikidata.org/entity/"
MAX_QUERY_CHARS = 200_000
# the objects of these relations are types, not topic entities
_FREEBASE_KINDS = (FREEBASE + "common.topic.notable_types", FREEBASE + "type.object.type")
_MID = re.compile(r"[mg]\.[0-9a-z_]+\Z")
_QID = re.compile(r"Q[1-9]\d*\Z")


def freebase_topics(sparql: str) -> tuple[str, ...]:
    """Return the short ids of the entities in a Freebase query, in order and without types.

    The prefix `ns:` need not be declared.
    """
    found: list[str] = []
    before = ""
    for iri in _iris(sparql, {"ns": FREEBASE}):
        ident = iri.removeprefix(FREEBASE)
        if ident != iri and _MID.match(ident) and before not in _FREEBASE_KINDS:
            found.append(ident)
        before = iri
    return distinct(found)


def wikidata_topics(sparql: str) -> tuple[str, ...]:
    """Return the IRIs of the entities (Q...) in a Wikidata query, in order; the prefix `wd:` need not be declared."""
    iris = _iris(sparql, {"wd": WIKIDATA})
    return distinct([iri for iri in iris if iri.startswith(WIKIDATA) and _QID.match(iri.removeprefix(WIKIDATA))])


def _iris(sparql: str, prefixes: dict[str, str]) -> Iterator[str]:
    """Yield for each token of a query its IRI, or '' if it has none; yield nothing if the query is too long."""
    if len(sparql) > MAX_QUERY_CHARS:
        return
    declared = ""
    for token in tokens(sparql):
        if token.kind in ("space", "comment"):
            continue
        if token.kind == "iri":
            if declared:
                prefixes[declared[:-1]] = token.text[1:-1]
            yield token.text[1:-1]
        elif token.kind == "name":
            prefix, _, local = token.text.partition(":")
            if not local:
                declared = token.text
                continue
            yield prefixes[prefix] + local if prefix in prefixes else ""
        else:
            yield ""
        declared = ""
