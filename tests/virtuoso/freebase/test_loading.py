"""Loading a Freebase dump into a server, with interruptions."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pyoxigraph as ox
import pytest
from kgqa.virtuoso.bulk.journal import forget_journal, read_journal
from kgqa.virtuoso.bulk.loader import TABLE
from kgqa.virtuoso.freebase.dump.layout import MAX_FILES
from kgqa.virtuoso.freebase.dump.lines import BlockJudge
from kgqa.virtuoso.freebase.dump.tally import Tally
from kgqa.virtuoso.freebase.journal import NAME, FreebaseJournal, LoadOptions
from kgqa.virtuoso.instance.processes import lock_owner
from kgqa.virtuoso.server.server import Server

from benchmarks.dump_sample import REPAIRED, UNUSUAL, dump_lines, write_dump
from kgqa.errors import LoadError, ServerError
from kgqa.graph.names.server_names import ServerNames
from kgqa.graph.opening import open_graph
from kgqa.virtuoso.freebase import loading as freebase
from kgqa.virtuoso.freebase.cleaning import Cleaner
from kgqa.virtuoso.freebase.loading import REFUSED_BY_SERVER, load_dump
from tests.cli_runner import KGQA
from tests.conftest import SOAK

COUNT = 400_000 if SOAK else 8_000
CHUNK = COUNT // 16  # four groups of four
KEPT, TALLY = BlockJudge(LoadOptions().cleaning()).block(b"".join(dump_lines(COUNT, seed=5, broken=0.05)))
TRIPLES = {quad.triple for quad in ox.parse(KEPT, format=ox.RdfFormat.N_TRIPLES)}
NAMES = sum(triple.predicate.value.endswith(("type.object.name", "topic.alias")) for triple in TRIPLES)
_graphs = itertools.count()
_existing_files: set[str] = set()


@pytest.fixture(scope="module")
def dump(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("dump") / "freebase-rdf-latest.gz"
    write_dump(file, COUNT, seed=5, broken=0.05)
    return file


@pytest.fixture(autouse=True)
def _clean_up_loads(virtuoso_server):
    """Discard the interrupted load of a failed test, and ignore files left by other tests."""
    _existing_files.update(str(path) for path in virtuoso_server.import_folder.rglob("*"))
    yield
    forget_journal(virtuoso_server.folder, NAME)


@pytest.fixture
def options() -> LoadOptions:
    return LoadOptions(graph_iri=f"urn:freebase:{next(_graphs)}", lines_per_chunk=CHUNK)


def ask(server: Server, query: str) -> list[dict[str, dict[str, str]]]:
    form = urlencode({"query": query, "format": "application/sparql-results+json"}).encode()
    with urlopen(server.url, form, timeout=60) as answer:
        return json.load(answer)["results"]["bindings"]


def count(server: Server, graph: str) -> int:
    return int(server.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph,))[0][0])


def counts(tally: Tally) -> dict:
    return {name: value for name, value in tally.as_json().items() if name != "examples"}


def remaining_files(server: Server) -> list[str]:
    """Return the files of a load that are in the server's folder."""
    journals = [name for name in (f"{NAME}.json", "loading.json") if (server.folder.path / name).exists()]
    return journals + [str(path) for path in server.import_folder.rglob("*") if str(path) not in _existing_files]


