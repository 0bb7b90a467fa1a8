"""`kgqa freebase`: output, errors and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from benchmarks.dump_sample import dump_lines, write_dump
from kgqa.virtuoso.freebase.blocks import BlockJudge
from kgqa.virtuoso.freebase.judge import Cleaning
from kgqa.virtuoso.freebase.loading import NAME
from kgqa.virtuoso.loads import forget_journal
from tests.cli_runner import KGQA
from tests.virtuoso.conftest import wait_for_group

COUNT = 4000
KEPT, TALLY = BlockJudge(Cleaning()).block(b"".join(dump_lines(COUNT, seed=9, broken=0.1)))
TRIPLES = len(set(KEPT.splitlines()))


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    file = tmp_path_factory.mktemp("dump") / "freebase.gz"
    write_dump(file, COUNT, seed=9, broken=0.1)
    return file


class TestClean:
    def test_clean_into_a_folder(self, kgqa, dump, tmp_path):
        done = kgqa("freebase", "clean", dump, "--out", "cleaned/")
        assert done.returncode == 0, done.err
        files = sorted((tmp_path / "cleaned").iterdir())
        assert [file.name for file in files] == ["freebase-000001.nt"]
        assert sorted(files[0].read_bytes().splitlines()) == sorted(KEPT.splitlines())
        assert f"{COUNT:,} lines: {TALLY.kept:,} kept" in done.out
        assert f"{TALLY.dropped['malformed IRI']:,}  dropped: malformed IRI" in done.out
        assert "repaired: quotes around a number" in done.out
        again = kgqa("freebase", "clean", dump, "--out", "cleaned/")
        assert again.returncode == 1 and "Choose an empty folder" in again.err

    @pytest.mark.parametrize("command", [["clean"], ["load"]])
    def test_dry_run(self, kgqa, dump, tmp_path, command):
        done = kgqa("freebase", *command, dump, "--dry-run", "--json", KGQA_VIRTUOSO_FOLDER=str(tmp_path / "none"))
        found = json.loads(done.stdout)
        assert (found["lines"], found["kept"], found["dropped"]) == (COUNT, TALLY.kept, TALLY.as_json()["dropped"])
        assert found["lines"] == found["kept"] + sum(found["dropped"].values())
        assert list(tmp_path.iterdir()) == []

    def test_languages_and_noise(self, kgqa, dump):
        def run(*options: str) -> dict:
            return json.loads(kgqa("freebase", "clean", dump, "--dry-run", "--json", *options).stdout)

        english, german, all_languages = run(), run("--languages", "de"), run("--languages", "all", "--keep-noise")
        assert english["dropped"]["other language"] != german["dropped"]["other language"]
        assert not [reason for reason in all_languages["dropped"] if reason.startswith(("noise", "other language"))]

    def test_terminal_escapes_in_a_dump_are_removed(self, kgqa, tmp_path):
        (tmp_path / "evil.nt").write_bytes(b"\x1b[2J\x1b]0;owned\x07<s>\t<p>\t\xc2\x9b31m\xe2\x80\xaeo\t.\n" * 3)
        for options in ([], ["--json"]):
            done = kgqa("freebase", "clean", "evil.nt", "--dry-run", *options)
            assert not any((ord(c) < 32 and c != "\n") or c in "\x7f\x9b\u202e" for c in done.out), done.out
            assert "not three terms" in done.out


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["clean", "x.gz"], "Give --out FOLDER to write files, or --dry-run"),
            (["load", "x.gz", "--resume", "--restart"], "--resume and --restart cannot be combined"),
            (["load", "x.gz", "--resume", "--languages", "de", "--keep-noise"], "Omit --languages, --keep-noise"),
            (["load", "x.gz", "--dry-run", "--resume"], "Omit --resume"),
            (["clean", "x.gz", "--dry-run", "--languages", "all,en"], "tags such as en,de, or all"),
        ],
    )
    def test_usage_errors(self, kgqa, arguments, message):
        done = kgqa("freebase", *arguments)
        assert done.returncode == 2 and message in " ".join(done.err.split())

    def test_missing_dump_and_server(self, kgqa, dump, tmp_path):
        done = kgqa("freebase", "clean", "nothing.gz", "--dry-run")
        assert done.returncode == 1 and "cannot be read" in done.err and "Check the path" in done.err
        done = kgqa("freebase", "load", dump, "--folder", tmp_path / "none")
        assert done.returncode == 1 and "kgqa virtuoso start" in done.err


@pytest.mark.cli
@pytest.mark.slow
def test_ctrl_c_names_the_command_to_resume(kgqa, virtuoso_server, dump):
    graph, folder = "urn:freebase:ctrl-c", virtuoso_server.folder.path
    command = [KGQA, "freebase", "load", dump, "--graph-iri", graph, "--lines-per-chunk", 50, "--folder", folder]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_group(process, folder / f"{NAME}.json")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=600)
        assert process.returncode == 130 and "Traceback" not in error and error.count("Stopped.") == 1
        assert f"are loaded into <{graph}>. Resume: kgqa freebase load {dump} --resume" in " ".join(error.split())
        assert not list(virtuoso_server.import_folder.rglob("freebase-0*"))
        done = kgqa("freebase", "load", dump, "--resume", "--folder", folder)
        assert done.returncode == 0 and virtuoso_server.triples_of(graph) == TRIPLES, done.err
        assert f"<{graph}> has {TRIPLES:,} triples" in done.out and "names and aliases" in done.out
        assert f"{COUNT:,} lines: {TALLY.kept:,} kept" in done.out
    finally:
        process.kill()
        forget_journal(virtuoso_server, NAME)
