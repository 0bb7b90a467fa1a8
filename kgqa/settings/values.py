"""Finds the value of each setting from several sources.

Later sources take precedence: default, method, graph, preset, kgqa.toml, environment variable, command line.
`kgqa config show` prints the source of each value. A kgqa.toml in the working folder may come from another person, so
it must not set `trusted` settings, such as folders that kgqa writes to.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from kgqa.errors import SettingsError
from kgqa.plugins import SELECTORS, did_you_mean, known_settings, method_extension
from kgqa.settings.setting import Section, Setting, check, value_of_text, variable_of
from kgqa.settings.table import (
    SECTIONS,
    AskSettings,
    BudgetSettings,
    CacheSettings,
    CorpusSettings,
    EndpointSettings,
    ExploreSettings,
    GraphSettings,
    LlmSettings,
    RankSettings,
    ServeSettings,
    own_keywords,
    own_settings,
)
from kgqa.text.hints import Option, place

FILE_NAME = "kgqa.toml"
PRESETS = ("ours", "as-published", "economy")
"""Presets that may be chosen for every method."""
GIVEN = ("command line", "Python")
"""Sources of the settings that the user gave to a command or a function."""
LIST_ALL = "List all settings: kgqa config show"
ARGUMENTS = ("topics",)
"""Arguments of `ask` that stand beside settings, for the hint about a misspelled keyword."""


AnySection = TypeVar("AnySection", bound=Section)


@dataclass(frozen=True)
class Settings:
    """The values of all settings, and the source of each value.

    A section of kgqa is an attribute (`settings.rank.pool`), that of a method or another package comes by its class
    (`settings.of(MySettings).rounds`); a key that is known only when kgqa runs is looked up in `values`.
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    """Keys set by a kgqa.toml in the working folder; this file may come from another person."""
    notes: tuple[str, ...] = ()
    """Notes for the user, for example on a misspelled environment variable."""
    table: Mapping[str, Setting] = field(default_factory=own_settings)
    """The settings by key; those of a plugin of another package only if the plugin is used."""
    graph: GraphSettings = field(init=False)
    endpoint: EndpointSettings = field(init=False)
    ask: AskSettings = field(init=False)
    explore: ExploreSettings = field(init=False)
    rank: RankSettings = field(init=False)
    budget: BudgetSettings = field(init=False)
    llm: LlmSettings = field(init=False)
    corpus: CorpusSettings = field(init=False)
    cache: CacheSettings = field(init=False)
    serve: ServeSettings = field(init=False)

    def __post_init__(self) -> None:
        for section in SECTIONS:
            object.__setattr__(self, section.section_name, self.of(section))

    def of(self, section: type[AnySection]) -> AnySection:
        """Return the values of a section; a setting that is not among `values` has its default."""
        prefix = f"{section.section_name}."
        names = [each.name for each in fields(section) if prefix + each.name in self.values]  # type: ignore[arg-type]
        return section(**{name: self.values[prefix + name] for name in names})

    def with_graph(self, graph_settings: Mapping[str, Any]) -> Settings:
        """Add the settings stored with a graph, such as `walks`; they override only defaults and the method."""
        values, origins = dict(self.values), dict(self.origins)
        for name, value in graph_settings.items():
            for key in (f"explore.{name}", f"graph.{name}"):
                if key in own_settings() and origins[key] in ("default", self.values["ask.method"]):
                    values[key], origins[key] = check(own_settings()[key], value, "the graph"), "graph"
        _limit_hops(values, origins, ("default", self.values["ask.method"], self.values["ask.preset"]))
        return replace(self, values=values, origins=origins)


