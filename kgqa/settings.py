"""One typed tree of settings: defaults < the graph's own < kgqa.toml < environment < command line.

Each setting knows where its value came from (`kgqa config show`). A kgqa.toml in the working folder may have
been written by somebody else, so it cannot set what decides where things are written: see `trusted`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa.errors import SettingsError
from kgqa.schema import WALK_RULES

FILE_NAME = "kgqa.toml"
LARGEST = 1_000_000_000
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `kind` is its type; None is allowed where the default is None. `trusted`: only from the
    user's own file, the environment or the command line."""

    key: str
    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    trusted: bool = False

    @property
    def variable(self) -> str:
        return "KGQA_" + self.key.upper().replace(".", "_")


SETTINGS: tuple[Setting, ...] = (
    Setting("graph.path", str, None, "graph folder to ask; none: the bundled demo graph"),
    Setting("graph.schema", str, None, "schema name or TOML file; none: what the graph says, or detection"),
    Setting("graph.walks", str, None, "what a walk may return to; none: the graph's own rule", choices=WALK_RULES),
    Setting("graph.frontier_cap", int, 1000, "nodes at the end of a path that exploration looks on from", minimum=1),
    Setting("graph.timeout", float, 60.0, "seconds a single SPARQL query may take", minimum=0.001),
    Setting(
        "ask.method",
        str,
        "top",
        "top: what measured best here; top-1 and top-2: the two published systems, as columns of settings",
        choices=("top", "top-1", "top-2"),
    ),
    Setting("explore.depth", int, 2, "hops from the topic", minimum=1),
    Setting("explore.beam", int, 10, "paths kept a hop", minimum=1),
    Setting(
        "explore.mediator_hop",
        str,
        "edge",
        "whether a mediator and its exit count as one hop",
        choices=("edge", "free"),
    ),
    Setting(
        "explore.shape",
        str,
        "path",
        "path: all ends of a path are walked on from; path+entity: only entities that were selected",
        choices=("path", "path+entity"),
    ),
    Setting(
        "explore.stop",
        str,
        "depth",
        "depth: explore to the full depth; accepted: until a path is accepted as an answer",
        choices=("depth", "accepted"),
    ),
    Setting(
        "explore.lengths",
        str,
        "any",
        "any: paths of all lengths may answer; deepest: only those of the full depth",
        choices=("any", "deepest"),
    ),
    Setting(
        "explore.combine",
        str,
        "intersect",
        "several topics: their paths must meet, or each is explored by itself",
        choices=("intersect", "separate"),
    ),
    Setting(
        "explore.mask", str, "drop", "what a topic's mention becomes", choices=("drop", "placeholder", "id", "none")
    ),
    Setting(
        "rank.wording",
        str,
        "words",
        "how paths are worded for ranking: plain words, or as published, full names with -> and <-",
        choices=("words", "published"),
    ),
    Setting(
        "rank.prefilter",
        str,
        "rrf",
        "what cuts a pool down: BM25, embeddings, both by reciprocal rank, chance, nothing, a trained ranker",
        choices=("bm25", "sbert", "rrf", "random", "none", "trained"),
    ),
    Setting("rank.pool", int, 50, "candidates a tournament gets at most", minimum=1),
    Setting("rank.lexical_weight", float, 0.25, "weight of BM25 in the prefilter; embeddings weigh 1", minimum=0),
    Setting(
        "rank.tournament",
        str,
        "chunked",
        "how candidates are compared",
        choices=("chunked", "pairwise", "knockout", "pointwise", "single"),
    ),
    Setting("rank.chunk", int, 10, "candidates compared at once in a chunked tournament", minimum=2),
    Setting("rank.votes", int, 1, "how often each comparison is made: 1 or 3", choices=(1, 3)),
    Setting(
        "rank.chooser",
        str,
        "offline",
        "who compares: similarity, chance, a trained ranker",
        choices=("offline", "random", "trained"),
    ),
    Setting("rank.ranker", str, None, "file of a trained ranker, from `kgqa rank train`"),
    Setting("rank.seed", int, 0, "seed of what is left to chance", minimum=0),
    Setting("rank.alignment", float, 0.5, "share of word-by-hop alignment where more than one hop is asked", minimum=0),
    Setting("rank.answer_type", float, 0.3, "weight of the expected type of answer", minimum=0),
    Setting("rank.depth_penalty", float, 0.15, "taken off for each hop more than the wording announces", minimum=0),
    Setting("rank.accept", float, 0.1, "score from which a path is accepted as an answer", minimum=-10),
    Setting("rank.embeddings", str, "auto", "auto: embeddings if installed; off: words only", choices=("auto", "off")),
    Setting(
        "rank.model",
        str,
        None,
        "embedding model of sentence-transformers, by name or folder; none: the packaged one",
        trusted=True,
    ),
    Setting("rank.bm25", str, "own", "own: Lucene's idf; okapi: as rank-bm25 has it", choices=("own", "okapi")),
    Setting("rank.model_url", str, None, "OpenAI-compatible service for embeddings", trusted=True),
    Setting("rank.query_prompt", str, None, "text put before an embedded question; none: what the model itself says"),
    Setting("rank.precision", str, "fp32", "of an exported embedding model", choices=("fp32", "int8")),
    Setting("budget.seconds", float, 300.0, "seconds a question may take", minimum=0.001),
    Setting("budget.queries", int, None, "SPARQL queries a question may send", minimum=1),
    Setting("cache.folder", str, None, "where derived things are kept; none: the user's cache folder", trusted=True),
    Setting("cache.limit_gb", float, 10.0, "size the cache is cut back to", minimum=0, trusted=True),
)
PRESETS: dict[str, dict[str, Any]] = {
    "top": {},
    # the two systems of the thesis (table 4.1)
    "top-1": {
        "explore.shape": "path+entity",
        "explore.beam": 3,
        "rank.prefilter": "rrf",
        "rank.lexical_weight": 1.0,
        "rank.tournament": "chunked",
        "explore.stop": "depth",
    },
    "top-2": {
        "explore.shape": "path",
        "explore.beam": 3,
        "rank.prefilter": "sbert",
        "rank.tournament": "pairwise",
        "explore.stop": "accepted",
    },
}
"""What a method sets where nobody else does: between the defaults and the graph's own settings."""
BY_KEY = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True)
class Settings:
    """Resolved values by key, and where each came from."""

    values: Mapping[str, Any]
    origins: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def with_graph(self, graph_settings: Mapping[str, Any]) -> Settings:
        """Put a graph's own settings (`mediator_hop`, `walks`, ...) between the defaults and everything else."""
        values, origins = dict(self.values), dict(self.origins)
        for name, value in graph_settings.items():
            for key in (f"explore.{name}", f"graph.{name}"):
                if key in BY_KEY and origins[key] == "default":
                    values[key], origins[key] = check(BY_KEY[key], value, "the graph"), "graph"
        return Settings(values, origins)


