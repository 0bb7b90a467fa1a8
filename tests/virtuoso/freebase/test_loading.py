"""Loading a Freebase dump into a server, with interruptions."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pyoxigraph as ox
import pytest

from benchmarks.dump_sample import REPAIRED, UNUSUAL, dump_lines, write_dump
from kgqa.errors import InvalidTerm, LoadError, ServerError
from kgqa.graph.names.server_index import ServerIndex
from kgqa.graph.opening import open_graph
from kgqa.virtuoso.freebase.blocks import BlockJudge, Tally
from kgqa.virtuoso.freebase.judge import Cleaning
from kgqa.virtuoso.freebase.loading import NAME, load_dump
from kgqa.virtuoso.loads import forget_journal
from tests.cli_runner import KGQA
from tests.conftest import SOAK
from tests.virtuoso.conftest import groups_done, remaining_files, wait_for_group

COUNT = 100_000 if SOAK else 8_000
CHUNK = COUNT // 16  # four groups of four
KEPT, TALLY = BlockJudge(Cleaning()).block(b"".join(dump_lines(COUNT, seed=5, broken=0.05)))
TRIPLES = {quad.triple for quad in ox.parse(KEPT, format=ox.RdfFormat.N_TRIPLES)}
NAMES = sum(triple.predicate.value.endswith(("type.object.name", "topic.alias")) for triple in TRIPLES)
_graphs = itertools.count()


@pytest.fixture(scope="module")
def dump(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("dump") / "freebase-rdf-latest.gz"
    write_dump(file, COUNT, seed=5, broken=0.05)
    return file


@pytest.fixture(autouse=True)
def _clean_up_loads(virtuoso_server):
    """Discard the interrupted load of a failed test."""
    yield
    forget_journal(virtuoso_server, NAME)


@pytest.fixture
def options() -> dict:
    return {"graph_iri": f"urn:freebase:{next(_graphs)}", "lines_per_chunk": CHUNK}


def counts(tally: Tally) -> dict:
    return {name: value for name, value in tally.as_json().items() if name != "examples"}


class TestLoad:
    @pytest.mark.soak
    @pytest.mark.slow
    def test_complete_load(self, virtuoso_server, dump, options):
        steps, file_counts = [], []

        def watch(step) -> None:
            steps.append(step)
            # the start of the name: a file that is being renamed may be listed twice
            file_counts.append(len({file.name[:15] for file in virtuoso_server.import_folder.rglob("freebase-0*")}))

        report = load_dump(virtuoso_server, dump, **options, progress=watch)
        assert counts(report.tally) == counts(TALLY)
        assert report.triples == virtuoso_server.triples_of(options["graph_iri"]) == len(TRIPLES)
        assert report.names == NAMES > 0
        assert {step.stage for step in steps} >= {"cleaning", "indexing"}
        assert steps[-1].groups_done == 4 and max(step.bytes_read for step in steps) <= dump.stat().st_size
        assert 0 < max(file_counts) <= 8
        assert remaining_files(virtuoso_server) == set()
        again = load_dump(virtuoso_server, dump, **options)
        assert again.triples == report.triples

    @pytest.mark.soak
    def test_names_are_indexed(self, virtuoso_server, tmp_path, options):
        file = tmp_path / "names.nt"
        line = '<http://rdf.freebase.com/ns/m.0%d>\t<http://rdf.freebase.com/ns/%s>\t"%s"@en\t.\n'
        file.write_text(line % (1, "type.object.name", "Blue Quokka") + line % (2, "common.topic.alias", "quokka king"))
        assert load_dump(virtuoso_server, file, **options).names == 2
        with open_graph(virtuoso_server.url, schema="freebase", view=[options["graph_iri"]]) as graph:
            assert isinstance(graph.names, ServerIndex)
            found = {match.entity.iri[-4:]: match.kind for match in graph.search("quokka")}
        assert found == {"m.01": "label", "m.02": "alias"}

    @pytest.mark.soak
    def test_repaired_and_unusual_lines(self, virtuoso_server, tmp_path, options):
        file = tmp_path / "odd.nt"
        file.write_bytes(b"\n".join([*REPAIRED.values(), *UNUSUAL.values()]) + b"\n")
        report = load_dump(virtuoso_server, file, **options)
        assert report.triples == len(REPAIRED) + len(UNUSUAL) == report.tally.kept
        form = {"query": f"select ?o from <{options['graph_iri']}> {{ ?s ?p ?o }}", "format": "json"}
        with urlopen(virtuoso_server.url, urlencode(form).encode(), timeout=60) as answer:
            values = [row["o"] for row in json.load(answer)["results"]["bindings"]]
        found = {(v["value"], v.get("datatype", "").rpartition("#")[2], v.get("xml:lang", "")) for v in values}
        assert {
            ("4.5", "decimal", ""),
            ("-17", "integer", ""),
            ("12:30:00", "time", ""),
            ("Big Apple", "", "en"),
        } <= found
        assert {('a\nb "c" é 😀', "", ""), ("1969-07-20T20:17:00", "dateTime", ""), ("a\tb", "", "")} <= found
        assert ("http://example.com/東京", "", "") in found


class TestRefusedLoads:
    @pytest.mark.soak
    def test_invalid_graph_iri_and_nothing_to_resume(self, virtuoso_server, dump):
        for graph, message in (
            ("no iri", "no iri. is not an absolute IRI"),
            ("urn:a>b", "is not an absolute IRI"),
            ("http://www.openlinksw.com/schemas/virtrdf#", "is a system graph"),
        ):
            steps = []
            with pytest.raises((LoadError, InvalidTerm), match=message):
                load_dump(virtuoso_server, dump, graph_iri=graph, progress=steps.append)
            assert steps == [] and remaining_files(virtuoso_server) == set()
        with pytest.raises(LoadError, match="no interrupted load"):
            load_dump(virtuoso_server, dump, resume=True)

    @pytest.mark.soak
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "cannot be read"),
            (b"", "no line to load among its 0 lines"),
            (b"\x1f\x8b" + b"x" * 50, "freebase.gz"),
            (
                b"<!DOCTYPE html>\x1b[2J\n<p>404</p>\n",
                r"no line to load among its 2 lines; one of them is: '<!DOCTYPE html>\[2J'",
            ),
            (b'<urn:s>\t<urn:p>\t"hallo"@de\t.\n', "no line to load among its 1 line; .*languages="),
        ],
    )
    def test_invalid_dump(self, virtuoso_server, options, tmp_path, content, message):
        """The message names the problem, and the file does not block another load."""
        file = tmp_path / "freebase.gz"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(LoadError, match=message) as caught:
            load_dump(virtuoso_server, file, **options)
        assert "resume" not in str(caught.value) and remaining_files(virtuoso_server) == set()
        file.write_text("<urn:s>\t<urn:p>\t<urn:o>\t.\n")
        assert load_dump(virtuoso_server, file, **options).triples == 1


class TestInterrupted:
    @pytest.mark.soak
    @pytest.mark.slow
    def test_truncated_dump_other_dump_and_restart(self, virtuoso_server, dump, options, tmp_path):
        cut, journal = tmp_path / "cut.gz", virtuoso_server.folder.path / f"{NAME}.json"
        cut.write_bytes(dump.read_bytes()[:-5000])
        with pytest.raises(LoadError, match="truncated.*Download it again.* are loaded into"):
            load_dump(virtuoso_server, cut, **options)
        assert groups_done(journal) in (2, 3) and virtuoso_server.triples_of(options["graph_iri"]) > 0
        with pytest.raises(LoadError, match="is not the dump of the interrupted load. Give .*restart=True"):
            load_dump(virtuoso_server, dump, resume=True)
        journal.write_text("{")
        with pytest.raises(ServerError, match="cannot be read.*restart=True"):
            load_dump(virtuoso_server, cut, resume=True)
        report = load_dump(virtuoso_server, dump, **options, restart=True)
        assert counts(report.tally) == counts(TALLY) and report.triples == len(TRIPLES)

    @pytest.mark.soak
    @pytest.mark.slow
    @pytest.mark.cli
    def test_kill_9_of_the_loading_process(self, virtuoso_server, dump, options):
        command = [KGQA, "freebase", "load", dump, "--graph-iri", options["graph_iri"], "--lines-per-chunk", CHUNK]
        command += ["--folder", virtuoso_server.folder.path]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        journal = virtuoso_server.folder.path / f"{NAME}.json"
        wait_for_group(process, journal)
        process.kill()
        process.communicate()
        assert 1 <= groups_done(journal) < 4, "it was done before it was killed"
        while virtuoso_server.status().state == "loading":  # the server finishes the group that it has begun
            time.sleep(0.1)
        advice = "A load was interrupted. Resume it: kgqa freebase load DUMP --resume"
        assert virtuoso_server.status().message == advice
        with pytest.raises(LoadError, match="was interrupted.*resume=True.*restart=True"):
            load_dump(virtuoso_server, dump, **options)
        messages = []
        report = load_dump(
            virtuoso_server, dump, resume=True, progress=lambda step: messages.append(virtuoso_server.status().message)
        )
        assert counts(report.tally) == counts(TALLY) and report.names == NAMES
        assert advice not in messages  # while it runs
        assert report.triples == virtuoso_server.triples_of(options["graph_iri"]) == len(TRIPLES)
        assert remaining_files(virtuoso_server) == set()
