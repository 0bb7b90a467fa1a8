"""The form of a reply: its type, from which a JSON schema and a reader follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from kgqa.llm.replies.json_values import Reading, find_key, json_values, key_name, last_part
from kgqa.text.words import clean, safe_text

R = TypeVar("R")
T = TypeVar("T")
MAX_ITEMS = 200
"""Most items of a list that are read."""
MAX_CHARS = 500
"""Most characters of a text that is kept, if its `Form` says nothing else."""


@dataclass(frozen=True)
class Form:
    """How a field of a reply is read, as metadata of its annotation.

    Attributes:
        name: The key in the schema, if it is not the name of the field.
        keys: Further keys under which the field is accepted, in lower case with spaces between words.
        chars: Most characters that are kept of a text; longer texts are cut.
        lines: Whether a text keeps its line breaks.
        optional: Whether the schema allows a reply without the field.
        bare: Whether a reply that is only a list is the value of the field.
        strict: Whether a value or an item that does not fit makes the object unusable, instead of being left out.
        read: Converts the JSON value of the field, instead of the rules of its type; raises ValueError if it cannot.
    """

    name: str = ""
    keys: tuple[str, ...] = ()
    chars: int = MAX_CHARS
    lines: bool = False
    optional: bool = False
    bare: bool = False
    strict: bool = False
    read: Callable[[Any], Any] | None = None


Prose = Annotated[str, Form(chars=20_000, lines=True)]
"""A text of several lines."""


@dataclass(frozen=True)
class Reply(Generic[T]):
    """The form of a reply.

    Attributes:
        read: Extracts the value from the text of a reply; never raises.
        schema: JSON schema that a server should hold the model to; None for free text.
        choices: The possible replies, if there are only a few.
    """

    read: Callable[[str], Reading[T]]
    schema: Mapping[str, Any] | None = None
    choices: tuple[str, ...] = ()

    def then(self, check: Callable[[T], R]) -> Reply[R]:
        """Return the form whose value is `check(value)`; a ValueError says in a sentence why a reply is unusable."""

        def read(text: str) -> Reading[R]:
            reading = self.read(text)
            if reading.value is None:
                return Reading(None, problem=reading.problem)
            try:
                return Reading(check(reading.value), reading.repaired)
            except ValueError as error:
                return Reading(None, problem=str(error))

        return Reply(read, self.schema, self.choices)


class _Field(NamedTuple):
    """A field of a dataclass. `key`: its name in the schema. `keys`: all names, as `key_name` writes them."""

    name: str
    key: str
    keys: tuple[str, ...]
    hint: Any
    form: Form
    default: Any


@lru_cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for each in fields(kind):
        hint = hints[each.name]
        form, _ = _form(hint)
        key = form.name or each.name
        found.append(_Field(each.name, key, (key_name(key), *form.keys), hint, form, each.default))
    return tuple(found)


def _form(hint: Any) -> tuple[Form, Any]:
    """Return the form and the bare type of an annotation; the innermost form says how long a text is."""
    if get_origin(hint) is not Annotated:
        return Form(), hint
    kind, *forms = get_args(hint)
    return replace(forms[-1], chars=forms[0].chars, lines=forms[0].lines), kind


def reply_of(kind: type[T], schema: Mapping[str, Any] | None = None) -> Reply[T]:
    """Return the form of a JSON object with the fields of a frozen dataclass.

    The last object of a reply that fits is read: it has all fields without a default. Keys are compared without case,
    and `_`, `-` and spaces are the same. The keys of the outermost object may stand at any depth, those of an inner one
    only in this object. Texts are cleaned; numbers may be texts and texts numbers; a single value is a list of one; a
    text in place of an object is its first field; items of a list that do not fit are left out. If a field is strict,
    the last object with the first field counts, even if it does not fit. `schema`: that of a prompt that asks for some
    of the fields.
    """
    form: Any = kind
    asked, known = schema or schema_of(form), _fields(form)
    is_strict = any(each.form.strict for each in known)
    problem = f"It is not of the form {json.dumps(example_of(asked))}."

    def read(text: str) -> Reading[T]:
        for found in reversed(json_values(last_part(text))):
            left_out: list[Any] = []
            value = found.value
            if isinstance(value, list):
                value = {each.key: value for each in known if each.form.bare}
            named = {each.name: find_key(value, each.keys) for each in known}
            given = {name: inner for name, (there, inner) in named.items() if there}
            try:
                return Reading(_object(form, given, left_out), found.repaired or bool(left_out))
            except ValueError:
                if is_strict and find_key(found.value, known[0].keys)[0]:
                    break
        return Reading(None, problem=problem)

    return Reply(read, asked)


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type: text, number, Literal, tuple, or dataclass."""
    _, kind = _form(kind)
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": schema_of(get_args(kind)[0])}
    if name := {str: "string", int: "integer", float: "number", bool: "boolean"}.get(kind):
        return {"type": name}
    return {
        "type": "object",
        "properties": {each.key: schema_of(each.hint) for each in _fields(kind)},
        "required": [each.key for each in _fields(kind) if not each.form.optional],
        "additionalProperties": False,
    }


