"""The form of a reply: its type, from which a JSON schema and a reader follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

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
        read: Converts the JSON value of the field, instead of the rules of its type; raises ValueError if it cannot.
    """

    name: str = ""
    keys: tuple[str, ...] = ()
    chars: int = MAX_CHARS
    lines: bool = False
    optional: bool = False
    bare: bool = False
    read: Callable[[Any], Any] | None = None


Prose = Annotated[str, Form(chars=20_000, lines=True)]
"""A text of several lines."""


def read_numbers(value: Any) -> tuple[int, ...]:
    """Return the numbers in a list; a ValueError if it has anything else, which must not be left out."""
    listed = [] if value is None else value
    if not isinstance(listed, list):
        raise ValueError("no list")
    return tuple(_number(each, int) for each in listed)


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


def reply_of(kind: type[T]) -> Reply[T]:
    """Return the form of a JSON object with the fields of a frozen dataclass.

    The last object of a reply that has all fields without a default is read. Keys are compared without case, and
    `_`, `-` and spaces are the same; those of the outermost object may stand at any depth. Texts are cleaned; numbers
    may be texts and texts numbers; a single value is a list of one; a text in place of an object is its first field;
    items of a list that do not fit are left out.
    """
    form: Any = kind
    schema = schema_of(form)
    return Reply(lambda text: _read(kind, schema, text), schema)


@lru_cache
def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type: text, number, Literal, tuple, or dataclass."""
    if get_origin(kind) is Annotated:
        return schema_of(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": schema_of(get_args(kind)[0])}
    if not is_dataclass(kind):
        return {"type": {str: "string", int: "integer", float: "number"}[kind]}
    hints = get_type_hints(kind, include_extras=True)
    return {
        "type": "object",
        "properties": {_form(hint).name or name: schema_of(hint) for name, hint in hints.items()},
        "required": [_form(hint).name or name for name, hint in hints.items() if not _form(hint).optional],
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
    return {"string": "...", "integer": 1, "number": 0.5}[schema["type"]]


def _read(kind: type[T], schema: Mapping[str, Any], text: str) -> Reading[T]:
    for found in reversed(json_values(last_part(text))):
        left_out: list[Any] = []
        try:
            value = found.value
            if isinstance(value, list):
                hints = get_type_hints(kind, include_extras=True).items()
                value = {name: value for name, hint in hints if _form(hint).bare}
            return Reading(_object(value, kind, left_out, inner=False), found.repaired or bool(left_out))
        except ValueError:
            continue
    return Reading(None, problem=f"It is not of the form {json.dumps(example_of(schema))}.")


def _form(hint: Any) -> Form:
    forms = [each for each in get_args(hint)[1:] if isinstance(each, Form)] if get_origin(hint) is Annotated else []
    return replace(forms[-1], chars=forms[0].chars, lines=forms[0].lines) if forms else Form()


def _object(value: Any, kind: type[T], left_out: list[Any], *, inner: bool = True) -> T:
    hints = get_type_hints(kind, include_extras=True)
    keys = [_form(hint).name or name for name, hint in hints.items()]
    if isinstance(value, list) and inner:
        value = dict(zip(keys, value, strict=True))
    elif not isinstance(value, dict) and inner:
        value = {keys[0]: value}
    direct = {key_name(key): each for key, each in value.items()} if inner else {}
    found: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        hint = hints[field.name]
        names = (key_name(_form(hint).name or field.name), *_form(hint).keys)
        if inner:
            name = next((name for name in names if name in direct), None)
            there, given = name is not None, direct.get(name or "")
        else:
            there, given = find_key(value, names)
        try:
            if not there:
                raise ValueError(f"no {field.name}")
            found[field.name] = _value(given, hint, left_out)
        except ValueError:
            if field.default is MISSING:
                raise
            if given is not None:
                left_out.append(given)
    return kind(**found)


def _value(value: Any, hint: Any, left_out: list[Any]) -> Any:
    """Convert a JSON value to a type; raise ValueError if it does not fit."""
    form = _form(hint)
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if form.read is not None:
        return form.read(value)
    if get_origin(kind) is tuple:
        items, listed = [], [] if value in (None, "") else value if isinstance(value, list) else [value]
        for item in listed[:MAX_ITEMS]:
            try:
                items.append(_value(item, get_args(kind)[0], left_out))
            except ValueError:
                left_out.append(item)
        left_out += listed[MAX_ITEMS:]
        return tuple(items)
    if is_dataclass(kind):
        return _object(value, kind, left_out)  # type: ignore[arg-type]
    if get_origin(kind) is Literal:
        word = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value).strip(" .*").casefold()
        for option in get_args(kind):
            if word in (option.casefold(), {"yes": "true", "no": "false"}.get(option.casefold())):
                return option
        raise ValueError("none of the options")
    return _number(value, kind) if kind is not str else _text(value, form)


def _text(value: Any, form: Form) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("no text")
    text = str(value)[: 4 * form.chars]
    text = (safe_text(text) if form.lines else clean(text)).strip()[: form.chars]
    if not text:
        raise ValueError("an empty text")
    return text


def _number(value: Any, kind: Any) -> Any:
    text = str(value).strip(" []#")[:30]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not text.isascii():
        raise ValueError("no number")
    if kind is int and not text.removeprefix("-").isdigit():
        raise ValueError("no whole number")
    return kind(text)
