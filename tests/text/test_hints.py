"""Hints in the words of the command line and of Python."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator

import click
import pytest

from kgqa import errors
from kgqa.cli.main import cli
from kgqa.cli.options import repeat_graph
from kgqa.errors import KgqaError, LoginRefused, StoreTimeout
from kgqa.net.threads import ThreadPool
from kgqa.text.hints import command_line_wording, hint_text, repeat_options, reworded, service_wording
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("hint", "python"),
    [
        ("Allow more time: --timeout", "Allow more time: timeout="),
        ("Allow more time (--timeout), or narrow it.", "Allow more time (timeout=), or narrow it."),
        ("Choose one: --graph-iri IRI. Graphs: a, b", 'Choose one: graph_iri="IRI". Graphs: a, b'),
        (
            "Add --llm openai:NAME, --llm URL or --llm vllm:FOLDER.",
            'Add llm="openai:NAME", llm="URL" or llm="vllm:FOLDER".',
        ),
        ("Set --depth 3, or raise --max-calls.", "Set depth=3, or raise max_calls=."),
        ("Skip them: --restart --on-error skip.", 'Skip them: restart=True on_error="skip".'),
        ("Add --topic ID", 'Add topics="ID"'),
        (
            "Look it up: kgqa graph search 'a, b. c' --graph mygraph/",
            'Look it up: graph.search("a, b. c")',
        ),
        ("Use `kgqa graph search NAME` and add --topic ID", 'Use graph.search("NAME") and add topics="ID"'),
        ("Give the id: kgqa ask --topic ID", 'Give the id: kgqa.ask(question, topics="ID")'),
        (
            "Build it: kgqa corpus build FILES --into c/",
            'Build it: kgqa.build_corpus(paths=["FILES"], folder="c/")',
        ),
        (
            "Load it: kgqa graph load FILE --restart --into g/.",
            'Load it: kgqa.load_into_folder(["FILE"], restart=True, folder="g/").',
        ),
        (
            "Load it: kgqa graph load FILE --into http://h:1/sparql --graph-iri IRI",
            'Load it: kgqa.virtuoso.graph_loading.load_into_url(["FILE"], url="http://h:1/sparql", graph_iri="IRI")',
        ),
        ("Resume it: kgqa eval resume --trust runs/a", 'Resume it: kgqa.evaluation.resume("runs/a", trust=True)'),
        (
            "Virtuoso: kgqa virtuoso start --row-cap 9; else wait.",
            "Virtuoso: kgqa virtuoso start --row-cap 9; else wait.",
        ),
        ("Resume it: kgqa eval resume a\\", 'Resume it: kgqa.evaluation.resume("a\\\\")'),
        ("Show the traceback: kgqa -v COMMAND", 'Show the traceback: logging.basicConfig(level="DEBUG")'),
        ("The file a--timeout.nt stays, kgqa waits.", "The file a--timeout.nt stays, kgqa waits."),
    ],
)
def test_a_hint_is_worded_for_its_place(hint, python):
    assert hint_text(hint) == python
    with command_line_wording():
        assert hint_text(hint) == hint


@pytest.mark.parametrize(
    ("hint", "api", "agent", "chat"),
    [
        (
            "Look up its id with `kgqa graph search NAME` and add --topic ID",
            "Search for it, and give its id as a topic",
            "Call search, and pass its id in topics",
            "Look it up on the page of the service, and write its full name in the question",
        ),
        ("Look it up: kgqa graph search 'a b' --graph g/", "Search for it", "Call search", None),
        ("Choose one by its id: --topic ID", "Choose one by its id: give its id as a topic", None, None),
        ("use --topic to choose another", "give its id as a topic to choose another", None, None),
        (
            "Let a language model compare the paths: --chooser llm --llm MODEL",
            "Let a language model compare the paths: choose a model, if the service offers one",
            "Let a language model compare the paths: start the server with a language model",
            "Let a language model compare the paths: choose a model with @ in its name, if there is one",
        ),
        ("Follow longer paths: --depth 3", "Follow longer paths: --depth 3 (an option of kgqa serve)", None, None),
    ],
)
def test_clients_of_the_service_have_no_command_line(hint, api, agent, chat):
    with command_line_wording(), service_wording():
        repeat_options([("--graph", "private/")])
        assert hint_text(hint) == api
        workers = ThreadPool(1)
        assert workers.submit(lambda: hint_text(hint)).result(10) == api
        workers.close()
    assert agent is None or reworded(api, "agent") == agent
    assert chat is None or reworded(api, "chat") == chat


def test_hints_repeat_the_graph_of_the_command():
    with command_line_wording():
        repeat_options([("--graph", "my graph's/"), ("--graph-iri", "urn:g")], {"doctor": [("--profile", "qlever")]})
        graph = """ --graph 'my graph'"'"'s/' --graph-iri urn:g"""
        for hint, shown in {
            "Use `kgqa graph search NAME` and add --topic ID": f"Use `kgqa graph search{graph} NAME` and add --topic ID",
            "Give the id: kgqa ask --topic ID": f"Give the id: kgqa ask{graph} --topic ID",
            "Run kgqa doctor again.": f"Run kgqa doctor{graph} --profile qlever again.",
            "Look it up: kgqa graph search a --graph other/": "Look it up: kgqa graph search a --graph other/",
            "Load it: kgqa graph load FILE --into g/": "Load it: kgqa graph load FILE --into g/",
        }.items():
            assert hint_text(hint) == shown
        repeat_options([("--graph", "http://ada:secret@h:1/sparql")])
        assert hint_text("kgqa graph info") == "kgqa graph info --graph http://h:1/sparql"
    with command_line_wording():
        assert hint_text("kgqa graph info") == "kgqa graph info"


def test_commands_take_the_options_that_hints_repeat():
    chosen = ["path", "iri", "view", "schema", "languages"]
    given = {**{f"graph.{key}": "x" for key in chosen}, "endpoint.profile": "qlever"}
    with command_line_wording():
        repeat_graph(given)
        for name in ("ask", "chat", "doctor", "explain", "graph info", "graph search", "serve"):
            words = hint_text(f"kgqa {name}").split()[1:]
            command, context = cli, click.Context(cli)
            while isinstance(command, click.Group):
                command = command.get_command(context, words.pop(0))
                context = click.Context(command)
            command.make_parser(context).parse_args(words)


def test_an_error_is_shown_as_message_and_hint():
    error = StoreTimeout("All workers are busy", "Allow more time: --timeout")
    assert (error.message, error.hint) == ("All workers are busy", "Allow more time: timeout=")
    assert str(error) == "All workers are busy. Allow more time: timeout="
    with command_line_wording():
        assert str(error) == "All workers are busy. Allow more time: --timeout"
    assert str(KgqaError("No hint")) == "No hint"


def test_a_hint_may_have_other_words_in_python():
    error = KgqaError("No graph.", "See kgqa --help", python="See help(kgqa)")
    assert str(error) == "No graph. See help(kgqa)"
    with command_line_wording():
        assert str(error) == "No graph. See kgqa --help"


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(LoginRefused("Denied.", "Add --user NAME", status=401)))  # noqa: S301  (our own bytes)
    assert (str(error), error.status) == ('Denied. Add user="NAME"', 401)


def test_the_command_line_shows_options(kgqa):
    """The command line's words last for one command."""
    done = kgqa("ask", "", "--graph", "demo-missing")
    assert "kgqa graph load FILE --into" in done.err
    assert hint_text("--timeout") == "timeout="


