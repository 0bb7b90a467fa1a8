"""The server's full-text index over the literals of chosen predicates, for `bif:contains`."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def index_names(sql: Callable[..., list], graph_iri: str, predicates: Sequence[str]) -> None:
    """See `Server.index_names`."""
    for predicate in predicates:
        sql("DB.DBA.RDF_OBJ_FT_RULE_ADD(?, ?, ?)", (graph_iri, predicate, "kgqa"))
    sql("DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ()")
    sql("checkpoint")


def forget_names(sql: Callable[..., list], graph_iri: str) -> None:
    """Take back what `index_names` said of a graph: what is loaded into it later is not indexed."""
    for (predicate,) in sql(
        "select ROFR_P from DB.DBA.RDF_OBJ_FT_RULES where ROFR_G = ? and ROFR_REASON = ?", (graph_iri, "kgqa")
    ):
        sql("DB.DBA.RDF_OBJ_FT_RULE_DEL(?, ?, ?)", (graph_iri, predicate, "kgqa"))
