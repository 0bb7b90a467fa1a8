"""Loads methods, choosers, tournaments, data set readers and stores by name, from kgqa and other packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kgqa.errors import KgqaError, PluginError, SettingsError
from kgqa.settings_table import BY_KEY, PluginKind, Setting, check
from kgqa.words import clean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SELECTORS: Mapping[str, PluginKind] = {key: each.plugin for key, each in BY_KEY.items() if each.plugin}
"""The settings that select a plugin by its name."""
SHOW_TRACEBACK = "kgqa -v ... shows the traceback."
_KEY = re.compile(r"([a-z][a-z0-9]*)\.[a-z][a-z0-9_]*")
_SECRET_SECTIONS = {"embeddings", "virtuoso"}
"""Sections whose environment variables, such as KGQA_EMBEDDINGS_KEY, hold secrets."""


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a plugin declares.

    Attributes:
        settings: Settings of the plugin. In another package, the part of a key before the dot is not a section of kgqa.
    """

    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MethodExtension(Extension):
    """What a method declares.

    Attributes:
        presets: Map from a preset to values of settings by key. "ours" always applies, and the preset chosen by the
            user takes precedence over it. Both override only default values.
        stages: Map from a stage to default sampling parameters (temperature, top_p, seed, max_tokens, extra_body). A
            string is the key of the setting that holds the value.
    """

    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def plugin_names(kind: PluginKind) -> list[str]:
    """List the names of all plugins of a kind without importing them; plugins of kgqa come first."""
    return list(_points(kind))


def plugin(kind: PluginKind, name: str) -> Any:
    """Load a plugin by name. A plugin of kgqa takes precedence over one of another package with the same name.

    Raises:
        SettingsError: There is no such plugin, it cannot be imported, or it declares a setting or preset that is not
            allowed.
    """
    point = _points(kind).get(name)
    if point is None:
        if kind != "dataset" and not any(map(_is_ours, _points(kind).values())):
            raise SettingsError(f"kgqa is not installed completely: it has no {kind}s.", "Install it again with pip.")
        raise SettingsError(f"Unknown {kind} {name}.", f"Choose one of: {', '.join(plugin_names(kind))}.")
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # the import of a foreign package may raise anything
        raise SettingsError(f"The {kind} {name} cannot be loaded from {point.value}: {error}") from error
    if isinstance(found, Extension) and not _is_ours(point):
        try:
            _check(found)
        except SettingsError as error:
            raise SettingsError(f"The {kind} {name} ({point.value}) is invalid: {error}") from None
    return found


def is_ours(kind: PluginKind, name: str) -> bool:
    """Return whether a plugin belongs to kgqa."""
    return (point := _points(kind).get(name)) is not None and _is_ours(point)


def plugin_defect(kind: PluginKind, name: str, text: str, hint: str = "") -> PluginError:
    """Return an error that names a plugin and its package; `text` says what the plugin did, such as `returned 3`."""
    return PluginError(f"The {kind} {name} ({_points(kind)[name].value}) {text}.", hint)


@contextmanager
def contained(kind: PluginKind, name: str) -> Iterator[None]:
    """Turn an unknown exception of a plugin of another package into a PluginError, which fails only one question."""
    try:
        yield
    except KgqaError:
        raise
    except Exception as error:
        from kgqa.trace import BudgetExhausted  # not needed for `--version`

        if isinstance(error, BudgetExhausted):
            raise
        log_exception(error)
        text = f"failed: {type(error).__name__}: {clean(str(error))[:300]}"
        raise plugin_defect(kind, name, text.removesuffix(": "), SHOW_TRACEBACK) from error


def log_exception(error: Exception) -> None:
    """Log the traceback of an exception of another package; the option -v shows it."""
    import logging  # not needed for `--version`

    logging.getLogger("kgqa").debug("", exc_info=error)


