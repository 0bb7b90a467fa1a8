"""Writes settings files: with a comment on every setting, or by changing one value of a file that exists."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from typing import Any, Literal

from kgqa.plugins import known_settings, plugin_names
from kgqa.settings.setting import Setting
from kgqa.storage.loading import parse_toml

WIDTH = 100


def commented_file(values: Mapping[str, Any], kind: Literal["folder", "user"], *, heading: str) -> str:
    """Return the text of a settings file with a comment on each setting.

    Args:
        values: values by key; settings without a value are commented out.
        kind: whose file it is; settings of this file are explained although they have no value.
        heading: first lines of the file, without comment signs.
    """
    wanted = [each for key, each in known_settings(values)[0].items() if key in values or each.explained == kind]
    lines = [f"# {line}".rstrip() for line in heading.splitlines()]
    for section, settings in groupby(wanted, key=lambda each: each.key.partition(".")[0]):
        lines += ["", f"[{section}]"]
        for setting in settings:
            lines += _lines(setting, values.get(setting.key))
    return "\n".join(lines) + "\n"


def _lines(setting: Setting, value: Any) -> Iterator[str]:
    text, default = setting.help, setting.default
    if setting.plugin and default is None:
        text += f": {', '.join(plugin_names(setting.plugin))}"
    text += "" if default is not None or "if not set" in text else "; not set by default"
    yield from textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
    name = setting.key.partition(".")[2]
    if value is None:
        shown = setting.example if default is None else default
        yield f"#{name} = {_toml(shown)}"
    else:
        yield f"{name} = {_toml(value)}"


def with_value(text: str, key: str, value: Any) -> str | None:
    """Return the text of a settings file with one value changed or added; everything else stays as it is.

    Returns:
        None if the value stands in a form that cannot be changed in one line.

    Raises:
        ValueError: the text is not TOML.
    """
    section, _, name = key.partition(".")
    wanted = parse_toml(text)
    if not isinstance(wanted.setdefault(section, {}), dict):
        return None
    wanted[section][name] = value
    heading, entry = rf"^\s*\[{section}\]\s*?(?:#.*)?\n", f"{name} = {_toml(value)}\n"
    text = f"{text}\n" if text and not text.endswith("\n") else text
    for place, before in (
        (rf"({heading}(?:(?!\s*\[).*\n)*?)\s*{name}\s*=.*\n", ""),
        (rf"({heading}(?:(?!\s*\[).*\n)*?)#{name} =.*\n", ""),
        (rf"({heading})", ""),
        (r"()\Z", f"\n[{section}]\n"),
    ):
        if found := re.search(place, text, re.MULTILINE):
            changed = text[: found.end(1)] + before + entry + text[found.end() :]
            with suppress(ValueError):
                if parse_toml(changed) == wanted:
                    return changed.lstrip("\n")
    return None


def _toml(value: Any) -> str:
    # what json writes for a text or a number is TOML, but for this sign
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