def resolve(
    given: Mapping[str, Any] | None = None,
    *,
    variants: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user_file: Path | None = None,
    installed: bool = False,
) -> Settings:
    """Merge the settings of all sources.

    Args:
        given: values by keyword (see `Setting.keywords`); `as_published` stands for the preset, before others. The
            value None means that the setting was not given, and a path stands for its text.
        variants: values of settings and variants (see `variant`) by key, as a row of a table sets them; they take
            precedence over all others.
        environment: environment variables; None for `os.environ`.
        folder: folder that may contain a kgqa.toml; None for the working folder.
        user_file: the user's own kgqa.toml; None for the platform's default location.
        installed: include the settings of all plugins of other packages, not only of those that are used.

    Raises:
        SettingsError: a key is unknown, a value is wrong, or a file contains a setting that is not allowed in it.
    """
    environment = os.environ if environment is None else environment
    given, variants = dict(given or {}), variants or {}
    if given.pop("as_published", False):
        words = [word for word in given if own_keywords().get(word, word) == "ask.preset"]
        given["ask.preset"] = ",".join(filter(None, ("as-published", *map(given.pop, words))))
    user = user_file or user_settings_file()
    here = (folder or Path.cwd()) / FILE_NAME
    files = {file: read_file(file) for file in (user, here)}
    unchecked = {key: value for entries in files.values() for key, value in entries.items()}
    unchecked |= {key: environment[name] for key in SELECTORS if (name := own_settings()[key].variable) in environment}
    unchecked |= {own_keywords().get(word, word): value for word, value in given.items() if value is not None}
    unchecked |= variants
    table, errors = known_settings(unchecked, installed=installed)
    public = {key: each for key, each in table.items() if not each.variant}
    for each in table.values():
        if each.variant and (each.variable in environment or unchecked.keys() & {*each.keywords} - {*variants}):
            raise _set_by_presets_only(each, str(unchecked.get("ask.method")))
    values = {setting.key: setting.default for setting in table.values()}
    origins = dict.fromkeys(values, "default")

    def put(key: str, value: Any, origin: str) -> None:
        values[key], origins[key] = check(table[key], value, origin), origin

    sections = {key.partition(".")[0] for key in table}
    for file, entries in files.items():
        for key, value in entries.items():
            if errors and key.partition(".")[0] not in sections:
                continue  # the section may belong to the package that cannot be loaded
            setting = _known(key, public, where=f"{file}: ", errors=errors)
            if setting.trusted and file == here:
                raise SettingsError(
                    f"{key} cannot be set by a {FILE_NAME} in the working folder.",
                    f"Put it into {user}, or set {setting.variable}.",
                )
            put(key, value, str(file))
    for key, setting in public.items():
        if (name := setting.variable) in environment:
            put(key, value_of_text(setting, environment[name], name), name)
    by_keyword = {keyword: setting for setting in public.values() for keyword in setting.keywords}
    for keyword, value in given.items():
        setting = _known(keyword, by_keyword, errors=errors)
        if value is not None:
            put(setting.key, os.fspath(value) if isinstance(value, os.PathLike) else value, place())
    for key, value in variants.items():
        put(_known(key, table).key, value, "table")
    method, preset = values["ask.method"], values["ask.preset"]
    presets = method_extension(method).presets
    for name in preset_names(preset):
        if name not in (*PRESETS, *presets):
            names = ", ".join(dict.fromkeys((*PRESETS, *presets)))
            raise SettingsError(f"ask.preset ({origins['ask.preset']}) must be one of {names}, not {name!r}.")
    for name in dict.fromkeys(("ours", *preset_names(preset))):
        for key, value in presets.get(name, {}).items():
            setting = _known(key, table, where=f"Preset {name} of {method}: ")
            if origins[setting.key] in ("default", method, preset):
                put(key, value, f"preset {name}")
                origins[key] = method if name == "ours" else preset
    _limit_hops(values, origins, ("default", method, preset))
    notes = (*_misspelled_variables(environment, public.values()), *(errors if installed else ()))
    local = frozenset(key for key, origin in origins.items() if origin == str(here))
    return Settings(values, origins, local, notes, table)


def preset_names(text: str) -> list[str]:
    """Return the names in `ask.preset`, which may combine several presets; later ones take precedence."""
    return [each.strip() for each in text.split(",")]


def _limit_hops(values: dict[str, Any], origins: dict[str, str], unset: tuple[str, ...]) -> None:
    """Set `explore.wording_depth` to a depth that the user has given, unless the user has given both.

    Args:
        unset: origins of values that the user has not given.
    """
    depth, wording = "explore.depth", "explore.wording_depth"
    if origins[depth] not in unset and origins[wording] in unset:
        values[wording], origins[wording] = values[depth], origins[depth]


def _known(name: str, settings: Mapping[str, Setting], *, where: str = "", errors: Iterable[str] = ()) -> Setting:
    """Return a setting by its name.

    Args:
        errors: messages about packages that cannot be loaded; the setting may belong to one of them.

    Raises:
        SettingsError: there is no such setting; the hint names the similar ones, and the packages that have errors.
    """
    if name in settings:
        return settings[name]
    meant = did_you_mean(name, [each for each in (*settings, *ARGUMENTS) if ("." in each) == ("." in name)])
    raise SettingsError(
        f"{where}{'u' if where else 'U'}nknown setting {name}.", ". ".join((meant + LIST_ALL, " ".join(errors)))
    )


def _set_by_presets_only(variant: Setting, method: str) -> SettingsError:
    """Return the error for a user's value of a variant; it names the presets of the methods that set it."""
    methods = (method, variant.key.partition(".")[0])
    presets = {name: preset for each in methods for name, preset in method_extension(each).presets.items()}
    options = [Option("preset", name) for name, preset in presets.items() if variant.key in preset and name != "ours"]
    advice = [part for option in options for part in (", or ", option)][1:]
    return SettingsError(
        f"{variant.key} ({variant.variable}) is set by presets only.",
        "Use ",
        *(advice or [Option("preset", "NAME,NAME")]),
    )


def _misspelled_variables(environment: Iterable[str], settings: Iterable[Setting]) -> list[str]:
    """Return a note for each environment variable that is nearly the variable of a setting."""
    variables = {name: each.variable for each in settings for name in (each.variable, variable_of(each.key))}
    return [
        f"The environment variable {name} is not a setting and has no effect. Did you mean {variables[near]}?"
        for name in sorted(set(environment) - set(variables.values()))
        if name.startswith("KGQA_")
        for near in difflib.get_close_matches(name, variables, n=1, cutoff=0.85)
    ]


def user_settings_file() -> Path:
    """Return the path of the user's own settings file on this platform."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("kgqa", appauthor=False)) / FILE_NAME


def read_file(file: Path) -> dict[str, Any]:
    """Read the settings of a TOML file, by key. The result is empty if the file does not exist.

    Raises:
        SettingsError: the file cannot be read, is not TOML, or contains a key outside a section.
    """
    if not file.is_file():
        return {}
    from kgqa.storage.loading import parse_toml, read_bytes  # not needed for `--version`

    try:
        data: dict[str, Any] = parse_toml(read_bytes(file))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    found: dict[str, Any] = {}
    for section, table in data.items():
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: {section!r} must be in a section such as [explore].", LIST_ALL)
        found |= {f"{section}.{name}": value for name, value in table.items()}
    return found
