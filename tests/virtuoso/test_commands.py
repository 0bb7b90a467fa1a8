"""`kgqa virtuoso ...`, the installation script and the targets of the Makefile."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from kgqa.virtuoso.process import free_port
from kgqa.virtuoso.server import Server
from tests.conftest import ROOT
from tests.virtuoso_server import copied, end

INSTALL = ROOT / "virtuoso" / "install.sh"


@pytest.fixture
def folder(prepared_folder, tmp_path):
    server = Server.at(copied(prepared_folder, tmp_path / "own"))
    yield server.folder.path
    end(server)


@pytest.mark.slow
def test_commands_from_start_to_stop(kgqa, folder):
    def run(*arguments, **environment):
        return kgqa("virtuoso", *arguments, KGQA_VIRTUOSO_FOLDER=str(folder), **environment)

    stopped = run("status")
    assert (stopped.returncode, stopped.out.splitlines()[0]) == (3, "stopped")
    http_port, sql_port = str(free_port()), str(free_port())
    options = ("--http-port", http_port, "--sql-port", sql_port, "--memory-share", "0.02")

    shown = run("start", *options, "--show")
    assert shown.returncode == 0 and f"127.0.0.1:{http_port}" in shown.out
    assert shown.out.splitlines()[-1].endswith(f"+foreground +configfile {folder}/virtuoso.ini")
    assert run("status").returncode == 3

    started = run("start", *options)
    assert (started.returncode, started.err) == (0, "")
    assert started.out.startswith("Virtuoso 07.") and f"http://127.0.0.1:{http_port}/sparql" in started.out

    again = run("start", "--row-cap", "5")
    assert again.returncode == 0 and again.out.startswith("Already running (process ")
    assert "To change them, stop it first: kgqa virtuoso stop" in again.err
    unused = run("start", "--row-cap", "5", "--json")
    assert json.loads(unused.out)["started"] is False and "The options were ignored" in unused.err

    status = run("status", "--json", "--triples")
    data = json.loads(status.out)
    assert (status.returncode, data["state"], data["triples"], data["message"]) == (0, "running", 0, "")
    assert data["url"] == f"http://127.0.0.1:{http_port}/sparql" and Path(f"/proc/{data['pid']}").exists()

    file = folder / "import" / "names.nt"
    file.write_text('<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Åbo akademi"@sv .\n')
    Server.at(folder).load([file], "http://names")
    indexed = run("index", "--graph-iri", "http://names")
    assert (indexed.returncode, indexed.out) == (0, "1 name is indexed.\n"), indexed.err
    assert run("index").returncode == 2
    missing = run("index", "--graph-iri", "http://nothing")
    assert missing.returncode == 1 and "There is no graph <http://nothing> on the server" in missing.err

    printed = run("password-file")
    assert printed.out.strip() == str(folder / "password")
    password = Path(printed.out.strip()).read_text().strip()
    for done in (stopped, shown, started, again, status, indexed, printed):
        assert password not in done.out + done.err

    assert run("stop").out == "Stopped.\n"
    assert run("stop").out == "The server is not running.\n"
    assert run("status").returncode == 3


@pytest.mark.parametrize(
    "option",
    [("--http-port", "99999"), ("--memory-share", "nan"), ("--memory-share", "0"), ("--row-cap", "0")]
    + [("--bind", text) for text in ("example.org", "127.0.0.1\nfoo = bar")],
)
def test_options_that_are_not_possible(kgqa, folder, option):
    refused = kgqa("virtuoso", "start", "--folder", folder, "--show", *option)
    assert (refused.returncode, refused.out) == (2, "") and option[0] in refused.err


def test_errors_have_exit_code_1_and_a_next_step(kgqa, folder, tmp_path):
    nothing = kgqa("virtuoso", "index", "--folder", tmp_path / "none", "--graph-iri", "http://g")
    assert nothing.returncode == 1
    assert f"kgqa virtuoso start --folder {tmp_path / 'none'}" in " ".join(nothing.err.split())
    assert kgqa("virtuoso", "password-file", "--folder", tmp_path / "none").returncode == 1
    hostile = tmp_path / "\x1b[31mred.db"
    hostile.write_text("x")
    started = kgqa("virtuoso", "start", "--database", hostile, "--folder", tmp_path / "none")
    assert started.returncode == 1 and "is not a Virtuoso database" in started.err and "\x1b" not in started.err


# ---- installation ----


def fake_machine(tmp_path: Path, *programs: str) -> dict[str, str]:
    """Return a PATH with only these programs, which record their calls, and the tools that the script needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "env"):
        (folder / name).symlink_to(f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}")
    for program in programs:
        name, _, body = program.partition("=")
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/calls"\n{body or "exit 0"}\n')
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def install(environment: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run(["/bin/sh", str(INSTALL)], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("programs", "status", "words"),
    [
        (["virtuoso-t", "isql-vt", "apt-get"], 0, ["Virtuoso is installed: "]),
        (["my-virtuoso", "my-isql"], 0, ["Virtuoso is installed: "]),
        ([], 1, ["openlink/virtuoso-opensource-7", "VIRTUOSO_T=", "ISQL="]),
        (["apt-get", "id=echo 1000"], 1, ["Run as root: apt-get install"]),
    ],
)
def test_installation_is_left_or_explained(tmp_path, programs, status, words):
    machine, calls = fake_machine(tmp_path, *programs), tmp_path / "calls"
    named = {"VIRTUOSO_T": f"{machine['PATH']}/my-virtuoso", "ISQL": f"{machine['PATH']}/my-isql"}
    done = install({**machine, **(named if "my-isql" in programs else {})})
    assert done.returncode == status and all(word in done.stdout + done.stderr for word in words)
    assert not calls.exists() or "apt-get" not in calls.read_text()


@pytest.mark.parametrize("user", ["0", "1000"])
def test_missing_package_lists_are_fetched(tmp_path, user):
    """The first attempt fails, as in a new container, and the second works after an update."""
    first_attempt_fails = (
        f'case $* in install*) [ -e "{tmp_path}/updated" ];; *update*) : > "{tmp_path}/updated";; esac'
    )
    machine = fake_machine(tmp_path, f"apt-get={first_attempt_fails}", "apt-cache", f"id=echo {user}", 'sudo=exec "$@"')
    assert "not found" not in install(machine).stderr
    calls = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("apt-get")]
    options = "install -y --no-install-recommends virtuoso-opensource-7-bin"
    assert [line.removeprefix("apt-get ") for line in calls] == [options, "update", options]


