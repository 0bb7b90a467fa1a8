"""Renders virtuoso.ini, the settings file of the server."""

from __future__ import annotations

import os
from importlib.resources import files
from string import Template

from kgqa.virtuoso.instance.folder import ServerFolder, ServerRecord
from kgqa.virtuoso.instance.memory import memory_plan


def render(folder: ServerFolder, record: ServerRecord) -> str:
    """Return the text of virtuoso.ini."""
    text = files("kgqa.virtuoso_files").joinpath("virtuoso.ini.tmpl").read_text(encoding="utf-8")
    plan = memory_plan(record.memory_share)
    database = folder.database_of(record)
    return Template(text).substitute(
        folder=folder.path,
        import_folder=folder.import_folder,
        database=database,
        lock=database.with_suffix(".lck"),
        transactions=database.with_suffix(".trx"),
        xa=database.with_suffix(".pxa"),
        remap=max(2000, plan.buffers // 4),
        sql_port=record.sql_port,
        http_address=f"{record.bind}:{record.http_port}",
        buffers=plan.buffers,
        dirty=plan.dirty,
        query_memory=plan.query_bytes,
        threads=max(2, min(16, os.cpu_count() or 2)),
        row_cap=record.row_cap,
        query_seconds=record.query_seconds,
    )