def method_extension(name: str) -> MethodExtension:
    """Return what a method declares: nothing if it is a plain function, is unknown or cannot be loaded."""
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

    If `values` contains another key, the settings of all installed plugins are added.

    Args:
        values: Values of settings by key.
        installed: Whether to add the settings of all installed plugins in any case.

    Returns:
        The settings by key, and a message for each plugin that cannot be loaded, or whose name is taken.
    """
    found, errors = dict(_own_settings()), dict[str, None]()
    _add(found, [(kind, str(values[key])) for key, kind in SELECTORS.items() if key in values], errors)
    if installed or values.keys() - found.keys():
        kinds: tuple[PluginKind, ...] = (*SELECTORS.values(), "store", "dataset")
        _add(found, [(kind, name) for kind in kinds for name in plugin_names(kind)], errors)
    return found, list(errors)


def _add(found: dict[str, Setting], plugins: Iterable[tuple[PluginKind, str]], errors: dict[str, None]) -> None:
    """Add the settings of plugins of other packages to `found`, and the messages about invalid plugins to `errors`."""
    for kind, name in plugins:
        errors.update(dict.fromkeys(shadowed(kind, name)))
        if name not in plugin_names(kind) or is_ours(kind, name):
            continue
        try:
            extension = plugin(kind, name)
        except SettingsError as error:
            errors[str(error)] = None
            continue
        for setting in extension.settings if isinstance(extension, Extension) else ():
            if found.setdefault(setting.key, setting) != setting:
                errors[f"The {kind} {name} is not used in full: another plugin has the setting {setting.key}."] = None


def shadowed(kind: PluginKind, name: str) -> list[str]:
    """Return a note for each plugin that is not used, because kgqa or another package has a plugin of its name."""
    used = _points(kind).get(name)
    return [
        f"The {kind} {name} of {point.value} is not used, because {used.value} has the same name."
        for point in _points_on(kind, tuple(sys.path))[1]
        if used is not None and point.name == name and point.value != used.value
    ]


def _points(kind: PluginKind) -> dict[str, EntryPoint]:
    return _points_on(kind, tuple(sys.path))[0]


@lru_cache(64)
def _points_on(kind: PluginKind, path: tuple[str, ...]) -> tuple[dict[str, EntryPoint], list[EntryPoint]]:
    """Return the entry points of a kind that are used, by name, and all entry points; those of kgqa come first."""
    from importlib.metadata import entry_points  # imported late, because it takes a third of the time of `--version`

    found: dict[str, EntryPoint] = {}
    points = sorted(entry_points(group=f"kgqa.{kind}s"), key=lambda point: (not _is_ours(point), point.name))
    for point in points:
        found.setdefault(point.name, point)
    return found, points


def _is_ours(point: EntryPoint) -> bool:
    return point.value.startswith("kgqa.")


@lru_cache(1)
def _own_settings() -> Mapping[str, Setting]:
    extensions = [method_extension(name) for name in plugin_names("method") if is_ours("method", name)]
    return {**BY_KEY, **{setting.key: setting for each in extensions for setting in each.settings}}


def _check(extension: Extension) -> None:
    """Check the declarations of another package.

    Raises:
        SettingsError: A setting or preset is not allowed.
    """
    own = _own_settings()
    known = {**own, **{setting.key: setting for setting in extension.settings}}
    for setting in extension.settings:
        match = _KEY.fullmatch(setting.key)
        if (
            match is None
            or setting.called
            or setting.option
            or setting.plugin
            or setting.kind not in (str, int, float, dict)
        ):
            raise SettingsError(f"{setting.key} must be a key such as mine.rounds, of type str, int, float or dict.")
        if match[1] in {key.partition(".")[0] for key in own} | _SECRET_SECTIONS:
            raise SettingsError(f"{setting.key} is in a section of kgqa.", "Use your own section, such as mine.rounds.")
        check(setting, setting.default, "default")
    for preset, values in extension.presets.items() if isinstance(extension, MethodExtension) else ():
        for key, value in values.items():
            if key not in known or key in SELECTORS or (key in own and own[key].trusted):
                raise SettingsError(f"The preset {preset} may not set {key}.")
            check(known[key], value, f"preset {preset}")
    for stage, sampling in extension.stages.items() if isinstance(extension, MethodExtension) else ():
        if unknown := [value for value in sampling.values() if isinstance(value, str) and value not in known]:
            raise SettingsError(f"The stage {stage} refers to the setting {unknown[0]}, which does not exist.")
