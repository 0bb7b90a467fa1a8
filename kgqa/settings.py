"""Finds the value of each setting from several sources.

Later sources take precedence: default, method, graph, preset, kgqa.toml, environment variable, command line.
`kgqa config show` prints the source of each value. A kgqa.toml in the working folder may come from another person, so
it must not set `trusted` settings, such as folders that kgqa writes to.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgqa.errors import SettingsError
from kgqa.hints import place
from kgqa.settings_presets import PRESETS
from kgqa.settings_table import BY_KEY, BY_KEYWORD, SETTINGS, Setting, variable_of
from kgqa.toml_text import read_toml

FILE_NAME = "kgqa.toml"
LARGEST = 1_000_000_000
GIVEN = ("command line", "Python")
"""Sources of the settings that the user gave to a command or a function."""
LIST_ALL = "List all settings: kgqa config show"


@dataclass(frozen=True)
class Settings:
    """The values of all settings by key, and the source of each value."""

    values: Mapping[str, Any]
    origins: Mapping[str, str] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    """Keys set by a kgqa.toml in the working folder; this file may come from another person."""
    notes: tuple[str, ...] = ()
    """Notes for the user, for example on a misspelled environment variable."""

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def with_graph(self, graph_settings: Mapping[str, Any]) -> Settings:
        """Add the settings stored with a graph, such as `walks`; they override only defaults and the method."""
        values, origins = dict(self.values), dict(self.origins)
        for name, value in graph_settings.items():
            for key in (f"explore.{name}", f"graph.{name}"):
                if key in BY_KEY and origins[key] in ("default", self.values["ask.method"]):
                    values[key], origins[key] = check(BY_KEY[key], value, "the graph"), "graph"
        return replace(self, values=values, origins=origins)


def resolve(
    given: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user_file: Path | None = None,
) -> Settings:
    """Merge the settings of all sources.

    Args:
        given: values by keyword (see `Setting.keywords`); `as_published` stands for the preset. The value None means
            that the setting was not given, True means `on`, and a path stands for its text.
        environment: environment variables; None for `os.environ`.
        folder: folder that may contain a kgqa.toml; None for the working folder.
        user_file: the user's own kgqa.toml; None for the platform's default location.

    Raises:
        SettingsError: a key is unknown, a value is wrong, or a file contains a setting that is not allowed in it.
    """
    environment = os.environ if environment is None else environment
    values = {setting.key: setting.default for setting in SETTINGS}
    origins = {setting.key: "default" for setting in SETTINGS}

    local: set[str] = set()

    def put(key: str, value: Any, origin: str) -> None:
        local.discard(key)
        values[key], origins[key] = check(BY_KEY[key], value, origin), origin

    user = user_file or user_settings_file()
    here = (folder or Path.cwd()) / FILE_NAME
    for file, trusted in ((user, True), (here, False)):
        for key, value in read_file(file).items():
            if BY_KEY[key].trusted and not trusted:
                raise SettingsError(
                    f"{key} cannot be set by a {FILE_NAME} in the working folder.",
                    f"Put it into {user}, or set {BY_KEY[key].variable}.",
                )
            put(key, value, str(file))
            if not trusted:
                local.add(key)
    for setting in SETTINGS:
        if setting.variable in environment:
            put(setting.key, _from_text(setting, environment[setting.variable]), setting.variable)
    given = dict(given or {})
    if given.pop("as_published", False):
        given["ask.preset"] = "as-published"
    for keyword, value in given.items():
        setting = _known(keyword, BY_KEYWORD)
        if value is not None:
            put(setting.key, _from_python(setting, value), place())
    for origin, preset in _presets(values["ask.method"], values["ask.preset"]):
        for key, value in preset.items():
            if origins[key] in ("default", values["ask.method"]):
                values[key], origins[key] = value, origin
    return Settings(values, origins, frozenset(local), tuple(_misspelled_variables(environment)))


def _known(name: str, settings: Mapping[str, Setting], *, where: str = "") -> Setting:
    """Return a setting by its name.

    Raises:
        SettingsError: there is no such setting; the hint names the similar ones.
    """
    if name in settings:
        return settings[name]
    near = difflib.get_close_matches(name, [each for each in settings if ("." in each) == ("." in name)], n=3)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    raise SettingsError(f"{where}{'u' if where else 'U'}nknown setting {name}.", meant + LIST_ALL)


def _misspelled_variables(environment: Iterable[str]) -> Iterator[str]:
    """Yield a note for each environment variable that is nearly the variable of a setting."""
    variables = {name: each.variable for each in SETTINGS for name in (each.variable, variable_of(each.key))}
    for name in sorted(set(environment) - set(variables.values())):
        if name.startswith("KGQA_") and (near := difflib.get_close_matches(name, variables, n=1, cutoff=0.85)):
            meant = variables[near[0]]
            yield f"The environment variable {name} is not a setting and has no effect. Did you mean {meant}?"


def _presets(method: str, preset: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the settings of a method, then of a preset, each with its name; the preset takes precedence."""
    known = PRESETS.get(method, {})
    return [(method, known.get("ours", {})), (preset, known.get(preset, {}) if preset != "ours" else {})]


def user_settings_file() -> Path:
    """Return the path of the user's own settings file on this platform."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("kgqa", appauthor=False)) / FILE_NAME


def read_file(file: Path) -> dict[str, Any]:
    """Read the settings of a TOML file, by key. The result is empty if the file does not exist.

    Raises:
        SettingsError: the file cannot be read, is not TOML, or contains an unknown key.
    """
    try:
        if not file.is_file():
            return {}
        data = read_toml(file)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    found = {}
    for section, table in data.items():
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: {section!r} must be in a section such as [explore].", LIST_ALL)
        for name, value in table.items():
            found[_known(f"{section}.{name}", BY_KEY, where=f"{file}: ").key] = value
    return found


def check(setting: Setting, value: Any, origin: str) -> Any:
    """Return the value, converted to the setting's type.

    Raises:
        SettingsError: the value has a wrong type, is out of range, or is not one of the setting's choices.
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
    number = value if isinstance(value, (int, float)) else None
    if number is not None and not -LARGEST <= number <= LARGEST:
        raise SettingsError(f"{setting.key} ({origin}) must be at most {LARGEST:,}, not {value!r}.")
    if setting.minimum is not None and number is not None and not number >= setting.minimum:
        raise SettingsError(f"{setting.key} ({origin}) must be at least {setting.minimum:g}, not {value!r}.")
    return value


def _from_python(setting: Setting, value: Any) -> Any:
    if isinstance(value, bool) and set(setting.choices) == {"on", "off"}:
        return "on" if value else "off"
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _from_text(setting: Setting, text: str) -> Any:
    if text == "" and setting.default is None:
        return None
    try:
        return json.loads(text) if setting.kind is dict else setting.kind(text)
    except (ValueError, RecursionError):
        what = "a JSON object" if setting.kind is dict else setting.kind.__name__
        raise SettingsError(f"{setting.variable} must be {what}, not {text!r}.") from None
