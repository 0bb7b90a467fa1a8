"""Reads the lines of a conversation: with editing, completion and history on a terminal, else one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from kgqa.cli.chat.session import Session

PROMPT = "kgqa> "


class Lines(Protocol):
    """Where lines come from."""

    def read(self) -> str | None:
        """Return the next line; None at the end of the input."""
        ...


class PlainLines:
    """Lines of standard input; invalid UTF-8 is replaced. `prompt`: shown before each line."""

    def __init__(self, prompt: str = "") -> None:
        self._prompt = prompt
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(errors="replace")

    def read(self) -> str | None:
        """Return the next line; None at the end of the input."""
        while True:
            try:
                return input(self._prompt)
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._prompt:
                    raise
                print()


class EditedLines:
    """Lines of a terminal with editing, completion and history, by prompt_toolkit.

    Args:
        session: The conversation whose graph has the names to complete.
        history: The file of the history; None to keep it in memory.
    """

    def __init__(self, session: Session, history: Path | None) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import ThreadedCompleter
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        from kgqa.cli.chat.completion import ChatCompleter

        self._prompts: PromptSession[str] = PromptSession(
            PROMPT,
            history=FileHistory(history) if history else InMemoryHistory(),
            completer=ThreadedCompleter(ChatCompleter(session)),
            complete_while_typing=False,
            enable_history_search=True,
        )

    def read(self) -> str | None:
        """Return the next line; None after Ctrl-D. Ctrl-C clears the line."""
        while True:
            try:
                return self._prompts.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None


def open_lines(session: Session, *, history: bool, say: Callable[[str], None]) -> Lines:
    """Return the lines of standard input; they can be edited if it is a terminal and prompt_toolkit is installed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PlainLines()
    try:
        import prompt_toolkit  # noqa: F401
    except ModuleNotFoundError:
        from kgqa.text.hints import Install

        say(f"kgqa: Without prompt_toolkit, there is no editing and completion. Install it: {Install('chat')}")
        return PlainLines(PROMPT)
    file = None
    if history:
        try:
            file = history_file()
        except OSError as error:
            say(f"kgqa: The history cannot be kept in {error.filename}: {error.strerror}. Use --no-history.")
    return EditedLines(session, file)


def history_file() -> Path:
    """Return the file of the history in the user's data folder, readable only by the user.

    Raises:
        OSError: it cannot be created or protected.
    """
    from platformdirs import user_data_path

    file = user_data_path("kgqa", appauthor=False) / "chat-history"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return file
