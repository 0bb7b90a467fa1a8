"""Loads methods, choosers, tournaments, data set readers and stores by name, from kgqa and other packages."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from kgqa.errors import KgqaError, PluginError, SettingsError
from kgqa.settings.setting import PluginKind, Section, Setting, check, settings_of
from kgqa.settings.table import own_settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SELECTORS: Mapping[str, PluginKind] = {
    "ask.method": "method",
    "rank.tournament": "tournament",
    "rank.chooser": "chooser",
}
"""The settings that select a plugin by its name."""
SHOW_TRACEBACK = "Show the traceback: kgqa -v COMMAND"
_KEY = re.compile(r"([a-z][a-z0-9]*)\.[a-z][a-z0-9_]*")
_SECRET_SECTIONS = {"embeddings", "virtuoso"}
"""Sections whose environment variables, such as KGQA_EMBEDDINGS_KEY, hold secrets."""
CALLS: Mapping[PluginKind, tuple[str, str]] = {
    "method": ("answer", "question, *, resources, trace, topics, names"),
    "tournament": ("play", "question, candidates, chooser, *, k, record"),
    "chooser": ("open", "resources"),
    "dataset": ("", "file, name"),
    "store": ("", "rest, *, writable"),
    "web_search": ("", "query, k"),
}
"""For each kind: the attribute that holds the function of an `Extension`, and the arguments kgqa calls it with."""

_FOREIGN: tuple[PluginKind, ...] = ("dataset", "web_search")
"""The kinds that only other packages add to."""
_GROUPS: Mapping[PluginKind, str] = {"web_search": "kgqa.web_searches"}
"""The groups of entry points that are not called `kgqa.` and the plural of the kind with an s."""


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
        SettingsError: There is no such plugin, it cannot be imported, or it declares a setting or preset that is not
            allowed.
    """
    point = _points(kind).get(name)
    if point is None:
        if kind not in _FOREIGN and not any(map(_is_ours, _points(kind).values())):
            raise SettingsError(f"kgqa is not installed completely: it has no {kind}s.", "Install it again with pip.")
        near, names = did_you_mean(name, plugin_names(kind)), ", ".join(plugin_names(kind))
        hint = f"{near}Choose one of: {names}." if names else "No installed package has one."
        raise SettingsError(f"Unknown {kind} {name}.", hint)
    values = {each.value for each in _every_point(kind) if each.name == name}
    if len(values) > 1 and not _is_ours(point):
        raise SettingsError(
            f"Several packages have a {kind} {name}: {', '.join(sorted(values))}.", "Uninstall all but one."
        )
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # the import of a foreign package may raise anything
        raise SettingsError(f"The {kind} {name} cannot be loaded from {point.value}: {error}") from error
    if not _is_ours(point):
        try:
            if isinstance(found, Extension):
                _check(found)
            check_call(kind, found)
        except Exception as error:  # declarations of a wrong type may raise anything
            text = str(error) if isinstance(error, SettingsError) else f"{type(error).__name__}: {error}"
            raise SettingsError(f"The {kind} {name} ({point.value}) is invalid: {text}") from error
    return found


def check_call(kind: PluginKind, found: Any) -> None:
    """Check that a plugin of another package can be called as kgqa calls plugins of its kind.

    Raises:
        SettingsError: It is not a function, or does not accept these arguments.
    """
    attribute, arguments = CALLS[kind]
    function = getattr(found, attribute, None) if isinstance(found, Extension) else found
    if isinstance(function, str) and function is not found:
        return  # imported when the plugin is used
    if not callable(function):
        raise SettingsError(f"It is neither a {kind} nor a function: {found!r:.100}")
    positional, _, keywords = (part.replace(",", " ").split() for part in arguments.partition("*"))
    try:
        signature = inspect.signature(function)
        signature.bind(*positional, **dict.fromkeys([*keywords, *getattr(found, "parameters", ())]))
    except TypeError as error:
        if kind != "dataset" or signature.parameters:  # a reader without a file takes no arguments
            raise SettingsError(f"It must accept the arguments ({arguments}): {error}.") from error
    except ValueError:
        pass  # not written in Python


def failure(what: str, error: BaseException, function: Any) -> str:
    """Return a message about an exception in a function of another package, with the place in this package."""
    log_exception(error)
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    frames = [
        f" ({Path(frame.f_code.co_filename).name}, line {line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package
    ]
    return f"{what} failed{frames[-1] if frames else ''}: {type(error).__name__}: {error}".rstrip(": ") + "."