def resolve(
    command_line: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user_file: Path | None = None,
) -> Settings:
    """Merge all sources.

    Args:
        command_line: values by key; None values are not given.
        folder: where a kgqa.toml may lie; None for the working folder.
        user_file: the user's own kgqa.toml; None for the platform's place.

    Raises:
        SettingsError: an unknown key, a wrong type, or a setting that may not stand where it does.
    """
    environment = os.environ if environment is None else environment
    values = {setting.key: setting.default for setting in SETTINGS}
    origins = {setting.key: "default" for setting in SETTINGS}

    def put(key: str, value: Any, origin: str) -> None:
        values[key], origins[key] = check(BY_KEY[key], value, origin), origin

    user = user_file or user_settings_file()
    local = (folder or Path.cwd()) / FILE_NAME
    for file, trusted in ((user, True), (local, False)):
        for key, value in read_file(file).items():
            if BY_KEY[key].trusted and not trusted:
                raise SettingsError(
                    f"{key} may not be set by a {FILE_NAME} in the working folder. Put it into {user}, "
                    f"or set {BY_KEY[key].variable}."
                )
            put(key, value, str(file))
    for setting in SETTINGS:
        if setting.variable in environment:
            put(setting.key, _from_text(setting, environment[setting.variable]), setting.variable)
    for key, value in (command_line or {}).items():
        if key not in BY_KEY:
            raise SettingsError(f"There is no setting {key}. See `kgqa config show`.")
        if value is not None:
            put(key, value, "command line")
    for key, value in PRESETS[values["ask.method"]].items():
        if origins[key] == "default":
            values[key], origins[key] = value, values["ask.method"]
    return Settings(values, origins)


def user_settings_file() -> Path:
    """The user's own settings file, by the platform's custom."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("kgqa", appauthor=False)) / FILE_NAME


def read_file(file: Path) -> dict[str, Any]:
    """The settings of a TOML file by key; empty when there is none.

    Raises:
        SettingsError: not TOML, or a key that does not exist.
    """
    try:
        if not file.is_file():
            return {}
        if file.stat().st_size > _MAX_BYTES:
            raise SettingsError(f"{file} is larger than {_MAX_BYTES:,} bytes: that is no settings file.")
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    found = {}
    for section, table in data.items():
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: {section!r} stands outside a section. See `kgqa config show`.")
        for name, value in table.items():
            if f"{section}.{name}" not in BY_KEY:
                raise SettingsError(f"{file}: there is no setting {section}.{name}. See `kgqa config show`.")
            found[f"{section}.{name}"] = value
    return found


def check(setting: Setting, value: Any, origin: str) -> Any:
    """The value in the setting's type.

    Raises:
        SettingsError: it is of another type, out of range, or no choice.
    """
    if value is None and setting.default is None:
        return None
    if setting.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, setting.kind) or isinstance(value, bool):
        raise SettingsError(f"{setting.key} ({origin}) must be {setting.kind.__name__}, not {value!r}.")
    if setting.choices and value not in setting.choices:
        raise SettingsError(
            f"{setting.key} ({origin}) must be one of {', '.join(map(str, setting.choices))}, not {value!r}."
        )
    if isinstance(value, (int, float)) and not abs(value) <= LARGEST:
        raise SettingsError(f"{setting.key} ({origin}) must be a number up to {LARGEST:,}, not {value!r}.")
    if setting.minimum is not None and not value >= setting.minimum:
        raise SettingsError(f"{setting.key} ({origin}) must be at least {setting.minimum:g}, not {value!r}.")
    return value


def _from_text(setting: Setting, text: str) -> Any:
    if text == "" and setting.default is None:
        return None
    try:
        return setting.kind(text)
    except ValueError:
        raise SettingsError(f"{setting.variable} must be {setting.kind.__name__}, not {text!r}.") from None
