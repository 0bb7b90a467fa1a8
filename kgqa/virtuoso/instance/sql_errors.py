"""Turns errors of the SQL client into messages that say what to do."""

from __future__ import annotations

import re
import time

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import BAD_LOGIN, LOST_CONNECTION, NO_CONNECTION
from kgqa.virtuoso.instance.processes import listener, listens, lock_owner
from kgqa.virtuoso.instance.server_log import SHUT_DOWN, free_space, last_error, log_tail, since_last_start, trouble_in

ENDING_SECONDS = 0.5
_LOGIN = re.compile(r"Incorrect login for |(Too many) \(\d+\) failed connection attempts")


def explain_sql(error: SqlError, folder: ServerFolder) -> ServerError:
    """An error of the SQL client as one that says what to do."""
    if error.state == BAD_LOGIN:
        return _bad_login(folder)
    if error.state == NO_CONNECTION:
        owner = lock_owner(folder.lock)
        if owner:
            return SqlError(
                f"The server ({owner}) does not answer yet. Wait: kgqa virtuoso status{folder.option}",
                state=error.state,
            )
        return SqlError(f"The server does not run. Start it: kgqa virtuoso start{folder.option}", state=error.state)
    if error.state == LOST_CONNECTION:
        return SqlError(
            " ".join(
                part
                for part in (
                    "The server ended in the middle of this.",
                    last_error(log_tail(folder.log), place=folder.database.parent),
                    f"Start it again, it recovers by itself: kgqa virtuoso start{folder.option}",
                )
                if part
            ),
            state=error.state,
        )
    trouble = trouble_in(str(error))
    if trouble and trouble.kind == "disk":
        return SqlError(
            f"{trouble.meaning} {free_space(folder.database.parent)} are free at {folder.database.parent}. "
            f"{trouble.remedy}",
            state=error.state,
        )
    return SqlError(f"The server refused an SQL statement: {error}", state=error.state)


def _is_ending(folder: ServerFolder) -> bool:
    """Whether the server goes down or is gone: it refuses every login while it does."""
    deadline = time.monotonic() + ENDING_SECONDS
    while lock_owner(folder.lock) and listens(folder.record().sql_port):
        if SHUT_DOWN in since_last_start(log_tail(folder.log)):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _is_locked(folder: ServerFolder) -> bool:
    """Whether the server refused the last login without looking at its password. To its client it says the same of both."""
    refusals = list(_LOGIN.finditer(since_last_start(log_tail(folder.log))))
    return bool(refusals and refusals[-1][1])


def _bad_login(folder: ServerFolder) -> ServerError:
    port = folder.record().sql_port
    owner, answers = lock_owner(folder.lock), listener(port)
    if answers and (owner is None or answers.pid != owner.pid):
        return SqlError(
            f"Another server, {answers}, answers on port {port}. Start yours on a port of its own: "
            f"kgqa virtuoso start --sql-port N{folder.option}",
            state=BAD_LOGIN,
        )
    if _is_ending(folder):
        return SqlError(
            f"The server was stopped in the middle of this. Start it: kgqa virtuoso start{folder.option}",
            state=BAD_LOGIN,
        )
    if _is_locked(folder):
        return SqlError(
            "The server refuses every login for a minute after four wrong passwords, the right one too: whether the one in "
            f"{folder.password_file} is right it does not say. Try again in a minute.",
            state=BAD_LOGIN,
        )
    return SqlError(
        f"The server refuses the password in {folder.password_file}. Put the password of its user dba into that file. "
        f"After four wrong ones the server refuses everybody for a minute. If nobody knows it, stop the server with "
        f"kill {owner.pid if owner else 'PID'}; it writes down what was committed.",
        state=BAD_LOGIN,
    )
