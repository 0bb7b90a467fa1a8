"""`kgqa virtuoso`: the group of commands for a Virtuoso server that kgqa runs for the user."""

from __future__ import annotations

import click

from kgqa.cli.lazy_group import LazyGroup

_RUN, _DATABASE = "kgqa.cli.servers.virtuoso_run", "kgqa.cli.servers.virtuoso_database"
COMMANDS = {
    "install": (f"{_RUN}:install", "Install the Virtuoso package of Debian or Ubuntu."),
    "start": (f"{_RUN}:start", "Start the server; the first start creates its database."),
    "status": (f"{_RUN}:status", "Show whether the server is running, its URL and disk usage."),
    "stop": (f"{_RUN}:stop", "Write everything to disk and stop the server."),
    "adopt": (f"{_DATABASE}:adopt", "Use an existing database file in place."),
    "index": (f"{_DATABASE}:index", "Index the names of a graph for linking and search."),
    "drop-names": (f"{_DATABASE}:drop_names", "List or remove the indexes of names."),
    "password-file": (f"{_DATABASE}:password_file", "Print the path of the password file."),
}


@click.command("virtuoso", cls=LazyGroup, lazy_commands=COMMANDS)
def command() -> None:
    """Install, start, inspect and stop a Virtuoso server of your own.

    \b
    The server needs neither systemd nor root, keeps all files in one folder, and accepts requests only from this
    machine.
      kgqa virtuoso install
      kgqa virtuoso start
      kgqa virtuoso status
      kgqa virtuoso stop
    """
