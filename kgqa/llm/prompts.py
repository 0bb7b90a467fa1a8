"""Prompt files and their rendering.

A prompt is a template `prompts/<method>/<name>.j2`. The file `<name>.json` in the same folder describes the template's
values and the reply. The template has a block `system`, a block `user`, or both. Text in values is reduced to one line
of at most MAX_VALUE_CHARS characters, without control characters. The description of a value may say that its text can
be `long` (any length) or keeps its `lines`; the template's filter `fenced` marks where such a text begins and ends.
Templates run in a sandbox; a missing or unknown value is an error. A template may include the files of `_parts/`, for
example `{% include "_parts/paths.j2" %}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kgqa.errors import SettingsError
from kgqa.llm.client import Image, Message, Role, Stage, TypedPrompt
from kgqa.llm.replies.reply import Reply
from kgqa.storage.loading import convert, parse_json
from kgqa.text.words import clean, safe_text

T = TypeVar("T")
MAX_VALUE_CHARS = 4000
"""Most characters of a text in a value that is not `long`; longer texts are cut."""
MAX_FILE_CHARS = 200_000
_NAME = re.compile(r"(?!_)[a-z0-9_-]+/[a-z0-9_-]+")


@dataclass(frozen=True)
class PromptTemplate:
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


class _ValueForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the texts of a value are cleaned; see the module."""

    about: str
    long: bool = False
    lines: bool = False


class Prompts:
    """The packaged prompts; a prompt in the user's folder replaces the packaged prompt with the same name.

    Args:
        folder: The user's folder with files `<method>/<name>.j2`; if the file `<name>.json` is missing there, the
            packaged description is used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"There is no folder {folder}.", "Set llm.prompts to a folder with prompt files.")
        self._folders = [*([folder] if folder else []), Path(str(files("kgqa.prompts")))]
        self._loader = FileSystemLoader(self._folders)
        self._environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            loader=self._loader,
        )
        self._environment.filters["fenced"] = fenced
        self._loaded: dict[str, tuple[PromptTemplate, dict[str, _ValueForm], Any]] = {}

    def names(self) -> list[str]:
        """Return the names of all prompts, `method/name`."""
        found = {f"{file.parent.name}/{file.stem}" for folder in self._folders for file in folder.glob("*/*.j2")}
        return sorted(filter(_NAME.fullmatch, found))

    def get(self, name: str) -> PromptTemplate:
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
        template, forms, compiled = self._load(name)
        if wrong := set(values) ^ set(template.values):
            raise SettingsError(
                f"The prompt {name} takes the values {sorted(template.values)}; missing or unknown: {sorted(wrong)}."
            )
        given = {key: _cleaned(value, forms[key]) for key, value in values.items()}
        roles: tuple[Role, ...] = ("system", "user")
        blocks = {role: compiled.blocks[role] for role in roles if role in compiled.blocks}
        try:
            texts = {role: "".join(block(compiled.new_context(given))).strip() for role, block in blocks.items()}
        except Exception as error:  # a template can raise any exception, even RecursionError
            raise SettingsError(f"The prompt {name} cannot be rendered: {error}") from error
        messages = tuple(Message(role, text) for role, text in texts.items() if text)
        if not messages:
            raise SettingsError(f"The prompt {name} has neither a block `system` nor a block `user`.")
        return messages

    def _load(self, name: str) -> tuple[PromptTemplate, dict[str, _ValueForm], Any]:
        """Return a prompt file, the forms of its values, and its compiled template."""
        if name not in self._loaded:
            if name not in self.names():
                raise SettingsError(f"There is no prompt named {name}. Available prompts: {', '.join(self.names())}.")
            try:
                source, description = (self._source(f"{name}.{kind}") for kind in ("j2", "json"))
                if len(source + description) > MAX_FILE_CHARS:
                    raise ValueError(f"they are too large for a prompt: more than {MAX_FILE_CHARS:,} characters")
                data = {"reply": "", "example": {}, **parse_json(description, dict[str, Any])}
                template: PromptTemplate = convert({**data, "name": name, "source": source}, PromptTemplate)
                forms = {
                    key: _ValueForm(form) if isinstance(form, str) else convert(form, _ValueForm)
                    for key, form in template.values.items()
                }
                compiled = self._environment.get_template(f"{name}.j2")
            except (OSError, ValueError, RecursionError, TemplateError) as error:
                raise SettingsError(f"The files of the prompt {name} are invalid: {error}") from error
            self._loaded[name] = template, forms, compiled
        return self._loaded[name]

    def _source(self, file: str) -> str:
        return self._loader.get_source(self._environment, file)[0]


def fenced(text: str) -> str:
    """Put a text between two lines of backticks; the text contains no such line, so it cannot end the fence."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _cleaned(value: Any, form: _ValueForm) -> Any:
    """Clean all text in a value, including text inside lists and tables; numbers and None stay as they are."""
    if isinstance(value, str):
        text = safe_text("\n".join(value.splitlines())) if form.lines else clean(value)
        return text if form.long or len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
    if isinstance(value, Mapping):
        return {str(key): _cleaned(each, form) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_cleaned(each, form) for each in value]
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"a prompt takes text, numbers and lists of them, not {type(value).__name__}")
    return value
