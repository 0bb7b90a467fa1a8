"""Help texts, which must not import any command."""

from __future__ import annotations

import re
import shlex
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
    assert {("ask",), ("graph", "load"), ("virtuoso", "index"), ("freebase", "clean"), ("eval", "run")} <= {*paths}
    assert cli.get_command(click.Context(cli), "nothing") is None


@pytest.mark.cli
@pytest.mark.parametrize("group", [(), ("graph",), ("virtuoso",), ("freebase",)])
def test_help_of_a_group_imports_no_command(group):
    done = subprocess.run([sys.executable, "-c", HELP, *group, "--help"], capture_output=True, text=True, check=True)
    text, modules = done.stdout.rsplit("\n", 2)[:2]
    assert ("Commands:" if group else "Ask:") in text
    command = cli
    for name in group:
        command = command.get_command(click.Context(command), name)
    assert isinstance(command, LazyGroup)
    for target, short_help in command.lazy_commands.values():
        assert target.partition(":")[0] not in {*modules.split()} - {"kgqa.cli.groups"} and short_help in " ".join(
            text.split()
        )
    assert "kgqa.graph.store" not in modules.split()


def test_many_options_stand_under_headings(kgqa):
    grouped = 0
    for path in lazy_commands(cli):
        command: click.Command = cli
        for name in path:
            command = command.get_command(click.Context(command), name)
        context = click.Context(command, help_option_names=["-h", "--help"])
        options = [each for each in command.get_params(context) if isinstance(each, click.Option) and not each.hidden]
        if len(options) <= 16:
            continue
        grouped += 1
        text = kgqa(*path, "--help").out
        sections = dict(re.findall(r"^(\w[\w ]*):\n((?:  .*\n|\n)+)", text, re.MULTILINE))
        listed = [re.findall(r"^  (-.*?)(?:  |$)", body, re.MULTILINE) for body in sections.values()]
        assert "Options" not in sections and list(sections)[-1] == "Output", path
        assert sum(map(len, listed)) == len(options) and max(map(len, listed)) <= 20, path
    assert grouped >= 8


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("aks",), "Did you mean: kgqa ask?"),
        (("graph", "lod"), "Did you mean: kgqa graph load?"),
        (("config", "shwo"), "Did you mean: kgqa config show?"),
        (("search", "x"), "Did you mean: kgqa graph search or kgqa corpus search?"),
        (("Who directed the film Parasite?",), 'kgqa ask "Who directed the film Parasite?"'),
        (("who", "directed", "Parasite"), 'kgqa ask "who directed Parasite"'),
        (("costs $5?",), "kgqa ask 'costs $5?'"),
        (("zzz",), "List the commands: kgqa --help"),
        (("ask", "x", "--topc", "y"), "--topic"),
    ],
)
def test_a_mistyped_command_or_a_question_without_ask(kgqa, arguments, meant):
    done = kgqa(*arguments)
    assert done.returncode == 2 and meant in done.err


def examples(command: click.Command, needs: tuple[str, ...] = ("mygraph/", "corpus/", "--dataset", "...")) -> list[str]:
    """Return the examples in the help of a command that need nothing but the demo graph."""
    lines = [line.strip() for line in (command.help or "").splitlines()]
    return [line for line in lines if line.startswith("kgqa ask ") and not any(each in line for each in needs)]


@pytest.mark.parametrize("example", examples(cli) + examples(cli.get_command(click.Context(cli), "ask")))
def test_examples_of_help_texts_are_answered_on_the_demo_graph(kgqa, example):
    done = kgqa(*shlex.split(example)[1:])
    assert done.returncode == 0 and done.out, done.err
