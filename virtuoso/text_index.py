"""The server's full-text index over the literals of chosen predicates, for `bif:contains`."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def index_names(sql: Callable[..., list], graph_iri: str, predicates: Sequence[str]) -> None:
    """See `Server.index_names`."""
    for predicate in predicates:
        sql("DB.DBA.RDF_OBJ_FT_RULE_ADD(?, ?, ?)", (graph_iri, predicate, "kgqa"))
    sql("DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ()")
    sql("checkpoint")
