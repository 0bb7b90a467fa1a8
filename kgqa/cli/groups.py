"""The groups of commands; a group imports a command only when it is used, so that help texts appear at once."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click

from kgqa.text.words import clean

FEWEST_WORDS = 3
"""How many words without quotes are taken for a question."""
_SHELL = '"$`\\!'
"""Characters that a shell replaces between double quotes."""


class HelpfulGroup(click.Group):
    """A click group that names similar commands, or `kgqa ask`, if a command does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name, the command and its arguments; raise UsageError if there is no such command."""
        name = args[0]
        if self.get_command(ctx, name) is not None or ctx.resilient_parsing or name.startswith("-"):
            return super().resolve_command(ctx, args)
        shown, path = clean(name)[:100], ctx.command_path
        question = ctx.parent is None and (any(sign in name for sign in " ?") or len(args) >= FEWEST_WORDS)
        near = difflib.get_close_matches(name, self.list_commands(ctx), n=3)
        meant = [f"{path} {each}" for each in near] + [f"kgqa {each}" for each in self._elsewhere(ctx, name)]
        if meant and " " not in name:
            hint = f"Did you mean: {' or '.join(dict.fromkeys(meant))}?"
        elif question:
            text = clean(" ".join(args))[:300]
            quoted = shlex.quote(text) if set(text) & set(_SHELL) else f'"{text}"'
            hint = f"To ask a question: kgqa ask {quoted}"
        else:
            hint = f"List the commands: {path} --help"
        raise click.UsageError(f"There is no command {shown!r}. {hint}", ctx)

    def _elsewhere(self, ctx: click.Context, name: str) -> Iterator[str]:
        """Yield the commands of this name in groups below this group."""
        return iter(())


class LazyGroup(HelpfulGroup):
    """A click group that imports a command only when the command is used.

    Args:
        lazy_commands: map from the name of each command to its `module:attribute` and its one-line help.
    """

    def __init__(self, *args: Any, lazy_commands: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.lazy_commands = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy_commands:
            return None
        module, _, attribute = self.lazy_commands[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def _elsewhere(self, ctx: click.Context, name: str) -> Iterator[str]:
        for group, (target, _) in self.lazy_commands.items():
            below = self.get_command(ctx, group) if target.startswith(f"{__name__}:") else None
            if isinstance(below, LazyGroup) and name in below.lazy_commands:
                yield f"{group} {name}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.lazy_commands.items()])


@click.command(
    "eval",
    cls=LazyGroup,
    lazy_commands={
        "run": ("kgqa.cli.eval.run:run_command", "Start a run over the questions of a data set."),
        "resume": ("kgqa.cli.eval.run:resume_command", "Ask the remaining questions of a run."),
        "status": ("kgqa.cli.eval.status:command", "Show the progress and the scores of a run."),
        "merge": ("kgqa.cli.eval.run:merge_command", "Merge the shards of a run."),
        "table": (
            "kgqa.cli.eval.table:command",
            "Measure tables of publications and print them beside the published figures.",
        ),
    },
)
def eval_() -> None:
    """Ask the questions of a data set and score the answers.

    \b
    Ctrl-C waits for the questions in flight, then stops. However a run ended, `kgqa eval resume`
    asks the remaining questions; answers on disk are kept.

    \b
    Examples:
      kgqa eval run --dataset webqsp:WebQSP.test.json --graph http://127.0.0.1:8890/sparql --out runs/a
      kgqa eval run --dataset questions.jsonl.gz --graph mygraph/ --sample 200 --out runs/b
      kgqa eval run --method top-1,top-2,tog --llm openai:gpt-4.1-mini --dataset cwq:test.json --out runs/c
      kgqa eval resume runs/a
      kgqa report runs/a runs/b
    """


@click.command(
    "graph",
    cls=LazyGroup,
    lazy_commands={
        "load": ("kgqa.cli.graph.load:load", "Add the triples of RDF FILES to a graph folder or a server."),
        "convert": ("kgqa.cli.graph.convert:convert", "Convert the graphs of a benchmark to RDF files."),
        "info": ("kgqa.cli.graph.info:info", "Show the size, relations, schema and fingerprint of a graph."),
        "search": ("kgqa.cli.graph.search:search", "Find entities by name or alias."),
        "fictionalise": (
            "kgqa.cli.graph.fictionalise:fictionalise",
            "Rewire a graph so that its facts contradict the world.",
        ),
    },
)
def graph() -> None:
    """Load RDF files into a folder or a server; convert, inspect or search a graph, or make a fictional copy of it."""


@click.command(
    "virtuoso",
    cls=LazyGroup,
    lazy_commands={
        "install": ("kgqa.cli.servers.virtuoso:install", "Install the Virtuoso package of Debian or Ubuntu."),
        "start": ("kgqa.cli.servers.virtuoso:start", "Start the server; the first start creates its database."),
        "status": (
            "kgqa.cli.servers.virtuoso:status",
            "Show whether the server is running, its URL and disk usage.",
        ),
        "stop": ("kgqa.cli.servers.virtuoso:stop", "Write everything to disk and stop the server."),
        "index": ("kgqa.cli.servers.virtuoso_database:index", "Index the names of a graph for linking and search."),
        "password-file": ("kgqa.cli.servers.virtuoso_database:password_file", "Print the path of the password file."),
    },
)
def virtuoso() -> None:
    """Install, start, inspect and stop a Virtuoso server of your own.

    \b
    The server needs neither systemd nor root, keeps all files in one folder, and accepts requests only from this
    machine.
      kgqa virtuoso install
      kgqa virtuoso start
      kgqa virtuoso status
      kgqa virtuoso stop
    """


@click.command(
    "freebase",
    cls=LazyGroup,
    lazy_commands={
        "load": ("kgqa.cli.servers.freebase:load", "Clean the dump, load it into your server, index its names."),
        "clean": (
            "kgqa.cli.servers.freebase:clean_command",
            "Clean the dump into N-Triples files, or count its lines.",
        ),
    },
)
def freebase() -> None:
    """Clean the Freebase dump and load it into a server.

    \b
    From the dump to answers:
      kgqa virtuoso install
      kgqa virtuoso start
      kgqa freebase load freebase-rdf-latest.gz
      kgqa ask "..." --graph http://127.0.0.1:8890/sparql

    The dump has 3.1 billion lines in 32 GB of gzip. More than half of these lines are of no use for questions, and some
    are malformed; kgqa drops such lines and counts them by reason. docs/freebase.md lists the time and disk space that
    loading takes.
    """


@click.command(
    "corpus",
    cls=LazyGroup,
    lazy_commands={
        "build": ("kgqa.cli.corpus.build:build", "Read documents into a corpus, or bring a corpus up to date."),
        "add": ("kgqa.cli.corpus.build:add", "Add documents to a corpus."),
        "remove": ("kgqa.cli.corpus.remove:remove", "Remove documents, and what only they say."),
        "status": ("kgqa.cli.corpus.status:status", "Show what a corpus contains, and what failed."),
        "check": ("kgqa.cli.corpus.check:check", "Check a corpus for damage."),
        "search": ("kgqa.cli.corpus.search:search", "Find chunks, statements, entities and more."),
        "export": ("kgqa.cli.corpus.export:export", "Write the graph, the statements or the triples of a corpus."),
        "estimate": ("kgqa.cli.corpus.estimate:estimate", "Show what a build would cost, without any model call."),
    },
)
def corpus() -> None:
    """Turn documents into a graph, to search and to ask.

    \b
    From documents to answers, without a language model (docs/corpus.md):
      kgqa corpus build docs/ --into corpus/
      kgqa corpus status corpus/
      kgqa corpus search "who built the lighthouse?" --graph corpus/
      kgqa ask "..." --graph corpus/

    \b
    With a language model, which finds more facts:
      kgqa corpus estimate docs/ --llm openai:gpt-4.1-mini
      kgqa corpus build docs/ --into corpus/ --llm openai:gpt-4.1-mini --max-cost 5

    A build can be repeated at any time: it reads only what has changed. After Ctrl-C or a crash, run the same command
    again; no model call is paid for twice.
    """


@click.command(
    "trajectories",
    cls=LazyGroup,
    lazy_commands={
        "export": ("kgqa.cli.eval.trajectories:export", "Write trajectories as files for verl, TRL or fine-tuning."),
        "show": ("kgqa.cli.eval.trajectories:show", "Show the reward of every trajectory."),
    },
)
def trajectories() -> None:
    """Export what a language model did in each question, to train a model (docs/trajectories.md).

    \b
    For runs of methods in which the model acts in turns:
      kgqa eval run --method evograph --rollouts 5 --dataset questions.jsonl --graph corpus/ --llm URL --out runs/x
      kgqa trajectories show runs/x
      kgqa trajectories export runs/x --format sft --min-reward 0.8 --out sft/
    """


@click.command(
    "edits",
    cls=LazyGroup,
    lazy_commands={
        "list": ("kgqa.cli.edits.list:list_", "List the edits of a corpus, also proposed and rejected ones."),
        "show": ("kgqa.cli.edits.show:show", "Show an edit as a diff, with its sources and quotes."),
        "review": ("kgqa.cli.edits.review:review", "Accept or reject proposed edits."),
        "undo": ("kgqa.cli.edits.undo:undo", "Undo edits, those of a session, or those that rest on a source."),
        "verify": ("kgqa.cli.edits.verify:verify", "Check that no edit was changed."),
        "as-of": ("kgqa.cli.edits.as_of:as_of", "Write an earlier state of a corpus to a folder."),
        "merge": ("kgqa.cli.edits.merge:merge", "Merge the log of another corpus."),
    },
)
def edits() -> None:
    """Review, undo and merge the edits of a corpus.

    \b
    Every change of a corpus is an edit in its log: builds, and what a language model learns from a question. Edits of
    a model wait for a review; no edit is ever lost, and each can be undone (docs/edits.md).
      kgqa edits list corpus/ --state waiting
      kgqa edits review corpus/
      kgqa edits undo corpus/ --source https://example.org/page
      kgqa edits as-of corpus/ 2026-01-31 --into january/
    """
