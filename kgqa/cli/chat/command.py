"""`kgqa chat`: opens the graph and reads questions and commands until the input ends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kgqa.cli.options import (
    GroupedCommand,
    asking_options,
    given_options,
    graph_options,
    note_printer,
    say,
    setting_option,
    verbosity,
    verbosity_options,
)

if TYPE_CHECKING:
    from kgqa.cli.chat.session import Session


@click.command("chat", cls=GroupedCommand, heading="Conversation")
@graph_options
@click.option("--no-history", is_flag=True, help="neither read nor write the history of your input")
@asking_options
@setting_option("llm.concurrency")
@verbosity_options
def command(graph_path: str | None, no_history: bool, **options: Any) -> int:
    """Ask a graph in a conversation: words such as "he" or "there" refer to the answers before.

    \b
    Examples:
      kgqa chat
      kgqa chat --graph mygraph/ --llm openai:gpt-4.1-mini

    \b
    Tab completes names of entities and commands; /help lists the commands (docs/chat.md).
    Ctrl-C stops a question, Ctrl-D ends the chat. Lines can also be piped in.
    """
    from kgqa.cli.chat.lines import open_lines
    from kgqa.cli.chat.session import Session

    session = Session(given_options(options, graph_path), say=say, note=note_printer(), notes=verbosity() >= 0)
    try:
        terminal = sys.stdin.isatty()
        lines = open_lines(session, history=not no_history, say=say)
        if terminal:
            say(f"kgqa chat over {session.place}, method {session.method}. /help lists the commands, Ctrl-D ends.")
        while True:
            try:
                if (line := lines.read()) is None or not _take(line, session, shown=not terminal):
                    break
            except KeyboardInterrupt:
                if not terminal:
                    raise
                # a second Ctrl-C may arrive when the question has just been stopped
    finally:
        session.close()
    return 0


def _take(line: str, session: Session, *, shown: bool) -> bool:
    """Answer a question or run a command; return False if it ends the chat. `shown`: whether to print the line."""
    from kgqa.cli.chat.commands import ENDING, run_command

    if not (text := line.strip()):
        return True
    if shown:
        print(f"> {session.shown(text)}", flush=True)
    if text.lower() in ENDING:
        return False
    print(run_command(text, session) if text.startswith("/") else session.ask(text), flush=True)
    if shown:
        print(flush=True)
    return True
