"""Adds the literals of chosen predicates to the full-text index that `bif:contains` searches."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.virtuoso.instance.users import Sql

UPDATE_MINUTES = 1
"""Literals that are added later are indexed at this interval; see SchedulerInterval in virtuoso.ini."""


def index_names(sql: Sql, graph_iri: str, predicates: Sequence[str]) -> None:
    """Add the literals of these predicates to the full-text index; see `Server.index_names`."""
    for predicate in predicates:
        sql("DB.DBA.RDF_OBJ_FT_RULE_ADD(?, ?, ?)", (graph_iri, predicate, "kgqa"))
    sql("DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ()")
    sql("DB.DBA.VT_BATCH_UPDATE('DB.DBA.RDF_OBJ', 'ON', ?)", (UPDATE_MINUTES,))
    sql("checkpoint")


def remove_index_rules(sql: Sql, graph_iri: str) -> None:
    """Remove the rules of `index_names` for a graph, so that literals loaded later are not indexed."""
    for (predicate,) in sql(
        "select ROFR_P from DB.DBA.RDF_OBJ_FT_RULES where ROFR_G = ? and ROFR_REASON = ?", (graph_iri, "kgqa")
    ):
        sql("DB.DBA.RDF_OBJ_FT_RULE_DEL(?, ?, ?)", (graph_iri, predicate, "kgqa"))
