"""`kgqa freebase`: the commands for the Freebase dump."""

from __future__ import annotations

import click

from kgqa.cli.lazy_group import LazyGroup

COMMANDS = {
    "load": ("kgqa.cli.servers.freebase_load:load", "Clean the dump, load it into your server, index its names."),
    "clean": (
        "kgqa.cli.servers.freebase_clean:clean_command",
        "Clean the dump into N-Triples files, or count its lines.",
    ),
}


@click.command("freebase", cls=LazyGroup, lazy_commands=COMMANDS)
def command() -> None:
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