def schema_like(example: Any, optional: Container[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of values such as an example; `optional`: the keys that an object may lack."""
    if isinstance(example, list):
        return {"type": "array", "items": schema_like(example[0])}
    if not isinstance(example, dict):
        return {"type": {str: "string", int: "integer"}[type(example)]}
    return {
        "type": "object",
        "properties": {name: schema_like(value) for name, value in example.items()},
        "required": [name for name in example if name not in optional],
        "additionalProperties": False,
    }


def example_of(schema: Mapping[str, Any]) -> Any:
    """Return a JSON value that shows a schema, for messages."""
    if "enum" in schema:
        return schema["enum"][0]
    if "items" in schema:
        return [example_of(schema["items"])]
    if "properties" in schema:
        return {name: example_of(each) for name, each in schema["properties"].items()}
    return {"string": "...", "integer": 1, "number": 0.5, "boolean": True}[schema["type"]]


def _object(kind: Any, given: Mapping[str, Any], left_out: list[Any]) -> Any:
    """Build a dataclass from JSON values by the names of its fields; raise ValueError if it cannot be built."""
    found = {}
    for each in _fields(kind):
        value = given.get(each.name)
        try:
            if each.name in given:
                found[each.name] = _value(value, each.hint, left_out)
            elif each.default is MISSING:
                raise ValueError(f"no {each.key}")
        except ValueError:
            if each.default is MISSING or (each.form.strict and value is not None):
                raise
            left_out += [] if value is None else [value]
    return kind(**found)


def _given(kind: Any, value: Any) -> dict[str, Any]:
    """Return the values of an inner object by the names of its fields."""
    known = _fields(kind)
    if isinstance(value, list):
        return dict(zip((each.name for each in known), value, strict=True))
    if not isinstance(value, dict):
        return {known[0].name: value}
    direct = {key_name(key): inner for key, inner in value.items()}
    return {each.name: direct[key] for each in known for key in reversed(each.keys) if key in direct}


def _value(value: Any, hint: Any, left_out: list[Any]) -> Any:
    """Convert a JSON value to a type; raise ValueError if it does not fit."""
    form, kind = _form(hint)
    if form.read is not None:
        return form.read(value)
    if get_origin(kind) is tuple:
        return tuple(_items(value, get_args(kind)[0], form, left_out))
    if is_dataclass(kind):
        return _object(kind, _given(kind, value), left_out)
    if not isinstance(value, str | int | float) or (isinstance(value, bool) and kind in (str, int, float)):
        raise ValueError("neither a text nor a number")
    text = str(value)
    if kind is str:
        return _text(text, form)
    if kind in (int, float):
        return _number(text.strip(" []#*")[:30], kind)
    word = text.strip(" .*").casefold()
    if kind is bool:
        return word in ("true", "yes", "1")
    for option in get_args(kind):
        if word in (option.casefold(), {"yes": "true", "no": "false"}.get(option.casefold())):
            return option
    raise ValueError("none of the options")


def _items(value: Any, hint: Any, form: Form, left_out: list[Any]) -> Iterator[Any]:
    is_empty = value in (None, "", "none", "None") or (form.strict and (value is False or value == {}))
    listed = [] if is_empty else value if isinstance(value, list) else [value]
    for item in listed[:MAX_ITEMS]:
        try:
            yield _value(item, hint, left_out)
        except ValueError:
            if form.strict:
                raise
            left_out.append(item)
    left_out += listed[MAX_ITEMS:]


def _text(text: str, form: Form) -> str:
    text = text[: 4 * form.chars]
    text = (safe_text(text) if form.lines else clean(text)).strip()[: form.chars]
    if not text:
        raise ValueError("an empty text")
    return text


def _number(text: str, kind: Any) -> Any:
    if not text.isascii() or (kind is int and not text.removeprefix("-").isdigit()):
        raise ValueError("no number")
    return kind(text)
