"""Functions for all benchmarks: location of the data, percentiles, tables and JSON output."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent


def data_file(*parts: str) -> Path:
    """Return a file in $KGQA_DATA or ../shared/data; exit if it does not exist."""
    root = Path(os.environ.get("KGQA_DATA") or CHECKOUT.parent / "shared" / "data")
    path = root.joinpath(*parts)
    if not path.is_file():
        sys.exit(
            f"{path} does not exist. Set KGQA_DATA to the folder with the benchmark data, which contains {parts[0]}/."
        )
    return path


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value v so that at least `share` (0 to 1) of the values are at most v; nan without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def machine() -> dict[str, Any]:
    """Describe this machine's processors, memory and operating system."""
    import pyoxigraph

    return {
        "python": platform.python_version(),
        "pyoxigraph": pyoxigraph.__version__,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def print_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print an aligned table: text on the left, numbers on the right with 2 decimals."""

    def text(cell: Any) -> str:
        if isinstance(cell, float):
            return "-" if math.isnan(cell) else f"{cell:.2f}"
        return "-" if cell is None else str(cell)

    cells = [list(head), *([text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    left = [all(isinstance(row[column], str) for row in rows) for column in range(len(head))]
    for line in cells:
        print("  ".join(c.ljust(w) if text else c.rjust(w) for c, w, text in zip(line, widths, left)).rstrip())


def print_json(data: Any) -> None:
    """Print JSON, with null for NaN."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [clean(item) for item in value]
        if isinstance(value, float):
            return None if math.isnan(value) else round(value, 4)
        return value

    print(json.dumps(clean(data), indent=1))
