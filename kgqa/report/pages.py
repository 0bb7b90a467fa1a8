"""Renders the pages of a report from templates/*.j2, in Jinja's sandbox, with all values escaped.

Each page contains its style sheet and its script. The page's Content-Security-Policy allows only these two, by their
hashes. Therefore a browser runs and fetches nothing else, even if a value is not escaped correctly.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, ClassVar

from jinja2 import BaseLoader, StrictUndefined, TemplateNotFound
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup, escape

from kgqa.storage.answer_json import json_text
from kgqa.text.words import clean, counted, safe_text

LONGEST = 2000
"""Maximum number of characters of one text on a page, except queries and responses."""
LONGEST_QUERY = 200_000
_NAME = re.compile(r"[a-z_]+\.(?:j2|css|js)\Z")


def render(name: str, *scripts: str, **values: Any) -> Iterator[str]:
    """Render a page in pieces of HTML; a large page is never in memory as a whole.

    Args:
        name: name of the template, such as `question` for templates/question.j2.
        scripts: names of the scripts to include, such as `question`.
    """
    style, code = read("report.css"), "".join(read(f"{script}.js") for script in scripts)
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(code)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template(f"{name}.j2")
        .generate(policy=policy, style=Markup(style), script=Markup(code), **values)
    )


def fragment(name: str, **values: Any) -> str:
    """Render a template that is a part of a page of another program, such as a notebook."""
    return _environment().get_template(f"{name}.j2").render(**values)


def data_block(data: Any) -> Markup:
    """Convert data to JSON for a `<script type="application/json">`, escaped so that it cannot end the element."""
    text = json_text(data)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


def shown(text: str) -> str:
    """Return a text as one line, without control and direction characters, cut at the maximum length for a page."""
    return _shown(text[: LONGEST + 1])


@lru_cache(16384)
def _shown(text: str) -> str:
    found = clean(text)
    return found if len(found) <= LONGEST else found[: LONGEST - 1] + "…"


def exact(text: str, longest: int | None = LONGEST_QUERY) -> str:
    r"""Return a query with its line breaks; control characters are written as the SPARQL escape `\uXXXX`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")[:longest]
    return "".join(char if _harmless(char) else _escaped(char) for char in text)


def _visible(text: str) -> str:
    """Return a text with its blanks and line breaks; control and direction characters become blanks."""
    return "".join(char if _harmless(char) else " " for char in text.replace("\r\n", "\n"))


def _harmless(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04X}" if ord(char) < 0x10000 else f"\\U{ord(char):08X}"


@lru_cache
def read(name: str) -> str:
    """Read a file of the folder templates/."""
    if not _NAME.match(name):
        raise ValueError(name)
    return files("kgqa.report").joinpath("templates", name).read_text(encoding="utf-8")


@lru_cache
def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class _Loader(BaseLoader):
    def get_source(self, environment: Any, template: str) -> tuple[str, str | None, Any]:
        try:
            return read(template), template, lambda: True
        except (OSError, ValueError) as error:
            raise TemplateNotFound(template) from error


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox; whether an attribute is safe depends only on its name and the object's type, and is kept."""

    _safe: ClassVar[dict[tuple[type, str], bool]] = {}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        key = type(obj), attr
        if key not in self._safe:
            self._safe[key] = super().is_safe_attribute(obj, attr, value)
        return self._safe[key]


def _finalize(value: Any) -> Any:
    """Remove control characters from a value before it is inserted into a page."""
    if isinstance(value, Markup) or value is None:
        return "" if value is None else value
    return shown(value) if isinstance(value, str) else value


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    environment = _Sandbox(
        loader=_Loader(),
        undefined=StrictUndefined,
        finalize=_finalize,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["exact"] = lambda text: Markup(escape(exact(text)))
    environment.filters["lines"] = lambda text: Markup(escape(safe_text(text[:LONGEST_QUERY])))
    environment.filters["verbatim"] = lambda text: Markup(escape(_visible(text[:LONGEST_QUERY])))
    environment.filters["data"] = data_block
    environment.filters["amount"] = amount
    environment.filters["counted"] = counted
    return environment


def amount(value: float | None, unit: str = "") -> str:
    """Format a number: integers with commas, other numbers with three digits, None as `–`."""
    if value is None:
        return "–"
    if value == int(value) and abs(value) < 1e15:
        text = f"{int(value):,}"
    else:
        text = f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()
