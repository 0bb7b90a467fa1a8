"""`kgqa graph`: load, inspect and search a graph."""

from __future__ import annotations

import click

from kgqa.cli.lazy_group import LazyGroup

COMMANDS = {
    "load": ("kgqa.cli.graph.load:load", "Add the triples of RDF FILES to a graph folder or a server."),
    "info": ("kgqa.cli.graph.info:info", "Show the size, relations, schema and fingerprint of a graph."),
    "search": ("kgqa.cli.graph.search:search", "Find entities by name or alias."),
    "fictionalise": (
        "kgqa.cli.graph.fictionalise:fictionalise",
        "Rewire a graph so that its facts contradict the world.",
    ),
}


@click.command("graph", cls=LazyGroup, lazy_commands=COMMANDS)
def command() -> None:
    """Load RDF files into a folder or a server; inspect or search a graph, or make a fictional copy of it."""