@contextmanager
def contained(kind: PluginKind, name: str, function: Any, *, hint: str = "") -> Iterator[None]:
    """Turn an unknown exception or SystemExit of a plugin of another package into a PluginError.

    `hint`: what to do if the plugin uses an attribute of None.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        from kgqa.trace.trace import BudgetExhausted  # not needed for `--version`

        if isinstance(error, (KgqaError, BudgetExhausted)):
            raise
        todo = hint if hint and isinstance(error, AttributeError) and error.obj is None else SHOW_TRACEBACK
        raise PluginError(failure(_title(kind, name), error, function), todo) from error


def plugin_defect(kind: PluginKind, name: str, text: str) -> PluginError:
    """Return an error that names a plugin and its package; `text` says what the plugin did, such as `returned 3`."""
    return PluginError(f"{_title(kind, name)} {text}.")


def _title(kind: PluginKind, name: str) -> str:
    return f"The {kind} {name} ({_points(kind)[name].value})"


def log_exception(error: BaseException) -> None:
    """Log the traceback of an exception of another package; the option -v shows it."""
    import logging  # not needed for `--version`

    logging.getLogger("kgqa").debug("", exc_info=error)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the start of a hint with the names that are similar to `name`; empty if there are none."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"Did you mean {' or '.join(near)}? " if near else ""


def plugin_errors() -> list[str]:
    """Load all plugins of other packages; return a message for each one that cannot be used."""
    errors = dict.fromkeys(known_settings({}, installed=True)[1])
    for kind in get_args(PluginKind):
        for point in _every_point(kind):
            if _is_ours(point):
                continue
            if is_ours(kind, point.name):
                errors[f"The {kind} {point.name} ({point.value}) has no effect, because kgqa has one."] = None
                continue
            try:
                plugin(kind, point.name)
            except SettingsError as error:
                errors[str(error)] = None
    return list(errors)


def is_ours(kind: PluginKind, name: str) -> bool:
    """Return whether a plugin belongs to kgqa."""
    return (point := _points(kind).get(name)) is not None and _is_ours(point)


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
        The settings by key, and an error message for each plugin that cannot be loaded.
    """
    found, errors = dict(_settings_of_kgqa()), dict[str, None]()
    _add(found, [(kind, str(values[key])) for key, kind in SELECTORS.items() if key in values], errors)
    if installed or values.keys() - found.keys():
        _add(found, [(kind, name) for kind in SELECTORS.values() for name in plugin_names(kind)], errors)
    return found, list(errors)


def _add(found: dict[str, Setting], plugins: Iterable[tuple[PluginKind, str]], errors: dict[str, None]) -> None:
    """Add the settings of plugins of other packages to `found`, and the messages about invalid plugins to `errors`."""
    for kind, name in plugins:
        if name not in plugin_names(kind) or is_ours(kind, name):
            continue
        try:
            extension = plugin(kind, name)
        except SettingsError as error:
            errors[str(error)] = None
            continue
        for setting in extension.table.values() if isinstance(extension, Extension) else ():
            if found.setdefault(setting.key, setting) != setting:
                errors[f"The {kind} {name} is not used in full: another plugin has the setting {setting.key}."] = None


def _points(kind: PluginKind) -> dict[str, EntryPoint]:
    return _points_on(kind, tuple(sys.path))[0]


def _every_point(kind: PluginKind) -> list[EntryPoint]:
    return _points_on(kind, tuple(sys.path))[1]


@lru_cache(64)
def _points_on(kind: PluginKind, path: tuple[str, ...]) -> tuple[dict[str, EntryPoint], list[EntryPoint]]:
    """Return the entry points by name, and all of them: several packages may have the same name."""
    from importlib.metadata import entry_points  # imported late, because it takes a third of the time of `--version`

    points = sorted(
        entry_points(group=_GROUPS.get(kind, f"kgqa.{kind}s")), key=lambda point: (not _is_ours(point), point.name)
    )
    found: dict[str, EntryPoint] = {}
    for point in points:
        found.setdefault(point.name, point)
    return found, points


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


def _check(extension: Extension) -> None:
    """Check the declarations of another package.

    Raises:
        SettingsError: A setting or preset is not allowed.
    """
    presets, stages = (getattr(extension, name, {}) for name in ("presets", "stages"))
    for name, tables in (("presets", presets), ("stages", stages)):
        if not isinstance(tables, Mapping) or not all(
            isinstance(key, str) and isinstance(table, Mapping) for key, table in tables.items()
        ):
            raise SettingsError(f"{name} must map each name to a dictionary, not {tables!r:.100}.")
    own = _settings_of_kgqa()
    known = {**own, **extension.table}
    for setting in extension.table.values():
        match = _KEY.fullmatch(setting.key)
        if match is None:
            raise SettingsError(f"{setting.key} must be a key such as mine.rounds.")
        if setting.kind not in (str, int, float, dict):
            kinds = "str, int, float or dict (for a switch: str with choices=('on', 'off'))"
            raise SettingsError(f"The kind of {setting.key} must be {kinds}, not {setting.kind!r}.")
        if setting.called or setting.option or setting.plugin:
            raise SettingsError(f"{setting.key} must not have called=, option= or plugin=; users set it by its key.")
        if match[1] in {key.partition(".")[0] for key in own} | _SECRET_SECTIONS:
            raise SettingsError(f"{setting.key} is in a section of kgqa.", "Use your own section, such as mine.rounds.")
        check(setting, setting.default, "default")
    for preset, values in presets.items():
        for key, value in values.items():
            if key not in known or key in SELECTORS or (key in own and own[key].trusted):
                raise SettingsError(f"The preset {preset} may not set {key}.")
            check(known[key], value, f"preset {preset}")
    for key in getattr(extension, "parameters", {}).values():
        if key not in known:
            raise SettingsError(f"A parameter has the setting {key}, which does not exist.", "Declare it in settings=.")
    for stage, sampling in stages.items():
        if unknown := [value for value in sampling.values() if isinstance(value, str) and value not in known]:
            raise SettingsError(f"The stage {stage} refers to the setting {unknown[0]}, which does not exist.")
