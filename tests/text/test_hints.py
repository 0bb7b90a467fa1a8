"""Hints in the words of the command line, of Python and of the service."""

from __future__ import annotations

import ast
import pickle
import re

import click
import pytest

from kgqa import errors
from kgqa.cli.main import cli
from kgqa.cli.options import repeat_graph
from kgqa.errors import KgqaError, LoginRefused, StoreTimeout
from kgqa.net.threads import ThreadPool
from kgqa.text.hints import (
    AGENT,
    CHAT,
    PAGE,
    Command,
    Hint,
    Install,
    Option,
    command_line_wording,
    repeat_options,
    shown_at,
)
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("hint", "command_line", "python", "page"),
    [
        (Option("timeout"), "--timeout", "timeout=", "--timeout of kgqa serve"),
        (Option("accept", 0.05), "--accept 0.05", "accept=0.05", "--accept 0.05 of kgqa serve"),
        (Option("restart", True), "--restart", "restart=True", None),
        (Option("graph-iri", "IRI"), "--graph-iri IRI", 'graph_iri="IRI"', None),
        (Option("topic", "ID"), "--topic ID", 'topics="ID"', "give its id as a topic"),
        (Command("graph search", "a, b"), "kgqa graph search 'a, b'", 'graph.search("a, b")', "search for it"),
        (Command("ask", topic="ID"), "kgqa ask --topic ID", 'kgqa.ask(question, topics="ID")', None),
        (
            Command("graph load", "FILE", restart=True, into="g/"),
            "kgqa graph load FILE --restart --into g/",
            'kgqa.load_into_folder(["FILE"], restart=True, folder="g/")',
            "kgqa graph load FILE --restart --into g/",
        ),
        (
            Command("graph load", "FILE", into="http://h:1/sparql"),
            "kgqa graph load FILE --into http://h:1/sparql",
            "kgqa graph load FILE --into http://h:1/sparql",
            None,
        ),
        (Command("virtuoso start", row_cap=9), *("kgqa virtuoso start --row-cap 9",) * 2, None),
        (Hint("Allow more: ", Option("max-calls", 8)), "Allow more: --max-calls 8", "Allow more: max_calls=8", None),
        (Hint("See --help", python="See help(kgqa)", client="Ask"), "See --help", "See help(kgqa)", "Ask"),
    ],
)
def test_a_hint_is_worded_for_its_place(hint, command_line, python, page):
    assert str(hint) == python
    with command_line_wording():
        assert str(hint) == command_line
        with shown_at(PAGE):
            assert page is None or str(hint) == page
            workers = ThreadPool(1)
            assert page is None or workers.submit(lambda: str(hint)).result(10) == page
            workers.close()


def test_agents_and_chats_are_told_what_they_can_do():
    hint = Hint("First ", Command("graph search", "NAME"), ", then ", Option("topic", "ID"))
    with shown_at(AGENT):
        assert str(Install("openai")) == "pip install 'kgqa[openai]'"  # not where kgqa is installed
        assert str(hint) == "First call search, then pass its id in topics"
    with shown_at(CHAT):
        assert str(hint) == "First look it up on the page of the service, then write its full name in the question"


def test_hints_repeat_the_graph_of_the_command():
    with command_line_wording():
        repeat_options([("--graph", "my graph's/"), ("--graph-iri", "urn:g")], {"doctor": [("--profile", "qlever")]})
        graph = """ --graph 'my graph'"'"'s/' --graph-iri urn:g"""
        for hint, shown in {
            Command("graph search", "NAME"): f"kgqa graph search{graph} NAME",
            Command("ask", topic="ID"): f"kgqa ask{graph} --topic ID",
            Command("doctor"): f"kgqa doctor{graph} --profile qlever",
            Command("graph search", "a", graph="other/"): "kgqa graph search a --graph other/",
            Command("graph load", "FILE", into="g/"): "kgqa graph load FILE --into g/",
        }.items():
            assert str(hint) == shown
        repeat_options([("--graph", "http://ada:secret@h:1/sparql")], {})
        assert str(Command("graph info")) == "kgqa graph info --graph http://h:1/sparql"
        with shown_at(PAGE):
            assert str(Command("graph info")) == "kgqa graph info"
    with command_line_wording():
        assert str(Command("graph info")) == "kgqa graph info"


def test_commands_take_the_options_that_hints_repeat():
    chosen = ["path", "iri", "view", "schema", "languages"]
    given = {**{f"graph.{key}": "x" for key in chosen}, "endpoint.profile": "qlever"}
    with command_line_wording():
        repeat_graph(given)
        for name in ("ask", "chat", "doctor", "explain", "graph info", "graph search", "serve"):
            words = str(Command(name)).split()[1:]
            command, context = cli, click.Context(cli)
            while isinstance(command, click.Group):
                command = command.get_command(context, words.pop(0))
                context = click.Context(command)
            command.make_parser(context).parse_args(words)


def test_an_error_is_shown_as_message_and_hint():
    error = StoreTimeout("All workers are busy", "Allow more time: ", Option("timeout"))
    assert (error.message, error.hint) == ("All workers are busy", "Allow more time: timeout=")
    assert str(error) == "All workers are busy. Allow more time: timeout="
    with command_line_wording():
        assert str(error) == "All workers are busy. Allow more time: --timeout"
    assert str(KgqaError("No hint")) == "No hint"


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(LoginRefused("Denied.", "Add ", Option("user", "NAME"), status=401)))  # noqa: S301  (our own bytes)
    assert (str(error), error.status) == ('Denied. Add user="NAME"', 401)


IN_PYTHON = r"kgqa (?:ask|doctor|eval run|eval resume|graph load|graph search|corpus build)\b"
PLAIN = re.compile(rf"(?<![\w-])--[a-z]|{IN_PYTHON}")
SAME_EVERYWHERE = re.compile(rf"kgqa graph load FILE --into FOLDER\|URL|(?!{IN_PYTHON})(?:kgqa \w+|ray start)[^;,`]*")
"""A command without a Python call, with its options."""


def test_errors_of_the_libraries_contain_no_options_as_text():
    """An option or a command that has another form in Python is an action of the hint."""
    names = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, KgqaError)}
    names |= {"RunError", "FictionError", "QuestionFileError", "PublishedError", "ReportError", "Hint"}
    seen, wrong = 0, []
    for file in sorted((ROOT / "kgqa").rglob("*.py")):
        room = file.relative_to(ROOT / "kgqa").parts[0]
        for node in ast.walk(ast.parse(file.read_text())) if room not in ("cli", "testing") else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
                seen += 1
                texts = [each for each in node.args if isinstance(each, ast.Constant | ast.JoinedStr)]
                wrong += [
                    f"{file}:{node.lineno}"
                    for each in texts
                    if PLAIN.search(SAME_EVERYWHERE.sub("", ast.unparse(each)))
                ]
    assert seen > 300 and wrong == []
