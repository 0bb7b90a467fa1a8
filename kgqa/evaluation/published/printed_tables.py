"""The tables of publications: the runs that fill them, and the printed figures.

thesis_tables.toml: Tournament on Path (Xiang & Wu 2026, tables 5.2 to 5.5); tog3_tables.toml: Think-on-Graph 3.0
(tables tog3.1 to tog3.8); graphsearch_tables.toml: GraphSearch (tables graphsearch.1 to 4, figures 2, 4 to 8);
counselor_tables.toml: Graph Counselor (tables counselor.1 to 5); evograph_tables.toml: EvoGraph-R1 (table 2 of its
supplement, and the figures of table 3 that the supplement quotes).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from typing import Literal as OneOf

import msgspec
from msgspec.structs import replace

from kgqa.errors import SettingsError
from kgqa.storage.loading import convert, load

FILES = (
    "thesis_tables.toml",
    "tog3_tables.toml",
    "graphsearch_tables.toml",
    "counselor_tables.toml",
    "evograph_tables.toml",
)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.]+")


@dataclass(frozen=True)
class PrintedMetric:
    """A metric of a table.

    `measured`: names of our values (see `measured_values`); several if the publication leaves open which one it means,
    none if kgqa does not measure it.
    `unit`: `percent`: printed and shown in percent, ours from 0 to 1; `number`: printed and shown as they are.
    """

    name: str
    measured: tuple[str, ...]
    unit: OneOf["percent", "number"] = "percent"


EM = PrintedMetric("EM", ("tog_em", "hit@1", "em"))
"""The metric of the thesis, which does not define its exact match (EM)."""


@dataclass(frozen=True)
class TableRow:
    """A row of a table.

    `method`: empty for a system that kgqa does not contain; `printed`: the published figures: for each column, one per
    metric; nan if there is none; empty if the publication prints none. `settings`: settings of the method. `against`: a
    second method, with whose responses a judge compares those of the first. `corpus`: the kind of corpus that the row
    needs beside that of the column, such as `hyper`, a corpus of hyperedges. `uncertain`: the columns whose figures
    cannot be read with certainty in the publication.
    """

    model: str
    label: str
    method: str = ""
    printed: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    against: str = ""
    corpus: str = ""
    uncertain: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Name of the folder that contains the runs of this row."""
        return f"{_plain(self.model)}-{_plain(self.label)}"


@dataclass(frozen=True)
class PrintedTable:
    """A table or figure of a publication.

    `columns`: names of the data sets; `sources`: where the questions of a column are, if not in the data set of
    this name; `sample`: number of questions per data set; `samples`: the same for single columns. `corpora`:
    whether each column needs a text corpus or a graph of its own. `runs`: the folder of the runs, if several tables
    share them. `judge`: the language model that judges responses. `embeddings`: the embedding model, if it is
    published. `stages`: the language models of single stages, for methods that have these. `settings`: settings of
    all rows. `elo`: the metric whose win rates are shown as Elo win probabilities, too. `notes`: what the reader of
    the table must know.
    """

    name: str
    title: str
    sample: int
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    metrics: tuple[PrintedMetric, ...] = (EM,)
    sources: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, int] = field(default_factory=dict)
    corpora: bool = False
    runs: str = ""
    judge: str = ""
    embeddings: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    elo: str = ""
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The language models of the rows that kgqa can run, and of the judge."""
        asked = [row.model for row in self.rows if row.method and row.model]
        return tuple(dict.fromkeys([*asked, *self.stages.values(), *([self.judge] if self.judge else [])]))

    def printed(self, row: TableRow, column: str, metric: PrintedMetric) -> float | None:
        """Return a published figure; None if none is printed."""
        place = self.columns.index(column) * len(self.metrics) + self.metrics.index(metric)
        return row.printed[place] if row.printed and not math.isnan(row.printed[place]) else None


class ModelPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A language model of the tables; `llm`: name or address as for --llm, empty if not available.

    `repository`: where its weights are; `serve`: the command that serves it; `extra_body`: fields of each request, such
    as the one that switches thinking off.
    """

    title: str = ""
    llm: str = ""
    repository: str = ""
    serve: str = ""
    extra_body: dict[str, Any] = {}


@cache
def tables() -> Mapping[str, PrintedTable]:
    """Read all tables, by number such as 5.2 or tog3.1."""
    folder = files("kgqa.evaluation.published")
    data = {name: table for file in FILES for name, table in tomllib.loads((folder / file).read_text("utf-8")).items()}
    return {name: convert({**table, "name": name}, PrintedTable) for name, table in data.items()}


def read_models(file: Path) -> dict[str, ModelPlace]:
    """Read the file with the addresses of the language models, such as models.toml.

    Raises:
        SettingsError: the file cannot be read, or contains a model that is in no table.
    """
    hint = "Write a table [MODEL] with title and llm; for an example see models.toml in the repository of kgqa."
    places = load(file, dict[str, ModelPlace], error=SettingsError, hint=hint)
    known = {name for table in tables().values() for name in table.models}
    if unknown := places.keys() - known:
        raise SettingsError(
            f"{file}: {min(unknown)!r} is not a model of the tables.", f"Choose from: {', '.join(sorted(known))}"
        )
    return {name: replace(place, title=place.title or name) for name, place in places.items()}


def _plain(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")
