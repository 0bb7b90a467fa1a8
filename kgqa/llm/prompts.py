"""Prompt files and their rendering.

A prompt is a template `prompts/<method>/<name>.j2`. The file `<name>.json` in the same folder describes the template's
values and the reply. The template has a block `system`, a block `user`, or both. Text in values is reduced to one line
of at most MAX_VALUE_CHARS characters, without control characters. The description of a value may say that its text can
be `long` (any length) or keeps its `lines`; the template's filter `fenced` marks where such a text begins and ends.
Templates run in a sandbox; a missing or unknown value is an error. A template may include the files of `_parts/`, for
example `{% include "_parts/paths.j2" %}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import FunctionLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kgqa.errors import SettingsError
from kgqa.llm.client import Image, Message, Role, Stage, TypedPrompt
from kgqa.llm.replies.reply import Reply
from kgqa.storage.loading import convert
from kgqa.text.words import clean, safe_text

T = TypeVar("T")
MAX_VALUE_CHARS = 4000
"""Most characters of a text in a value that is not `long`; longer texts are cut."""
MAX_FILE_BYTES = 200_000
_VALUE_KEYS = {"about", "long", "lines"}
_NAME = re.compile(r"[a-z0-9_-]+/[a-z0-9_-]+\Z")
_PART = re.compile(r"_parts/[a-z0-9_-]+\.j2\Z")


@dataclass(frozen=True)
class Template:
    """A prompt file and its description.

    Attributes:
        name: `method/name`.
        about: Purpose of the prompt.
        values: Meaning of each value that the template takes: a text, or a table with `about` and optionally `long`
            and `lines` (see the module).
        reply: Form of the reply, in words.
        example: Example values.
        source: Text of the template.
    """

    name: str
    about: str
    values: Mapping[str, str | Mapping[str, Any]]
    reply: str
    example: Mapping[str, Any]
    source: str


class Prompts:
    """The packaged prompts; a prompt in the user's folder replaces the packaged prompt with the same name.

    Args:
        folder: The user's folder with files `<method>/<name>.j2`; if the file `<name>.json` is missing there, the
            packaged description is used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"There is no folder {folder}.", "Set llm.prompts to a folder with prompt files.")
        self._compiled: dict[str, tuple[Template, Any]] = {}

    def names(self) -> list[str]:
        """Return the names of all prompts, `method/name`."""
        own = {f"{p.parent.name}/{p.stem}" for p in self._folder.glob("*/*.j2")} if self._folder else set()
        return sorted({name for name in own if _NAME.match(name)} | set(_packaged()))

    def get(self, name: str) -> Template:
        """Return a prompt file.

        Raises:
            SettingsError: The prompt does not exist, or its files cannot be read.
        """
        return self._load(name)[0]

    def prompt(
        self, name: str, stage: Stage, reply: Reply[T], /, *, images: Sequence[Image] = (), **values: Any
    ) -> TypedPrompt[T]:
        """Build the request for a prompt.

        Args:
            name: The name of the prompt.
            stage: The stage of the question that sends the prompt.
            reply: The form of the reply.
            images: Images that are shown before the text of the last message.
            values: The values of the template.

        Raises:
            SettingsError: As `render`.
        """
        *before, last = self.render(name, **values)
        if images:
            last = Message(last.role, (*images, last.text))
        return TypedPrompt((*before, last), stage, choices=reply.choices, schema=reply.schema, reply=reply)

    def render(self, name: str, /, **values: Any) -> tuple[Message, ...]:
        """Render the messages of a prompt.

        Raises:
            SettingsError: The prompt does not exist, a value is missing or unknown, or the template fails.
        """
        template, compiled = self._load(name)
        if wrong := set(values) ^ set(template.values):
            raise SettingsError(
                f"The prompt {name} takes the values {sorted(template.values)}; missing or unknown: {sorted(wrong)}."
            )
        given = {key: _plain(value, _clean_text(template.values[key])) for key, value in values.items()}
        messages = []
        role: Role
        for role in ("system", "user"):
            if role in compiled.blocks:
                try:
                    text = "".join(compiled.blocks[role](compiled.new_context(given))).strip()
                except Exception as error:  # a template can raise any exception, even RecursionError
                    raise SettingsError(f"The prompt {name} cannot be rendered: {error}") from error
                if text:
                    messages.append(Message(role, text))
        if not messages:
            raise SettingsError(f"The prompt {name} has neither a block `system` nor a block `user`.")
        return tuple(messages)

    def _load(self, name: str) -> tuple[Template, Any]:
        if name not in self._compiled:
            if not _NAME.match(name) or name not in self.names():
                raise SettingsError(f"There is no prompt named {name}. Available prompts: {', '.join(self.names())}.")
            source = self._read(f"{name}.j2")
            try:
                template = _described(name, json.loads(self._read(f"{name}.json")), source)
                compiled = _environment().from_string(source)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, TemplateError) as error:
                raise SettingsError(f"The files of the prompt {name} are invalid: {error}") from error
            self._compiled[name] = (template, compiled)
        return self._compiled[name]

    def _read(self, file: str) -> str:
        try:
            if self._folder is not None and (own := self._folder / file).is_file():
                if own.stat().st_size > MAX_FILE_BYTES:
                    raise SettingsError(f"{own} is too large for a prompt: more than {MAX_FILE_BYTES:,} bytes.")
                return own.read_text(encoding="utf-8")
            return files("kgqa.prompts").joinpath(*file.split("/")).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"Cannot read the prompt file {file}: {error}") from error


def _described(name: str, data: Any, source: str) -> Template:
    template: Template = convert({"reply": "", "example": {}, **data, "name": name, "source": source}, Template)
    if "images" in template.values:
        raise ValueError("a value cannot be called images")
    for form in template.values.values():
        if not isinstance(form, str) and not (isinstance(form["about"], str) and set(form) <= _VALUE_KEYS):
            raise TypeError("a value is described by a text, or by a table with about, long and lines")
    return template


@lru_cache(1)
def _packaged() -> tuple[str, ...]:
    folders = [each for each in files("kgqa.prompts").iterdir() if each.is_dir() and not each.name.startswith("_")]
    names = (f"{folder.name}/{file.name}" for folder in folders for file in folder.iterdir())
    return tuple(sorted(name.removesuffix(".j2") for name in names if name.endswith(".j2")))


@lru_cache(1)
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_part),
    )
    environment.filters["fenced"] = fenced
    return environment


def _part(name: str) -> str | None:
    """Return a text that several templates include; None if there is no such file."""
    file = files("kgqa.prompts").joinpath(*name.split("/"))
    return file.read_text(encoding="utf-8") if _PART.match(name) and file.is_file() else None


def fenced(text: str) -> str:
    """Put a text between two lines of backticks; the text contains no such line, so it cannot end the fence."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _clean_text(form: str | Mapping[str, Any]) -> Callable[[str], str]:
    """Return the function that cleans the texts in a value with this description."""
    if isinstance(form, str) or not (form.get("long") or form.get("lines")):
        return _line
    cleaned = _lines if form.get("lines") else clean
    return cleaned if form.get("long") else lambda text: _cut(cleaned(text))


def _lines(text: str) -> str:
    return safe_text("\n".join(text.splitlines()))


def _plain(value: Any, cleaned: Callable[[str], str]) -> Any:
    """Clean all text in a value, including text inside lists and tables; numbers and None stay as they are."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each, cleaned) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(each, cleaned) for each in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"a prompt takes text, numbers and lists of them, not {type(value).__name__}")


@lru_cache(8192)
def _line(value: str) -> str:
    return _cut(clean(value))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
