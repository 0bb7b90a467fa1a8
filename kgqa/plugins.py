"""Loads methods, choosers, tournaments, data set readers and stores by name, from kgqa and other packages.

What the user has installed is trusted: a plugin is called as it is, and may raise. `culprit` names it then.
"""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from kgqa.errors import SettingsError
from kgqa.settings.setting import PluginKind, Section, Setting, settings_of
from kgqa.settings.table import own_settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SELECTORS: Mapping[str, PluginKind] = {
    "ask.method": "method",
    "rank.tournament": "tournament",
    "rank.chooser": "chooser",
}
"""The settings that select a plugin by its name."""


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a plugin declares.

    Attributes:
        settings: The section of the plugin's settings. In another package, its name is not that of a section of kgqa.
    """

    settings: type[Section] | None = None

    @property
    def table(self) -> Mapping[str, Setting]:
        """The settings of the plugin by key."""
        return settings_of(self.settings) if self.settings else {}


@dataclass(frozen=True, kw_only=True)
class MethodExtension(Extension):
    """What a method declares.

    Attributes:
        presets: Map from a preset to values of settings by key. "ours" always applies, and the preset chosen by the
            user takes precedence over it. Both override only default values.
        stages: Map from a stage to default sampling parameters (temperature, top_p, seed, max_tokens, extra_body). A
            string is the key of the setting that holds the value.
        summary: One line for people who choose a method.
        usual: Whether this method answers if the user names none.
    """

    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    summary: str = ""
    usual: bool = False


def plugin_names(kind: PluginKind) -> list[str]:
    """List the names of all plugins of a kind without importing them; plugins of kgqa come first."""
    return list(_points(kind))


def plugin(kind: PluginKind, name: str) -> Any:
    """Load a plugin by name. A plugin of kgqa takes precedence over one of another package with the same name.

    Raises:
        SettingsError: There is no such plugin, or it cannot be imported.
    """
    points = _points(kind)
    if name not in points:
        choices = f"Choose one of: {', '.join(points)}." if points else "No installed package has one."
        raise SettingsError(f"Unknown {kind} {name}.", did_you_mean(name, points) + choices)
    try:
        return points[name].load()
    except Exception as error:
        value = points[name].value
        raise SettingsError(f"The {kind} {name} cannot be loaded from {value}: {error}") from error


def culprit(error: BaseException) -> str:
    """Return which plugin of another package raised an exception, and where, from its traceback; "" if none did."""
    points = [(kind, point) for kind in get_args(PluginKind) for point in _points(kind).values() if not _is_ours(point)]
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__"))
        package = module.partition(".")[0]
        near = [(kind, point) for kind, point in points if point.module.partition(".")[0] == package]
        if near:
            exact = [f"{kind} {point.name}" for kind, point in near if point.module == module]
            named = " or ".join(exact or [f"{kind} {point.name}" for kind, point in near])
            return f"The {named} of {package} ({Path(frame.f_code.co_filename).name}, line {line})"
    return ""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the start of a hint with the names that are similar to `name`; empty if there are none."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"Did you mean {' or '.join(near)}? " if near else ""


def is_ours(kind: PluginKind, name: str) -> bool:
    """Return whether a plugin belongs to kgqa."""
    return (point := _points(kind).get(name)) is not None and _is_ours(point)


def method_extension(name: str) -> MethodExtension:
    """Return the extension of a method; an empty one if it is a plain function, is unknown or cannot be loaded."""
    try:
        found = plugin("method", name)
    except SettingsError:
        found = None
    return found if isinstance(found, MethodExtension) else MethodExtension()


def stage_names() -> list[str]:
    """List the stages that the installed methods declare."""
    return list(dict.fromkeys(stage for name in plugin_names("method") for stage in method_extension(name).stages))


def known_settings(values: Mapping[str, Any], *, installed: bool = False) -> tuple[dict[str, Setting], list[str]]:
    """Return the settings of kgqa and of the plugins that are selected in `values`.

    While `values` contains another key, the settings of further plugins are added.

    Args:
        values: Values of settings by key.
        installed: Whether to add the settings of all installed plugins in any case.

    Returns:
        The settings by key, and an error message for each plugin that cannot be loaded.
    """
    found, errors = dict(_settings_of_kgqa()), list[str]()
    foreign = [(key, name) for key, kind in SELECTORS.items() for name in plugin_names(kind) if not is_ours(kind, name)]
    foreign.sort(key=lambda each: values.get(each[0]) != each[1])
    for key, name in foreign:
        if installed or values.get(key) == name or values.keys() - found.keys():
            try:
                extension = plugin(SELECTORS[key], name)
            except SettingsError as error:
                errors.append(str(error))
            else:
                found |= {**extension.table, **found} if isinstance(extension, Extension) else {}
    return found, errors


def _points(kind: PluginKind) -> dict[str, EntryPoint]:
    return _points_on(kind, tuple(sys.path))


@lru_cache(64)
def _points_on(kind: PluginKind, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Return the entry points by name, those of kgqa first."""
    from importlib.metadata import entry_points  # imported late, because it takes a third of the time of `--version`

    group = "kgqa.web_searches" if kind == "web_search" else f"kgqa.{kind}s"
    points = sorted(entry_points(group=group), key=lambda point: (not _is_ours(point), point.name))
    found: dict[str, EntryPoint] = {}
    for point in points:
        found.setdefault(point.name, point)
    return found


def _is_ours(point: EntryPoint) -> bool:
    return point.value.startswith("kgqa.")


@lru_cache(1)
def _settings_of_kgqa() -> Mapping[str, Setting]:
    """Return the settings of kgqa with those of its methods, by key."""
    methods = {name: method_extension(name) for name in plugin_names("method") if is_ours("method", name)}
    found = {**own_settings(), **{key: each for method in methods.values() for key, each in method.table.items()}}
    names = sorted(methods, key=lambda name: not methods[name].usual)
    if names:
        summaries = "; ".join(f"{name}: {methods[name].summary}" for name in names)
        key = "ask.method"
        found[key] = replace(found[key], default=names[0], help=f"{found[key].help}: {summaries}")
    return found
