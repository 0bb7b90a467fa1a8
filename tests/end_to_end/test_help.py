"""Help texts, which must not import any command."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from kgqa.cli.groups import LazyGroup
from kgqa.cli.main import cli

HELP = """
import sys
from kgqa.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(*(name for name in sys.modules if name.startswith("kgqa.")))
"""


def lazy_commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all groups and commands below a group, importing each."""
    found = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None and command.name == name
        assert r"\b" not in (command.help or ""), "click reads a backspace character, not a backslash and a b"
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += lazy_commands(command, (*path, name))
    return found


def test_every_command_exists_under_its_name():
    paths = lazy_commands(cli)
    assert {("ask",), ("graph", "load"), ("virtuoso", "drop-names"), ("freebase", "clean"), ("eval", "run")} <= {*paths}
    assert cli.get_command(click.Context(cli), "nothing") is None


@pytest.mark.cli
@pytest.mark.parametrize("group", [(), ("graph",), ("virtuoso",), ("freebase",)])
def test_help_of_a_group_imports_no_command(group):
    done = subprocess.run([sys.executable, "-c", HELP, *group, "--help"], capture_output=True, text=True, check=True)
    text, modules = done.stdout.rsplit("\n", 2)[:2]
    assert "Commands:" in text
    command = cli
    for name in group:
        command = command.get_command(click.Context(command), name)
    assert isinstance(command, LazyGroup)
    for target, short_help in command.lazy_commands.values():
        assert target.partition(":")[0] not in {*modules.split()} - {"kgqa.cli.groups"} and short_help in " ".join(
            text.split()
        )
    assert "kgqa.graph.store" not in modules.split()
