"""`kgqa virtuoso install | start | status | stop`."""

from __future__ import annotations

import ipaddress
import subprocess
from contextlib import suppress
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, Number, check_usage, print_result, say, verbosity_options, whole
from kgqa.cli.servers.options import FOLDER, say_clean
from kgqa.text.words import clean, safe_text
from kgqa.virtuoso.server import Server

NOT_RUNNING = 3


@click.command("install")
def install() -> int:
    """Install the Virtuoso package of Debian or Ubuntu; print instructions on other systems."""
    with as_file(files("kgqa.virtuoso_files").joinpath("install.sh")) as script:
        return 0 if subprocess.run(["sh", str(script)], check=False).returncode == 0 else 1


@click.command("start")
@FOLDER
@click.option("--http-port", type=whole(1, 65535), help="port of the SPARQL endpoint. [8890]")
@click.option("--sql-port", type=whole(1, 65535), help="port for SQL, on 127.0.0.1 only. [1111]")
@click.option("--bind", metavar="ADDRESS", help="IPv4 address of the SPARQL endpoint; 0.0.0.0 for all. [127.0.0.1]")
@click.option("--memory-share", type=Number(), help="part of this machine's memory that the server may use. [0.5]")
@click.option("--row-cap", type=whole(1), help="maximum number of rows of a result. [1000000]")
@click.option("--query-seconds", type=whole(1), help="time limit of a query in seconds. [60]")
@click.option(
    "--database",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="use this database file (virtuoso.db) where it lies; none for the one in the server's folder. [none]",
)
@click.option("--show", is_flag=True, help="print virtuoso.ini and the command without starting the server")
@JSON
@verbosity_options
def start(folder: Path | None, show: bool, as_json: bool, **options: Any) -> None:
    """Start the server; the first start creates its database and a random password.

    Later starts use the same options if you omit them. If the server is already running, nothing changes.

    For a database with --database, set KGQA_VIRTUOSO_DBA_PASSWORD to the password of its user dba at the first start; a
    default password, `dba`, is replaced by a random one. If the server that used the database was not shut down
    properly, its transaction log (virtuoso.trx) must be beside it.

    \b
    Examples:
      kgqa virtuoso start
      kgqa virtuoso start --http-port 8891 --sql-port 1112 --memory-share 0.25
      kgqa virtuoso start --database /data/virtuoso.db
    """
    server = Server.at(folder)
    share, bind, database = options["memory_share"], options["bind"], options["database"]
    check_usage(
        (share is not None and not 0 < share <= 1, "--memory-share must be a number above 0 and at most 1."),
        (bind is not None and not _is_ipv4(bind), "--bind must be an IPv4 address; 0.0.0.0 for all of this machine."),
    )
    if database is not None:
        options["database"] = "" if str(database) == "none" else str(database.resolve())
    if show:
        arguments, ini = server.preview(**options)
        print(safe_text(ini))
        print(f"# {clean(' '.join(arguments))}")
        return
    started = server.start(**options, notify=say_clean)
    status = server.status()
    online = f"Virtuoso {clean(status.version)} is online" if started else f"Already running (process {status.pid})"
    print_result(as_json, {**asdict(status), "started": started}, [f"{online}: {status.url}"])
    if not started and any(value is not None for value in options.values()):
        stop = f"kgqa virtuoso stop{clean(server.folder.folder_option)}"
        say(f"kgqa: The options were ignored, because the server is running. To change them, stop it first: {stop}")
    if status.message:
        say(f"kgqa: {clean(status.message)}")


def _is_ipv4(text: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.IPv4Address(text))
    return False


@click.command("status")
@FOLDER
@click.option("--triples", "count", is_flag=True, help="also count the triples, which takes a while on large graphs")
@JSON
def status(folder: Path | None, count: bool, as_json: bool) -> int:
    """Show whether the server is running, its URL, disk usage, and what to do if something is wrong.

    Exit codes: 0 the server is running, 3 it is not running.
    """
    found = Server.at(folder).status(count=count)
    lines = [
        f"{found.state}" + (f" (process {found.pid})" if found.pid else ""),
        f"  endpoint  {found.url}",
        f"  folder    {clean(found.folder)}",
        f"  version   {clean(found.version)}" if found.version else "",
        f"  on disk   {found.disk_bytes / 1e6:,.0f} MB",
        "" if found.triples is None else f"  triples   {found.triples:,}",
        clean(found.message),
    ]
    print_result(as_json, asdict(found), filter(None, lines))
    return 0 if found.state in ("running", "loading") else NOT_RUNNING


@click.command("stop")
@FOLDER
@click.option(
    "--timeout",
    type=Number(0),
    default=600,
    show_default=True,
    help="seconds to wait until the server has ended",
)
@verbosity_options
def stop(folder: Path | None, timeout: float) -> None:
    """Write everything to disk and stop the server."""
    print("Stopped." if Server.at(folder).stop(timeout=timeout) else "The server is not running.")