def test_makefile_passes_arguments_unchanged(tmp_path):
    kgqa_stub = tmp_path / "bin" / "kgqa"
    kgqa_stub.parent.mkdir()
    kgqa_stub.write_text(f'#!/bin/sh\nprintf "<%s>" "$@" >> "{tmp_path}/calls"; echo >> "{tmp_path}/calls"\n')
    kgqa_stub.chmod(0o755)
    hostile = str(tmp_path / "a dump; touch \"x\" 'y' `z`.gz")
    Path(hostile).touch()

    def make(**variables: str) -> subprocess.CompletedProcess:
        command = ["make", "--no-print-directory", "-o", ".venv/.installed", f"BIN={tmp_path}/bin", "freebase"]
        command += [f"{name}={value}" for name, value in variables.items()]
        # variables of the environment with these names are ignored
        environment = {**os.environ, "DB": "/nowhere", "DUMP": "/nowhere"}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    assert make(DUMP=hostile).returncode == 0
    assert make(DUMP=hostile, RESUME="1").returncode == 0
    assert make(DB=hostile).returncode == 0
    assert "make freebase DUMP=" in make().stdout
    assert "File not found" in make(DB="/nowhere").stdout and "Give only one" in make(DB=hostile, DUMP=hostile).stdout
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"<freebase><load><--><{hostile}>",
        f"<freebase><load><--resume><--><{hostile}>",
        "<virtuoso><stop>",
        f"<virtuoso><start><--database><{hostile}>",
    ]
