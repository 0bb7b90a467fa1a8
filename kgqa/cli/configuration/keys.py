"""`kgqa keys`: keep API keys and passwords in a file that only the user can read."""

from __future__ import annotations

import os
import sys

import click

from kgqa.cli.groups import HelpfulGroup
from kgqa.cli.options import JSON, print_result, say, settings_from, verbosity_options
from kgqa.errors import SettingsError
from kgqa.net.servers import OPENAI_KEY_VARIABLE, OPENAI_URL
from kgqa.settings.keys import MAX_KEY_CHARS, key_file, read_keys, remove_key, server_address, set_key
from kgqa.settings.values import FILE_NAME

SETTING_OF = {"llm": "llm.model", "embeddings": "rank.model_url", "graph": "graph.path"}
"""Names of servers that the settings contain."""
_SERVER = click.argument("server", metavar="SERVER")


@click.group("keys", cls=HelpfulGroup)
def command() -> None:
    """Keep API keys and passwords in a file that only you can read.

    \b
    SERVER is one of:
      openai                     OpenAI (--llm openai:NAME)
      a URL                      any other language model, embedding server or SPARQL endpoint
      llm, embeddings, graph     the server in your settings (llm.model, rank.model_url, graph.path)

    A key is sent only to the server with this address. Environment variables (OPENAI_API_KEY, KGQA_LLM_KEY,
    KGQA_EMBEDDINGS_KEY, KGQA_ENDPOINT_PASSWORD) take precedence.

    \b
    Examples:
      kgqa keys set openai
      kgqa keys set http://localhost:8000/v1 < key.txt
      kgqa keys list
    """


@command.command("set")
@_SERVER
@click.argument("others", nargs=-1, metavar="")
@verbosity_options
def set_(server: str, others: tuple[str, ...]) -> None:
    """Ask for the key of SERVER, or read it from standard input, and keep it.

    The key of a SPARQL endpoint is the password of endpoint.user.
    """
    if others:
        raise click.UsageError(
            "A key is never given as an argument, because other users and your shell's history can see it. "
            "Without it, kgqa keys set SERVER asks for the key."
        )
    address = server_address(_named(server))
    if sys.stdin.isatty():
        key = click.prompt(f"Key of {address}", hide_input=True, err=True)
    else:
        key = sys.stdin.readline(MAX_KEY_CHARS + 2)
    set_key(address, key)
    say(f"kgqa: The key of {address} is kept in {key_file()}.")
    if address == OPENAI_URL and os.environ.get(OPENAI_KEY_VARIABLE):
        say(f"kgqa: The environment variable {OPENAI_KEY_VARIABLE} is set and takes precedence.")


@command.command("list")
@JSON
@verbosity_options
def list_(as_json: bool) -> None:
    """List the servers whose keys are kept; the keys are not shown."""
    servers = sorted(read_keys())
    print_result(as_json, servers, [f"{each}  (openai)" if each == OPENAI_URL else each for each in servers])
    if not servers and not as_json:
        say("kgqa: No key is kept. Keep one: kgqa keys set openai")


@command.command("remove")
@_SERVER
@verbosity_options
def remove(server: str) -> None:
    """Remove the key of SERVER."""
    say(f"kgqa: The key of {remove_key(_named(server))} is removed.")


@command.command("path")
@verbosity_options
def path() -> None:
    """Print the path of the file of keys."""
    print(key_file())


def _named(server: str) -> str:
    """Return the server of a name; a name that is neither known nor a URL is not repeated, it may be a key.

    Raises:
        SettingsError: there is no such server, or only the working folder's settings file names it.
    """
    setting = SETTING_OF.get(server)
    if setting is None:
        if server.partition(":")[0] not in ("openai", "http", "https"):
            raise SettingsError("This is not a server.", f"Give openai, {', '.join(SETTING_OF)}, or a URL.")
        return server
    settings = settings_from({})
    value = settings.values[setting]
    if setting in settings.local:
        raise SettingsError(f"Only {FILE_NAME} in the working folder sets {setting}.", "Give the URL itself.")
    if not value or value.partition(":")[0] not in ("openai", "http", "https"):
        raise SettingsError(f"The setting {setting} names no server.", "Give a URL, or set it: kgqa init")
    return str(value)
