"""`kgqa`: the group of all commands, with error messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from kgqa.cli.groups import LazyGroup
from kgqa.cli.options import verbosity_options
from kgqa.errors import KgqaError
from kgqa.text.hints import Install, command_line_wording
from kgqa.text.installation import extra_of
from kgqa.text.words import clean
from kgqa.version import __version__

SECTIONS = {
    "Ask": {
        "ask": ("kgqa.cli.ask:command", "Answer QUESTION from a graph and show why."),
        "chat": ("kgqa.cli.chat.command:command", "Ask a graph in a conversation."),
        "serve": ("kgqa.cli.serve:command", "Serve a page to ask in, an HTTP API and tools for agents."),
        "explain": ("kgqa.cli.explain:command", "Explain a SPARQL query in plain words."),
    },
    "Graphs": {
        "graph": ("kgqa.cli.groups:graph", "Load, inspect and search a graph."),
        "virtuoso": ("kgqa.cli.groups:virtuoso", "Install, start, inspect and stop a Virtuoso server."),
        "freebase": ("kgqa.cli.groups:freebase", "Clean the Freebase dump and load it into a server."),
        "doctor": ("kgqa.cli.doctor:command", "Check a graph, a language model and the settings."),
    },
    "Documents": {
        "corpus": ("kgqa.cli.groups:corpus", "Turn documents into a graph, to search and to ask."),
        "edits": ("kgqa.cli.groups:edits", "Review, undo and merge the edits of a corpus."),
    },
    "Evaluate": {
        "eval": ("kgqa.cli.groups:eval_", "Answer the questions of a data set and measure the results."),
        "data": ("kgqa.cli.data:command", "List and check question data sets."),
        "report": ("kgqa.cli.report:command", "Compare runs: metrics with 95% intervals, or a website."),
        "export": ("kgqa.cli.report:export", "Write the SPARQL queries behind the answers of a run."),
        "score": ("kgqa.cli.eval.score:command", "Score the published predictions of other systems."),
        "trajectories": ("kgqa.cli.groups:trajectories", "Export what a language model did, to train a model."),
        "rank": ("kgqa.cli.rank:command", "Train a ranker of relation paths."),
    },
    "Configure": {
        "init": ("kgqa.cli.configuration.init:command", "Ask for the main settings and write kgqa.toml."),
        "config": ("kgqa.cli.configuration.config:command", "Show the settings."),
        "keys": ("kgqa.cli.configuration.keys:command", "Keep API keys in a file that only you can read."),
        "prompts": ("kgqa.cli.prompts:command", "List, show and copy the prompts."),
        "cache": ("kgqa.cli.cache:command", "Show or clear the cache."),
        "completion": ("kgqa.cli.configuration.completion:command", "Print the shell completion script."),
    },
}
"""The commands, under the headings of the help."""
COMMANDS = {name: command for commands in SECTIONS.values() for name, command in commands.items()}
EXIT_CODES = """\b
Exit codes:
  0    answered, or done
  1    an error; the message says what to do next
  2    wrong usage
  3    not answered (no answer, not supported, budget spent)
  130  stopped by Ctrl-C; finished work is kept"""


@contextmanager
def _end_on_closed_output() -> Iterator[None]:
    """End the program with exit code 0 if the program that reads its output has ended: `kgqa ask ... | head -1`."""
    try:
        yield
    except BrokenPipeError:
        # discard buffered output, because the interpreter would try to write it at its end and report an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None


class _Commands(LazyGroup):
    """All commands; handles a closed output, because click would end with exit code 1."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _end_on_closed_output():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _end_on_closed_output():
            return super().invoke(ctx)


@click.command(
    cls=_Commands,
    lazy_commands=COMMANDS,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="kgqa")
@verbosity_options
def cli() -> None:
    """Answer questions over a knowledge graph, and show why.

    \b
    To start, without any configuration:
      kgqa ask "Which city is the capital of the country whose anthem is Kimigayo?"
    Then with a graph of your own:
      kgqa graph load triples.nt.gz --into mygraph/
      kgqa graph search "alta verapaz" --graph mygraph/
      kgqa ask "..." --graph mygraph/
    To keep a graph, a language model and keys for later:
      kgqa init
      kgqa keys set openai
    """


@command_line_wording()
def main(arguments: list[str] | None = None) -> None:
    """Run the command line and report every error as a message and an exit code, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["eval"]:
        # many questions run at a time, each in its thread; idle threads of OpenBLAS would take the processors from them
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = cli.main(args=arguments, prog_name="kgqa", standalone_mode=False) or 0
        with _end_on_closed_output():
            sys.stdout.flush()
        sys.exit(code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        # an exception with arguments has already been reported by the command; click wraps it in an Abort
        if not error.args and not getattr(error.__cause__, "args", ()):
            _print_error("Stopped.")
        sys.exit(130)
    except KgqaError as error:
        _print_error(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:
            _report_defect(error, arguments)
        # for example, missing permission or a full disk
        _print_error(f"{error.filename}: {error.strerror}.")
        sys.exit(1)
    except ModuleNotFoundError as error:
        extra = extra_of(error.name or "")
        if extra is None:
            _report_defect(error, arguments)
        _print_error(f"This needs the package {error.name}, which is not installed. {Install(extra)}")
        sys.exit(1)
    except Exception as error:  # noqa: BLE001  (a defect of kgqa is reported in one line)
        _report_defect(error, arguments)


def _report_defect(error: Exception, arguments: list[str]) -> NoReturn:
    from kgqa.plugins import culprit

    if where := culprit(error):
        traceback.print_exception(error)
        _print_error(f"{where} failed: {type(error).__name__}: {error}")
        sys.exit(1)
    if any(a in ("-v", "--verbose", "-vv") for a in arguments):
        raise error
    _print_error(
        f"internal error: {type(error).__name__}: {error}. This is a defect of kgqa; kgqa -v ... shows the traceback."
    )
    sys.exit(1)


def _print_error(text: str) -> None:
    print(f"kgqa: {clean(text)}", file=sys.stderr)


if __name__ == "__main__":
    main()
