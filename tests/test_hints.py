"""Hints in the words of the command line and of Python."""

from __future__ import annotations

import pickle

import pytest

from kgqa.errors import KgqaError, LoginRefused, StoreTimeout
from kgqa.hints import command_line_wording, hint_text


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
            "Load it: kgqa graph load FILE --restart --into g/.",
            'Load it: kgqa.graph.loading.load_into_folder(["FILE"], restart=True, folder="g/").',
        ),
        (
            "Load it: kgqa graph load FILE --into http://h:1/sparql --graph-iri IRI",
            'Load it: kgqa.virtuoso.bulk.url_loading.load_into_url(["FILE"], url="http://h:1/sparql", graph_iri="IRI")',
        ),
        ("Resume it: kgqa eval resume --trust runs/a", 'Resume it: kgqa.evaluation.resume("runs/a", trust=True)'),
        (
            "Virtuoso: kgqa virtuoso start --row-cap 9; else wait.",
            "Virtuoso: kgqa virtuoso start --row-cap 9; else wait.",
        ),
        ("Resume it: kgqa eval resume a\\", 'Resume it: kgqa.evaluation.resume("a\\\\")'),
        ("The file a--timeout.nt stays, kgqa waits.", "The file a--timeout.nt stays, kgqa waits."),
    ],
)
def test_a_hint_is_worded_for_its_place(hint, python):
    assert hint_text(hint) == python
    with command_line_wording():
        assert hint_text(hint) == hint


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
