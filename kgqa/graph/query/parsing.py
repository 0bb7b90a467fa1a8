"""Parses SPARQL queries with rdflib."""

from __future__ import annotations

import threading
from typing import Any

_one_at_a_time = threading.Lock()
"""pyparsing finds out how to call its functions at their first use; two threads at once break it for good."""


def parse_query(sparql: str) -> Any:
    """Return a query with its algebra. Raises many kinds of errors, including RecursionError, if it is not valid."""
    from rdflib.plugins.sparql import prepareQuery

    with _one_at_a_time:
        return prepareQuery(sparql)