class TestLoad:
    @pytest.mark.slow
    def test_complete_load(self, virtuoso_server, dump, options):
        steps, file_counts = [], []

        def watch(step) -> None:
            steps.append(step)
            # the start of the name: a file that is being renamed may be listed twice
            file_counts.append(len({file.name[:15] for file in virtuoso_server.import_folder.rglob("freebase-0*")}))

        report = load_dump(virtuoso_server, dump, options=options, progress=watch)
        assert counts(report.tally) == counts(TALLY)
        assert report.triples == count(virtuoso_server, options.graph_iri) == len(TRIPLES)
        assert report.names == NAMES > 0
        assert {"cleaning", "loading", "indexing", "total"} == set(report.seconds)
        assert {step.stage for step in steps} >= {"cleaning", "loading", "indexing"}
        assert steps[-1].groups_done == 4 and max(step.bytes_read for step in steps) <= dump.stat().st_size
        assert 0 < max(file_counts) <= MAX_FILES
        assert remaining_files(virtuoso_server) == []
        again = load_dump(virtuoso_server, dump, options=options)
        assert again.triples == report.triples

    def test_names_are_indexed(self, virtuoso_server, tmp_path, options):
        file = tmp_path / "names.nt"
        line = '<http://rdf.freebase.com/ns/m.0%d>\t<http://rdf.freebase.com/ns/%s>\t"%s"@en\t.\n'
        file.write_text(line % (1, "type.object.name", "Blue Quokka") + line % (2, "common.topic.alias", "quokka king"))
        assert load_dump(virtuoso_server, file, options=options).names == 2
        with open_graph(virtuoso_server.url, schema="freebase", view=[options.graph_iri]) as graph:
            assert isinstance(graph.names, ServerNames)
            found = {match.entity.iri[-4:]: match.kind for match in graph.search("quokka")}
        assert found == {"m.01": "label", "m.02": "alias"}

    def test_repaired_and_unusual_lines(self, virtuoso_server, tmp_path, options):
        file = tmp_path / "odd.nt"
        file.write_bytes(b"\n".join([*REPAIRED.values(), *UNUSUAL.values()]) + b"\n")
        report = load_dump(virtuoso_server, file, options=options)
        assert report.triples == len(REPAIRED) + len(UNUSUAL) == report.tally.kept
        values = [row["o"] for row in ask(virtuoso_server, f"select ?o from <{options.graph_iri}> {{ ?s ?p ?o }}")]
        found = {(v["value"], v.get("datatype", "").rpartition("#")[2], v.get("xml:lang", "")) for v in values}
        assert {
            ("4.5", "decimal", ""),
            ("-17", "integer", ""),
            ("12:30:00", "time", ""),
            ("Big Apple", "", "en"),
        } <= found
        assert {('a\nb "c" é 😀', "", ""), ("1969-07-20T20:17:00", "dateTime", ""), ("a\tb", "", "")} <= found
        assert ("http://example.com/東京", "", "") in found

    def test_keep_noise(self, virtuoso_server, tmp_path, options):
        file = tmp_path / "noise.nt"
        lines = list(dict.fromkeys(dump_lines(200, broken=0)))
        file.write_bytes(b"".join(lines))
        options = LoadOptions(options.graph_iri, ("all",), True, CHUNK)
        report = load_dump(virtuoso_server, file, options=options)
        assert report.tally.dropped == {} and report.triples == report.tally.kept == len(lines)

    @pytest.mark.slow
    def test_lines_rejected_by_the_server_are_counted(self, virtuoso_server, dump, options, monkeypatch):
        """A line that the server rejects is dropped alone."""
        refused = b'<urn:s>\t<urn:p>\t"<a>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>\t.\n'

        class CleanerWithRejectedLine(Cleaner):
            def wait(self, number, **more):
                group = super().wait(number, **more)
                if number != 1:
                    return group
                lines = group.files[1].read_bytes().splitlines(keepends=True)
                group.files[1].write_bytes(b"".join([*lines[:20], refused, *lines[20:]]))
                group.tally.add(Tally(lines=1, kept=1))
                return group

        monkeypatch.setattr(freebase, "Cleaner", CleanerWithRejectedLine)
        report = load_dump(virtuoso_server, dump, options=options)
        assert report.tally.dropped[REFUSED_BY_SERVER] == 1 and report.tally.kept == TALLY.kept
        assert report.triples == len(TRIPLES)
        assert "XML" in report.tally.examples[REFUSED_BY_SERVER][0]["text"]
        assert remaining_files(virtuoso_server) == []


class TestRefusedLoads:
    def test_stopped_server(self, stopped_server, dump):
        with pytest.raises(ServerError, match="is not running. Start it: kgqa virtuoso start"):
            load_dump(stopped_server, dump)

    def test_missing_dump(self, virtuoso_server, tmp_path, options):
        with pytest.raises(LoadError, match="cannot be read"):
            load_dump(virtuoso_server, tmp_path / "nothing.gz", options=options)
        assert remaining_files(virtuoso_server) == []

    @pytest.mark.parametrize(
        ("graph", "message"),
        [
            ("no iri", "no iri is not an IRI"),
            ("freebase", "is not an IRI"),
            ("urn:a>b", "is not an IRI"),
            ("http://www.openlinksw.com/schemas/virtrdf#", "is a system graph"),
        ],
    )
    def test_invalid_graph_iri(self, virtuoso_server, dump, graph, message):
        steps = []
        with pytest.raises(LoadError, match=message):
            load_dump(virtuoso_server, dump, options=LoadOptions(graph), progress=steps.append)
        assert steps == [] and remaining_files(virtuoso_server) == []

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b"\x1f\x8b" + b"x" * 50, "freebase.gz"),
            (b"<!DOCTYPE html>\x1b[2J\n<p>404</p>\n", r"none of its 2 lines is a triple.*'<!DOCTYPE html>\[2J'"),
            (b'<urn:s>\t<urn:p>\t"hallo"@de\t.\n', "noise or in other languages: 1 of 1 line.*--languages"),
        ],
    )
    def test_invalid_dump(self, virtuoso_server, options, tmp_path, content, message):
        """The message names the problem, and the file does not block another load."""
        file = tmp_path / "freebase.gz"
        file.write_bytes(content)
        with pytest.raises(LoadError, match=message) as caught:
            load_dump(virtuoso_server, file, options=options)
        assert "resume" not in str(caught.value) and remaining_files(virtuoso_server) == []
        file.write_text("<urn:s>\t<urn:p>\t<urn:o>\t.\n")
        assert load_dump(virtuoso_server, file, options=options).triples == 1

    def test_nothing_to_resume(self, virtuoso_server, dump):
        with pytest.raises(LoadError, match="no interrupted load.*kgqa freebase load"):
            load_dump(virtuoso_server, dump, resume=True)

    def test_second_load_is_refused(self, virtuoso_server, tmp_path, options):
        dump = tmp_path / "small.nt"
        dump.write_text("<urn:s>\t<urn:p>\t<urn:o>\t.\n")
        refused = []

        def second(step) -> None:
            if not refused:
                with pytest.raises(ServerError, match="Another kgqa process is loading"):
                    load_dump(virtuoso_server, dump, options=options)
                refused.append(step)

        assert load_dump(virtuoso_server, dump, options=options, progress=second).triples == 1
        assert refused


