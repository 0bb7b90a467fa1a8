"""Reads the untrusted files graph.json and loading.json, and checks their sizes, types and ranges."""

from __future__ import annotations

import os
import re
import reprlib
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgqa.schema import usable_prefixes
from kgqa.storage.untrusted_json import Check, is_flag, load_json

FORMAT = 2
"""The version of the folder format. Folders of format 1 are read, too; they have one hash for all graphs together."""
MAX_BYTES = 16 << 20
"""Maximum size of a record, enough for the names and hashes of about 100,000 files."""
MAX_GENERATION = 10**9
MAX_COUNT = 1 << 53
_GENERATION = re.compile(r"gen-(0|[1-9][0-9]{0,9})")
_HEX_16 = re.compile(r"[0-9a-f]{16}")
_HEX_32 = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLAIN_NAME = re.compile(r"[\w-][\w.-]{0,199}")


def is_generation_name(name: str) -> bool:
    """Return whether a file name is the name of a generation, such as `gen-3`."""
    return _GENERATION.fullmatch(name) is not None


def read_graph_record(file: Path) -> dict[str, Any]:
    """Read and check graph.json. If its `format` is unknown, only the format is returned.

    Raises:
        ValueError: the file is damaged; the message says which value is wrong.
        OSError: the file cannot be read.
    """
    record = _read_object(file)
    written = record.get("format")
    if type(written) is int and written not in _GRAPH:
        return {"format": written}
    prefixes = usable_prefixes(record.pop("prefixes", {}))
    _checked(record, _GRAPH[1 if written == 1 else FORMAT], "")
    for graph, graph_hash in record.get("graphs", {}).items():
        _checked(graph_hash, _GRAPH_HASH, f"graphs[{reprlib.repr(graph)}].")
    return {**record, "prefixes": prefixes}


def read_journal_record(file: Path) -> dict[str, Any]:
    """Read and check loading.json. Raises the same errors as `read_graph_record`."""
    record = _checked(_read_object(file), _JOURNAL, "")
    for number, job in enumerate(record["files"]):
        prefixes = usable_prefixes(job.pop("prefixes", {})) if isinstance(job, dict) else {}
        _checked(job, _JOB, f"files[{number}].")
        job["prefixes"] = prefixes
    return record


def _read_object(file: Path) -> dict[str, Any]:
    # O_NONBLOCK: opening a pipe of this name would wait for a writer
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not an ordinary file")
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    record = load_json(data)
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")
    return record


def _checked(record: Any, checks: Mapping[str, tuple[Check, str]], where: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ValueError(f"{where.rstrip('.')} must be an object, not {reprlib.repr(record)}")
    for key in record.keys() - checks.keys():
        raise ValueError(f"{where}{reprlib.repr(key)} is unknown")
    for key, (check, expected) in checks.items():
        if key not in record:
            raise ValueError(f"{where}{key} is missing")
        if not check(record[key]):
            raise ValueError(f"{where}{key} must be {expected}, not {reprlib.repr(record[key])}")
    return record


def _whole(maximum: int) -> tuple[Check, str]:
    return lambda value: type(value) is int and 0 <= value <= maximum, f"a whole number from 0 to {maximum:,}"


def _text(pattern: re.Pattern[str], expected: str) -> tuple[Check, str]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None, expected


def _is_settings(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, (str, int, float, type(None))) for each in value.values())


def _is_schema(value: Any) -> bool:
    return value == "" or (isinstance(value, str) and _PLAIN_NAME.fullmatch(value) is not None)


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 4096 and "\0" not in value


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and each.keys() == {"path", "sha256"} and all(isinstance(v, str) for v in each.values())
        for each in value
    )


_FLAG: tuple[Check, str] = (is_flag, "true or false")
_SCHEMA: tuple[Check, str] = (_is_schema, "the name of a schema, or of a file in this folder")
_SETTINGS: tuple[Check, str] = (_is_settings, "an object of texts and numbers")
_COMMON: dict[str, tuple[Check, str]] = {
    "generation": _whole(MAX_GENERATION),
    "fingerprint": _text(_HEX_16, "16 hexadecimal digits"),
    "triples": _whole(MAX_COUNT),
    "schema": _SCHEMA,
    "settings": _SETTINGS,
    "files": (_is_history, "a list of objects with path and sha256"),
    "format": _whole(MAX_COUNT),
}
_GRAPH: dict[int, dict[str, tuple[Check, str]]] = {
    1: {**_COMMON, "stale": _FLAG},
    2: {
        **_COMMON,
        "id": _text(_HEX_32, "32 hexadecimal digits"),
        "graphs": (lambda value: isinstance(value, dict), "an object of named graphs"),
    },
}
_GRAPH_HASH: dict[str, tuple[Check, str]] = {
    "triples": _whole(MAX_COUNT),
    "sum": _text(_HEX_32, "32 hexadecimal digits"),
    "xor": _text(_HEX_16, "16 hexadecimal digits"),
}
_JOURNAL: dict[str, tuple[Check, str]] = {
    "generation": _whole(MAX_GENERATION),
    "base": (lambda value: value is None or _whole(MAX_GENERATION)[0](value), "null or a whole number"),
    "on_error": (lambda value: value in ("fail", "skip"), "fail or skip"),
    "files": (lambda value: isinstance(value, list), "a list"),
    "schema": _SCHEMA,
    "settings": _SETTINGS,
}
_JOB: dict[str, tuple[Check, str]] = {
    "path": (_is_path, "the path of a file"),
    "format": _text(re.compile(r"\.[a-z0-9]{1,10}"), "the ending of a file name"),
    "size": _whole(MAX_COUNT),
    "sha256": _text(_SHA256, "64 hexadecimal digits"),
    "lines_done": _whole(MAX_COUNT),
    "done": _FLAG,
}
