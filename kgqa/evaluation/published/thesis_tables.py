"""The tables of the thesis (Xiang & Wu 2026, tables 5.2 to 5.5): the runs that fill them, and the printed figures.

The thesis does not define its exact match (EM). Therefore each cell shows our figure in three definitions: ToG's
(`tog_em`), Hit@1 and set EM.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from kgqa.errors import SettingsError
from kgqa.model_json import from_json
from kgqa.toml_text import read_toml

MEASURED = ("tog_em", "hit@1", "em")
SOUND = "tog_em_sound"
"""`tog_em` without answers that match only because they are empty or a piece of a word; shown if it is lower."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.]+")


@dataclass(frozen=True)
class TableRow:
    """A row: model, label, method, published figures in percent (one per column), and settings of the method."""

    model: str
    label: str
    method: str
    printed: tuple[float, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Name of the folder that contains the runs of this row."""
        return f"{_plain(self.model)}-{_plain(self.label)}"


@dataclass(frozen=True)
class ThesisTable:
    """A table of the thesis; `sample`: number of questions per data set; `columns`: names of the data sets."""

    name: str
    title: str
    sample: int
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class ModelPlace:
    """A language model of the thesis; `llm`: name or address as for --llm, empty if not available."""

    title: str
    llm: str = ""


def tables() -> dict[str, ThesisTable]:
    """Read all tables of the thesis, by number such as 5.2."""
    data = tomllib.loads((files("kgqa.evaluation.published") / "thesis_tables.toml").read_text(encoding="utf-8"))
    return {name: from_json(ThesisTable, {**table, "name": name}) for name, table in data.items()}


def read_models(file: Path) -> dict[str, ModelPlace]:
    """Read the file with the addresses of the language models, such as models.toml.

    Raises:
        SettingsError: the file cannot be read, or contains a model that is in no table.
    """
    try:
        data = read_toml(file)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{file} cannot be read: {error}.", "For an example see models.toml in the repository of kgqa."
        ) from error
    known = {row.model for table in tables().values() for row in table.rows}
    found = {}
    for name, entry in data.items():
        if name not in known:
            raise SettingsError(
                f"{file}: {name!r} is not a model of the tables.", f"Choose from: {', '.join(sorted(known))}"
            )
        if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
            raise SettingsError(f"{file}: title and llm of [{name}] must be strings.")
        if wrong := set(entry) - {"title", "llm"}:
            raise SettingsError(
                f"{file}: [{name}] has unknown keys: {', '.join(sorted(wrong))}.", "Use only title and llm."
            )
        found[name] = ModelPlace(entry.get("title", name), entry.get("llm", ""))
    return found


@dataclass(frozen=True)
class TableCell:
    """A published figure in percent (`printed`) and our metrics from 0 to 1 (`measured`, None if not run).

    `n`: number of questions asked.
    """

    printed: float
    measured: Mapping[str, float] | None
    n: int = 0


def cell_of(printed: float, metrics: Mapping[str, Any]) -> TableCell:
    """Build a cell from the content of metrics.json; if no question was asked, it counts as not run."""
    number = int(metrics.get("n", 0) or 0)
    if not number:
        return TableCell(printed, None)
    values = metrics.get("scores", {})
    known = {name: values[name]["value"] for name in (*MEASURED, SOUND) if name in values}
    measured = {name: float(value) for name, value in known.items() if value is not None}
    return TableCell(printed, measured or None, number)


def as_text(table: ThesisTable, titles: Mapping[str, str], cells: Sequence[Sequence[TableCell]]) -> str:
    """Format a table, with the published figure and ours by each definition of EM in every cell."""
    lines = [f"Table {table.name}: {table.title}. Cells: published | measured {' / '.join(MEASURED)}, in percent"]
    if any(" sound)" in _shown(cell) for line in cells for cell in line):
        lines.append("sound: tog_em without answers that match only because they are empty or a piece of a word")
    header = ["model", "method", *table.columns]
    body = [
        [titles.get(row.model, row.model), row.label, *(_shown(cell) for cell in line)]
        for row, line in zip(table.rows, cells, strict=True)
    ]
    widths = [max(len(line[place]) for line in [header, *body]) for place in range(len(header))]
    rows = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in [header, *body]
    ]
    return "\n".join([*lines, *rows])


def _shown(cell: TableCell) -> str:
    if cell.measured is None:
        return f"{cell.printed:.1f} | not run"
    shown = [f"{100 * cell.measured[name]:.1f}" if name in cell.measured else "-" for name in MEASURED]
    if cell.measured.get(SOUND, 1.0) < cell.measured.get("tog_em", 0.0):
        shown[0] += f" ({100 * cell.measured[SOUND]:.1f} sound)"
    return f"{cell.printed:.1f} | {' / '.join(shown)} (n={cell.n})"


def _plain(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")
