"""Published Freebase queries were written for Virtuoso, which takes more than SPARQL 1.1. This says the same in the standard.

Used only on a query that the embedded engine has refused, so standard queries are never touched.
"""

from __future__ import annotations

import re

from kgqa.graph.query.tokens import Token, tokens
from kgqa.schema import STANDARD_PREFIXES

_XSD = STANDARD_PREFIXES["xsd"]
_INFIX = {"OR": "||", "AND": "&&"}
_DATE_ONLY = re.compile(r"""(["'])\d{4}(-\d\d(-\d\d)?)?\1""")


def to_standard_sparql(sparql: str) -> str:
    """The query without what only Virtuoso knows; unchanged if there is nothing of it.

    - the prefixes it knows without a declaration (rdf, rdfs, owl, skos, xsd) are resolved;
    - infix OR and AND become || and &&;
    - its cast `xsd:datetime(x)`, which takes years and months too, becomes STR(x), and the dates without a time
      that it is compared with become plain strings: ISO 8601 dates sort as text.
    """
    items = [_resolved(token) for token in tokens(sparql)]
    solid = [index for index, token in enumerate(items) if token.kind not in ("space", "comment")]
    texts = [token.text for token in items]
    following = dict(zip(solid, solid[1:]))
    casts = [i for i in solid if items[i].text == f"<{_XSD}datetime>" and texts[following.get(i, i)] == "("]
    for index in casts:
        texts[index] = "STR"
    for index in solid:
        token = items[index]
        if token.kind == "word" and token.text.upper() in _INFIX:
            texts[index] = _INFIX[token.text.upper()]
        if casts and token.kind == "string" and _DATE_ONLY.fullmatch(token.text):
            marker = following.get(index)
            datatype = following.get(marker) if marker is not None else None
            if datatype is not None and items[marker].text == "^^" and items[datatype].text == f"<{_XSD}dateTime>":
                texts[marker] = texts[datatype] = ""
    return "".join(texts)


def _resolved(token: Token) -> Token:
    prefix, _, local = token.text.partition(":")
    if token.kind != "name" or not local or prefix not in STANDARD_PREFIXES:
        return token
    return Token("iri", f"<{STANDARD_PREFIXES[prefix]}{local}>")
