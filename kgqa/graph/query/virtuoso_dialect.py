"""Translates Virtuoso's dialect, used by published Freebase queries, into standard SPARQL 1.1.

Only queries that the embedded engine has refused are translated. Queries that the engine accepts never change.
"""

from __future__ import annotations

import re
from itertools import pairwise

from kgqa.graph.query.tokens import expand_prefixes, tokens
from kgqa.schema import STANDARD_PREFIXES

_XSD = STANDARD_PREFIXES["xsd"]
_INFIX = {"OR": "||", "AND": "&&"}
_DATE_ONLY = re.compile(r"""(["'])\d{4}(-\d\d(-\d\d)?)?\1""")


def to_standard_sparql(sparql: str) -> str:
    """Translate a query; a query without Virtuoso's extensions is returned unchanged.

    - Undeclared standard prefixes (rdf, rdfs, owl, skos, xsd) are resolved.
    - Infix OR and AND become || and &&.
    - Virtuoso's cast `xsd:datetime(x)`, which also accepts 1999 and 1999-05, becomes STR(x). Dates without a time
      become plain strings, because ISO 8601 dates sort as text.
    """
    items = list(tokens(expand_prefixes(sparql, STANDARD_PREFIXES)))
    solid = [index for index, token in enumerate(items) if token.kind not in ("space", "comment")]
    texts = [token.text for token in items]
    following = dict(pairwise(solid))
    casts = [i for i in solid if items[i].text == f"<{_XSD}datetime>" and texts[following.get(i, i)] == "("]
    for index in casts:
        texts[index] = "STR"
    for index in solid:
        token = items[index]
        if token.kind == "word" and token.text.upper() in _INFIX:
            texts[index] = _INFIX[token.text.upper()]
        if casts and token.kind == "string" and _DATE_ONLY.fullmatch(token.text):
            marker = following.get(index, index)
            datatype = following.get(marker, marker)
            if items[marker].text == "^^" and items[datatype].text == f"<{_XSD}dateTime>":
                texts[marker] = texts[datatype] = ""
    return "".join(texts)
