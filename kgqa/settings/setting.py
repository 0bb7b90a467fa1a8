"""What a setting is: a field of a section, with its limits, its help and the names that users give it by."""

from __future__ import annotations

import json
import reprlib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Union, dataclass_transform, get_args, get_origin, get_type_hints

from kgqa.errors import SettingsError

PluginKind = Literal["method", "chooser", "tournament", "dataset", "store", "web_search"]
LARGEST = 1_000_000_000
_WORDS = {int: "a whole number", float: "a number", str: "text", dict: "a table (in JSON, an object)"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, as a table of all settings lists it; it is declared by `setting` in a `Section`.

    `kind`: type of the value; dict means a TOML table, or JSON in an environment variable. The value may be None only
    if the default is None. `minimum`, `maximum`: smallest and largest value allowed. `trusted`: the setting is accepted
    only from the user's own settings file, an environment variable or the command line. `called`: name of the
    environment variable, if the name is not formed from KGQA_ and the key. `option`: the command line options,
    separated by a space; the first one names the keyword argument in Python (`--graph-iri`: `graph_iri`). `metavar`:
    the option's value in help texts. `plugin`: the value is the name of a plugin of this kind. `each_of`: the value is
    a list, separated by commas, of some of these. `secret`: `kgqa config show` hides the value.
    `explained`: the file of `kgqa init` that explains the setting, "folder" or "user"; `example`: its value there, if
    there is no default. `variant`: only presets and rows of tables may set it (see `variant`).
    """

    key: str
    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] = ()
    minimum: float = -LARGEST
    maximum: float = LARGEST
    trusted: bool = False
    called: str = ""
    option: str = ""
    metavar: str | None = None
    plugin: PluginKind | None = None
    each_of: tuple[str, ...] = ()
    secret: bool = False
    example: Any = None
    explained: str = ""
    variant: bool = False

    @property
    def variable(self) -> str:
        return self.called or variable_of(self.key)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The names of the setting in Python: its key, the key with an underscore, the names of its options."""
        options = (option.removeprefix("--").replace("-", "_") for option in self.option.split())
        return (self.key, self.key.replace(".", "_"), *options)


def setting(default: Any, help: str, **details: Any) -> Any:
    """Declare a setting of a `Section`; `details` are the other attributes of `Setting`, except key and kind.

    A type `Literal[...]` gives the choices, `... | None` says that the value may be left out.
    """
    return field(default=default, metadata={"help": help, **details})


def variant(default: Any, help: str, **details: Any) -> Any:
    """Declare a field of a `Section` that only experiments change, such as an ablation of a published table.

    It is read like a setting (`settings.of(MySettings).plan`), but users have no option, environment variable or key
    of kgqa.toml for it, and `kgqa config show` does not list it. It is set in two places: by a named preset of the
    method (`presets={"no-plan": {"mine.plan": "off"}}`; `--preset as-published,no-plan` combines two), and by the
    `settings` of a row of a table, which `kgqa eval table` gives to `resolve` as `variants`. The arguments are those
    of `setting`; give `help` so that its values can be understood, because nothing else explains them.
    """
    return setting(default, help, variant=True, **details)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(setting, variant))
class Section:
    """The settings of one section, as attributes with their types; each subclass becomes a frozen dataclass.

    `class MySettings(Section, name="mine")` with `rounds: int = setting(3, "maximum rounds", minimum=1)` declares
    the setting `mine.rounds`.
    """

    section_name: ClassVar[str]

    def __init_subclass__(cls, *, name: str) -> None:
        cls.section_name = name
        dataclass(frozen=True, eq=False)(cls)


def settings_of(section: type[Section]) -> Mapping[str, Setting]:
    """Return the settings of a section by key."""
    types = get_type_hints(section)
    found = (_declared(f"{section.section_name}.{each.name}", types[each.name], each) for each in fields(section))  # type: ignore[arg-type]
    return {each.key: each for each in found}


def _declared(key: str, type_: Any, declared: Any) -> Setting:
    if get_origin(type_) in (Union, types.UnionType):
        (type_,) = (each for each in get_args(type_) if each is not type(None))
    choices = get_args(type_) if get_origin(type_) is Literal else ()
    kind = type(choices[0]) if choices else get_origin(type_) or type_
    return Setting(key, kind, declared.default, **{"choices": choices, **declared.metadata})


def variable_of(key: str) -> str:
    """Return the name of an environment variable, formed from a setting's key."""
    return "KGQA_" + key.upper().replace(".", "_")


def check(setting: Setting, value: Any, origin: str) -> Any:
    """Return the value, converted to the setting's type; True and False mean `on` and `off`, if these are choices.

    Raises:
        SettingsError: the value has a wrong type, is out of range, or is not one of the setting's choices.
    """
    if value is None and setting.default is None:
        return None
    if isinstance(value, bool) and "on" in setting.choices:
        value = "on" if value else "off"
    is_number = setting.kind in (int, float)
    kinds: Any = (int, float) if setting.kind is float else setting.kind
    if not isinstance(value, kinds) or isinstance(value, bool) or (setting.choices and value not in setting.choices):
        wanted = f"one of {', '.join(map(str, setting.choices))}" if setting.choices else _WORDS[setting.kind]
    elif setting.each_of and not {each.strip() for each in value.split(",")} <= set(setting.each_of):
        wanted = f"a list of {', '.join(setting.each_of)}, with commas"
    elif is_number and value < setting.minimum:
        wanted = f"at least {setting.minimum:g}"
    elif is_number and not value <= setting.maximum:
        wanted = f"at most {setting.maximum:,}"
    else:
        return float(value) if setting.kind is float else value
    raise SettingsError(f"{setting.key} ({origin}) must be {wanted}, not {reprlib.repr(value)}.")


def value_of_text(setting: Setting, text: str, origin: str) -> Any:
    """Convert the text of an environment variable or an option to the type of a setting; "" may mean None.

    Raises:
        SettingsError: the text is not of this type.
    """
    if text == "" and setting.default is None:
        return None
    try:
        return json.loads(text) if setting.kind is dict else setting.kind(text)
    except (ValueError, RecursionError):
        raise SettingsError(f"{origin} must be {_WORDS[setting.kind]}, not {reprlib.repr(text)}.") from None