class TestInterrupted:
    @pytest.mark.slow
    def test_ctrl_c_and_resume(self, virtuoso_server, dump, options):
        def stop(step) -> None:
            if step.stage == "cleaning" and step.groups_done == 1:
                raise KeyboardInterrupt

        with pytest.raises(
            KeyboardInterrupt, match=r"groups\) are loaded into <urn.*>. Resume: kgqa freebase load .* --resume"
        ):
            load_dump(virtuoso_server, dump, options=options, progress=stop)
        journal = read_journal(virtuoso_server.folder, NAME, FreebaseJournal)
        # the group in progress was finished first
        assert journal.groups_done in (2, 3) and journal.tally.lines == journal.groups_done * 4 * CHUNK
        assert 0 < count(virtuoso_server, options.graph_iri) < len(TRIPLES)
        status = virtuoso_server.status()
        assert status.state == "running" and status.message == (
            f"A load into <{options.graph_iri}> was interrupted. Resume it: kgqa freebase load DUMP --resume"
            f" --folder {virtuoso_server.folder.path}"
        )
        with pytest.raises(LoadError, match="was interrupted after .* lines .*resume=True.*restart=True"):
            load_dump(virtuoso_server, dump, options=options)
        messages = set()

        def look(step) -> None:
            messages.add(virtuoso_server.status().message)

        report = load_dump(virtuoso_server, dump, resume=True, progress=look)
        assert counts(report.tally) == counts(TALLY) and report.triples == len(TRIPLES)
        assert remaining_files(virtuoso_server) == [] and virtuoso_server.status().message == ""
        assert not [text for text in messages if "freebase load" in text]  # no advice to resume while it runs

    @pytest.mark.slow
    def test_restart(self, virtuoso_server, dump, options):
        self.interrupt_load(virtuoso_server, dump, options)
        report = load_dump(virtuoso_server, dump, options=options, restart=True)
        assert counts(report.tally) == counts(TALLY) and report.triples == len(TRIPLES)

    def test_changed_dump_or_options_are_refused(self, virtuoso_server, dump, options, tmp_path, monkeypatch):
        self.interrupt_load(virtuoso_server, dump, options)
        (tmp_path / "other.gz").write_bytes(dump.read_bytes()[:-1])
        with pytest.raises(LoadError, match="is not the dump of the interrupted load. Give .*restart=True"):
            load_dump(virtuoso_server, tmp_path / "other.gz", resume=True)
        with pytest.raises(LoadError, match="other options: graph iri, languages. Omit these"):
            load_dump(virtuoso_server, dump, options=LoadOptions("urn:x", ("de",), lines_per_chunk=CHUNK), resume=True)
        with monkeypatch.context() as patch:
            patch.setattr("kgqa.virtuoso.freebase.journal.freebase_rules", lambda: ())
            with pytest.raises(LoadError, match="noise rules of this version.*restart=True"):
                load_dump(virtuoso_server, dump, resume=True)
        (virtuoso_server.folder.path / f"{NAME}.json").write_text("{")
        assert "<unknown graph: the journal is damaged> was interrupted" in virtuoso_server.status().message
        with pytest.raises(LoadError, match="is damaged.*restart=True"):
            load_dump(virtuoso_server, dump, resume=True)

    @pytest.mark.slow
    @pytest.mark.cli
    def test_kill_9_of_the_loading_process(self, virtuoso_server, dump, options):
        command = [KGQA, "freebase", "load", dump, "--graph-iri", options.graph_iri, "--lines-per-chunk", CHUNK]
        command += ["--folder", virtuoso_server.folder.path]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        journal = virtuoso_server.folder.path / f"{NAME}.json"
        assert wait_until(lambda: process.poll() is not None or groups_done(journal) >= 1, 60)
        process.kill()
        process.communicate()
        assert 1 <= groups_done(journal) < 4, "it was done before it was killed"
        done = subprocess.run(
            [KGQA, "freebase", "load", str(dump), "--resume", "--folder", str(virtuoso_server.folder.path), "--json"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert {name: report[name] for name in counts(TALLY)} == counts(TALLY)
        assert (report["triples"], report["names"]) == (len(TRIPLES), NAMES)
        assert count(virtuoso_server, options.graph_iri) == len(TRIPLES)
        assert remaining_files(virtuoso_server) == []

    @pytest.mark.slow
    def test_kill_9_of_the_server(self, own_server, dump, options):
        killed = []

        def kill(step) -> None:
            if step.groups_done == 1 and not killed:
                killed.append(lock_owner(own_server.folder.lock).pid)
                os.kill(killed[0], signal.SIGKILL)

        with pytest.raises(
            ServerError, match="kgqa virtuoso start.* loaded into .* Resume: kgqa freebase load .* --resume"
        ):
            load_dump(own_server, dump, options=options, progress=kill)
        with pytest.raises(ServerError, match="is not running"):
            load_dump(own_server, dump, resume=True)
        own_server.start()
        report = load_dump(own_server, dump, resume=True)
        assert counts(report.tally) == counts(TALLY) and report.triples == len(TRIPLES)
        assert remaining_files(own_server) == []

    @pytest.mark.slow
    def test_server_stopped_during_a_load(self, own_server, dump, options):
        stopped = []

        def stop(step) -> None:
            if step.groups_done == 1 and not stopped:
                stopped.append(own_server.stop())

        # the message depends on whether the server ended during a request or before it
        status = (
            rf"kgqa virtuoso start --folder {own_server.folder.path}( \(it recovers by itself\))?\. "
            ".*loaded into .* Resume: kgqa .* --resume"
        )
        with pytest.raises(ServerError, match=status) as caught:
            load_dump(own_server, dump, options=options, progress=stop)
        assert stopped == [True] and "password" not in str(caught.value)
        own_server.start()
        assert load_dump(own_server, dump, resume=True).triples == len(TRIPLES)

    def test_truncated_dump_keeps_loaded_groups(self, virtuoso_server, dump, options, tmp_path):
        (tmp_path / "cut.gz").write_bytes(dump.read_bytes()[:-5000])
        with pytest.raises(LoadError, match="truncated.*Download it again.* are loaded into"):
            load_dump(virtuoso_server, tmp_path / "cut.gz", options=options)
        assert read_journal(virtuoso_server.folder, NAME, FreebaseJournal).groups_done == 3
        assert count(virtuoso_server, options.graph_iri) > 0

    def test_interruption_before_indexing(self, virtuoso_server, dump, options):
        def stop(step) -> None:
            if step.stage == "indexing":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt, match="4 groups"):
            load_dump(virtuoso_server, dump, options=options, progress=stop)
        steps = []
        report = load_dump(virtuoso_server, dump, resume=True, progress=steps.append)
        assert {step.stage for step in steps} == {"indexing"}
        assert counts(report.tally) == counts(TALLY) and report.names == NAMES

    @pytest.mark.slow
    def test_resume_needs_the_same_database(self, own_server, dump, options, tmp_path):
        """An older copy of the database has less of the load than the journal lists."""

        def stop(at: int):
            def stop(step) -> None:
                if step.groups_done == at:
                    raise KeyboardInterrupt

            return stop

        folder = own_server.folder
        with pytest.raises(KeyboardInterrupt):
            load_dump(own_server, dump, options=options, progress=stop(1))
        own_server.stop()
        older = shutil.copy(folder.database, tmp_path / "older.db")
        own_server.start()
        with pytest.raises(KeyboardInterrupt):
            load_dump(own_server, dump, resume=True, progress=stop(3))
        own_server.stop()
        newer = shutil.copy(folder.database, tmp_path / "newer.db")
        shutil.copy(older, folder.database)
        own_server.start()
        with pytest.raises(LoadError, match="another database or an older copy.*again: restart=True"):
            load_dump(own_server, dump, resume=True)
        own_server.stop()
        shutil.copy(newer, folder.database)
        own_server.start()
        assert load_dump(own_server, dump, resume=True).triples == len(TRIPLES)
        assert own_server.sql(f"select * from {TABLE}") == []

    @staticmethod
    def interrupt_load(server: Server, dump: Path, options: LoadOptions) -> None:
        def stop(step) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            load_dump(server, dump, options=options, progress=stop)


def wait_until(condition, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not condition():
        time.sleep(0.02)
    return condition()


def groups_done(journal: Path) -> int:
    try:
        return json.loads(journal.read_text())["groups_done"]
    except FileNotFoundError:
        return 0
