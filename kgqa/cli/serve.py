"""`kgqa serve`: the page in a browser, the HTTP API and the tools for agents, over one graph."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import sys
from typing import Any

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
    whole,
)
from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.text.hints import Install

_BY_MAKE = "KGQA_BY_MAKE"
"""The environment variable that `make serve` sets; make would call the exit code 130 an error."""


@click.command("serve", cls=GroupedCommand, heading="Service")
@graph_options
@click.option(
    "--host", default="127.0.0.1", help="address to listen at; other than this machine's own needs a token. [127.0.0.1]"
)
@click.option("--port", type=whole(0, 65535), default=8080, help="port to listen at; 0: any free port. [8080]")
@click.option("--writable", is_flag=True, help="let clients accept and reject proposed edits of a corpus")
@click.option("--log-questions", is_flag=True, help="write the texts of questions to the log")
@click.option(
    "--mcp",
    type=click.Choice(["stdio", "http"]),
    help="serve the graph as tools of an agent (docs/mcp.md): stdio: to the program that started this; http: at /mcp",
)
@asking_options
@setting_option("llm.concurrency")
@verbosity_options
def command(
    graph_path: str | None, host: str, port: int, writable: bool, log_questions: bool, mcp: str | None, **options: Any
) -> int:
    """Serve a page to ask in, an HTTP API and tools for agents (docs/serve.md).

    \b
    Examples:
      kgqa serve
      kgqa serve --graph mygraph/ --llm openai:gpt-4.1-mini --port 8000
      KGQA_SERVE_TOKEN=... kgqa serve --host 0.0.0.0 --graph mygraph/

    The service is reached from this machine only. Any other --host needs a token, in the environment variable
    KGQA_SERVE_TOKEN or the setting serve.token; clients send it as Authorization: Bearer TOKEN.

    \b
    Ctrl-C or SIGTERM: no new questions are accepted, and those in progress are finished (serve.shutdown_seconds).
    Exit codes: 0 after SIGTERM, 130 after Ctrl-C, 1 or 2 if the service cannot start.
    """
    try:
        from kgqa.serve.app import create_app
        from kgqa.serve.server import make_server, open_socket, run_server
        from kgqa.serve.service import Service

        if mcp:
            from kgqa.serve.tools import mcp_server  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModelUnavailable(f"kgqa serve needs {error.name}, which is not installed.", Install("serve")) from None
    given = given_options(options, graph_path)
    if mcp == "stdio":
        return _serve_stdio(given)
    from kgqa.settings.values import resolve

    settings = resolve(given)
    for note in settings.notes:
        say(f"kgqa: {note}")
    tokens = [token.strip() for token in (settings.serve.token or "").split(",") if token.strip()]
    if not tokens and not _is_loopback(host):
        raise SettingsError(
            f"--host {host} lets other machines ask, so the service needs a token.",
            "Set the environment variable KGQA_SERVE_TOKEN, for example to the output of: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    by_make = _BY_MAKE in os.environ
    listening = open_socket(host, port, port_option="make serve PORT=" if by_make else "--port ")
    with listening:
        service = Service(given, writable=writable, say=note_printer())  # called from other threads, too
        try:
            names = {"localhost", socket.gethostname(), socket.getfqdn(), host}
            names |= {name.strip() for name in (settings.serve.hosts or "").split(",") if name.strip()}
            app = create_app(service, hosts=names, tokens=tokens, log_questions=log_questions, mcp=mcp == "http")
            if verbosity() >= 0:
                _write_log()
            shown = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{listening.getsockname()[1]}/"
            agents = f" Agents: {url}mcp." if mcp else ""
            interrupted = run_server(
                make_server(app, service),
                listening,
                started=lambda: print(f"Open {url} in a browser.{agents} To end: Ctrl-C", flush=True),
            )
        finally:
            service.close()
    if interrupted:
        say("kgqa: Stopped.")
    return 130 if interrupted and not by_make else 0


def _serve_stdio(given: dict[str, Any]) -> int:
    """Serve the tools for agents to the program that started this one; only its messages go to standard output."""
    from kgqa.serve.service import Service
    from kgqa.serve.tools.mcp_server import serve_stdio

    service = Service({"serve.folder": "none", **given}, say=note_printer())
    try:
        serve_stdio(service)
    finally:
        service.close()
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _write_log() -> None:
    """Write the log of requests to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("kgqa.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
