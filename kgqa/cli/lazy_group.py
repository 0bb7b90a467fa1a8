"""A group of commands that are imported when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands are the `command` of modules, imported on use.

    Args:
        modules: the module of each command by its name, in the order of the help text.
    """

    def __init__(self, *arguments: Any, modules: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._modules)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._modules:
            return None
        found: click.Command = import_module(self._modules[name]).command
        return found
