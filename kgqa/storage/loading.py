"""Reads JSON and TOML into typed classes: the border at which files and wire forms are checked, once.

A class says what is valid by its types: `Annotated[int, Meta(ge=0)]`, a union of structs that `kind` tells apart.
"""

from __future__ import annotations

import json
import re
import stat
import tomllib
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from kgqa.errors import KgqaError
from kgqa.text.hints import Hint

MAX_BYTES = 16 << 20
MAX_TOML_BYTES = 1_000_000
MAX_DEPTH = 100
"""Maximum nesting of lists and objects. Files written by kgqa have about a dozen levels."""
MAX_KEY_PARTS = 16
MAX_NUMBER = 10**15

Count = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Amount = Annotated[float, Meta(ge=0, le=MAX_NUMBER)]
Share = Annotated[float, Meta(ge=0, le=1)]

T = TypeVar("T")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# the memory that `tomllib` needs grows with the square of the number of parts in a dotted key
_LONG_KEY = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}")


def load(file: Path, kind: type[T], *, error: type[KgqaError], hint: Hint | str = "", limit: int = MAX_BYTES) -> T:
    """Read a JSON file, or a TOML file by its ending, into a `kind`.

    Args:
        error: the class of the error; `hint`: its hint.
        limit: the largest file in bytes.

    Raises:
        KgqaError: of the class `error`: the file is missing, too large, damaged or does not fit; the message names the
            file and the field.
    """
    toml = file.suffix == ".toml"
    try:
        data = read_bytes(file, min(limit, MAX_TOML_BYTES) if toml else limit)
        found: T = parse_toml(data, kind) if toml else parse_json(data, kind)
        return found
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise error(f"{_printable(str(file))} cannot be read: {why}.", hint) from problem


def read_bytes(file: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a file. Raises OSError, or ValueError if it is not a file, or larger than `limit` bytes."""
    if not stat.S_ISREG(file.stat().st_mode):  # opening a pipe would wait for a writer
        raise ValueError("it is not an ordinary file")
    with open(file, "rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it is larger than {limit:,} bytes")
    return data


def parse_json(data: bytes | str, kind: Any = Any) -> Any:
    """Parse JSON in UTF-8 into a `kind`.

    Raises:
        ValueError: it is not JSON, is nested deeper than `MAX_DEPTH`, or does not fit; the message names the field.
    """
    # not `msgspec.json`, which does not read the unpaired surrogates that models and file names may contain
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    try:
        found = json.loads(data.decode("utf-8-sig", "surrogatepass"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _is_deep(data) and _is_deep(_STRING.sub(b"", data)):
        raise ValueError("it is nested too deeply")
    return convert(found, kind)


def parse_toml(data: bytes | str, kind: Any = Any) -> Any:
    """Parse TOML into a `kind`. Raises ValueError for the same reasons as `parse_json`."""
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    if len(text) > MAX_TOML_BYTES:
        raise ValueError(f"it is larger than {MAX_TOML_BYTES:,} bytes")
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
    try:
        return convert(tomllib.loads(text), kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def convert(data: Any, kind: Any) -> Any:
    """Build a `kind` from JSON data. Raises ValueError, with the name of the field, if the data do not fit."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as problem:
        what, _, field = str(problem).partition(" - at `$")
        field = field.rstrip("`").lstrip(".")
        raise ValueError(_printable(f"{field}: {what}" if field else what)[:300]) from None
    except UnicodeEncodeError:
        raise ValueError("it contains an unpaired surrogate") from None


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _is_deep(data: bytes) -> bool:
    """Return whether brackets, those in strings too, are nested deeper than `MAX_DEPTH` or not closed."""
    brackets = data.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)