OPTION = re.compile(r"(?<![\w-])--[a-z]|\bkgqa (?:ask|eval run|eval resume|graph load|graph search|corpus build)\b")
COMMAND = re.compile(
    r"kgqa (?:virtuoso|freebase|rank|cache|config|graph info|score|eval status|eval merge|corpus status)[^;,`]*"
)


def text_of(node: ast.expr | None) -> str:
    """The text of a string or f-string in the source; other expressions stand for themselves as X."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(each) for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "X"


def raised() -> Iterator[tuple[str, ast.Call]]:
    """The errors of kgqa that library code makes, each with its place."""
    names = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, KgqaError)}
    names |= {"RunError", "FictionError", "QuestionFileError", "PublishedError", "ReportError"}
    for file in sorted((ROOT / "kgqa").rglob("*.py")):
        room = file.relative_to(ROOT / "kgqa").parts[0]
        for node in ast.walk(ast.parse(file.read_text())) if room not in ("cli", "testing") else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names and node.args:
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node


def test_errors_of_the_libraries_speak_of_python():
    """Messages name no options, and hints become calls and keyword arguments."""
    found = list(raised())
    assert len(found) > 300
    wrong = [(place, text_of(call.args[0])) for place, call in found if OPTION.search(text_of(call.args[0]))]
    for place, call in found:
        own = next((each.value for each in call.keywords if each.arg == "python"), None)
        hint = hint_text(text_of(call.args[1]) if len(call.args) > 1 else "", python=text_of(own) if own else "")
        if OPTION.search(COMMAND.sub("", hint)):
            wrong.append((place, hint))
    assert wrong == []
