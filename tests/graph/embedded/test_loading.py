"""Loads: all formats, atomicity, locks, interruption and resumption."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

import pyoxigraph as ox
import pytest

from kgqa.errors import LoadError, StoreBusy, StoreIncomplete
from kgqa.graph.embedded import loading
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.opening import load_into_folder, open_store
from tests.graph.in_process_loads import in_process_loads

TURTLE = """
@prefix : <http://e/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :p :b , :c ; :name "A"@en , "Ä \\"quoted\\" \\\\ tab\\there" .
:b :p :c ; :age 41 ; :born "1983-02-01"^^xsd:date .
:c :p :a ; :text "漢字\\u2028new" .
"""
NUMBER = [f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(50)]
ALL_TRIPLES = "SELECT ?s ?p ?o { ?s ?p ?o }"


def meta(folder: Path):
    return GraphFolder(folder).meta()


def triples(folder: Path) -> set[tuple]:
    with EmbeddedStore(folder, workers=1) as store:
        return set(store.select(ALL_TRIPLES))


@pytest.fixture
def turtle(tmp_path) -> Path:
    file = tmp_path / "data.ttl"
    file.write_text(TURTLE, encoding="utf-8")
    return file


@pytest.fixture
def numbers(tmp_path) -> Path:
    file = tmp_path / "numbers.nt"
    file.write_text("\n".join(NUMBER) + "\n")
    return file


@pytest.mark.usefixtures("loads_in_process")
class TestFormats:
    def test_all_formats_give_the_same_graph(self, tmp_path, turtle, load):
        quads = list(ox.parse(path=str(turtle), format=ox.RdfFormat.TURTLE))
        by_engine = {
            "nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS, "ttl": ox.RdfFormat.TURTLE, "trig": ox.RdfFormat.TRIG,
            "n3": ox.RdfFormat.N3, "rdf": ox.RdfFormat.RDF_XML, "owl": ox.RdfFormat.RDF_XML, "xml": ox.RdfFormat.RDF_XML,
            "jsonld": ox.RdfFormat.JSON_LD,
        }  # fmt: skip
        contents = {ending: ox.serialize(quads, format=format) for ending, format in by_engine.items()}
        for ending, pack in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
            inner = "nt" if ending == "bz2" else "ttl"
            contents[f"{inner}.{ending}"] = pack.compress(contents[inner])
        seen = {}
        for ending, content in contents.items():
            file = tmp_path / f"same.{ending}"
            file.write_bytes(content)
            folder = load(file)
            seen[ending] = meta(folder).fingerprint, meta(folder).triples
        assert set(seen.values()) == {(seen["nt"][0], 9)}, seen

    def test_named_graphs_are_kept(self, tmp_path, load):
        trig = tmp_path / "g.trig"
        trig.write_text("@prefix : <http://e/> . :a :p :b . :g1 { :a :p :c } :g2 { :a :p :c . :a :p :d }")
        folder = load(trig)
        assert meta(folder).triples == 4
        with EmbeddedStore(folder, workers=1) as store:
            assert [row[0].iri for row in store.select("SELECT ?o { <http://e/a> <http://e/p> ?o }")] == ["http://e/b"]
            rows = store.select("SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g ?o")
            assert [(g.iri[-2:], o.iri[-1]) for g, o in rows] == [("g1", "c"), ("g2", "c"), ("g2", "d")]


@pytest.mark.usefixtures("loads_in_process")
class TestSameFileTwice:
    @pytest.mark.parametrize(
        "ending, text, count",
        [
            ("nt", "_:x <http://e/p> _:y .\n_:y <http://e/p> <http://e/b> .\n", 2),
            ("nq", "_:x <http://e/p> _:y _:g .\n", 1),
            ("ttl", "@prefix : <http://e/> . :a :p [ :q [ :r 1 ] ; :s (1 2) ] . _:b :p _:c .", 9),
            ("jsonld", '{"@id": "http://e/a", "http://e/p": [{"http://e/q": 1}, {"http://e/q": 2, "http://e/r": {"http://e/s": "x"}}]}', 6),
            ("rdf", '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><rdf:Description><e:p><rdf:Description e:q="1"/></e:p></rdf:Description></rdf:RDF>', 2),
            ("trig", "@prefix : <http://e/> . [] :p [] . :g { [] :p [] }", 2),
        ],
    )  # fmt: skip
    def test_changes_nothing(self, tmp_path, load, ending, text, count):
        file = tmp_path / f"nodes.{ending}"
        file.write_text(text)
        folder = load(file)
        first = meta(folder)
        assert first.triples == count
        report = load_graph(folder, [file])
        again = meta(folder)
        assert (again.fingerprint, again.triples, report.added) == (first.fingerprint, first.triples, 0)
        with EmbeddedStore(folder, workers=1) as store:
            rows = [*store.select(ALL_TRIPLES), *store.select("SELECT * { GRAPH ?g { ?s ?p ?o } }")]
        assert len(rows) == count and "_:" not in str(rows)


@pytest.mark.usefixtures("loads_in_process")
class TestMalformed:
    def test_fail_keeps_the_old_graph(self, tmp_path, load, turtle):
        folder = load(turtle)
        before, old = meta(folder), triples(folder)
        bad = tmp_path / "bad.nt"
        bad.write_text("\n".join([*NUMBER[:9], "this is no line", *NUMBER[9:]]) + "\n")
        with pytest.raises(LoadError, match=r"bad\.nt, line 10: .*The load was discarded.*on_error=.skip"):
            load_graph(folder, [bad])
        assert meta(folder) == before and triples(folder) == old
        assert sorted(p.name for p in folder.iterdir()) == ["gen-1", "graph.json", "write.lock"]
        load(NUMBER, into=folder)  # the folder can be loaded into
        assert meta(folder).triples == before.triples + 50

    def test_skip_counts_and_reports_lines(self, tmp_path, load):
        first, second = tmp_path / "one.nt", tmp_path / "two.nq"
        first.write_text("\n".join([NUMBER[0], "bad", NUMBER[1], "", "# comment", "worse .", NUMBER[2]]))
        second.write_bytes(b"\xff\n" + NUMBER[3].encode() + b"\n")
        report = load_graph(tmp_path / "g", [first, second], on_error="skip")
        assert (report.files, report.lines, report.malformed, report.added, report.triples) == (2, 9, 3, 4, 4)
        assert [(e.file, e.line) for e in report.examples] == [("one.nt", 2), ("one.nt", 6), ("two.nq", 1)]
        assert all(e.message for e in report.examples)
        assert triples(tmp_path / "g") == triples(load(NUMBER[:4]))

    @pytest.mark.parametrize(
        "ending, text, line",
        [
            ("ttl", "@prefix : <http://e/> .\n:a :p :b .\n:a :p ;;; ? .\n", 3),
            ("trig", "@prefix : <http://e/> .\n:g {\n:a :p\n}\n}\n", 4),
            ("rdf", "<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n<open>\n</rdf:RDF>\n", None),
            ("jsonld", '{"@id": "http://e/a",\n "http://e/p": }\n', 2),
            ("n3", "@prefix : <http://e/> .\n:a :p :b .\n:a => .\n", 3),
        ],
    )  # fmt: skip
    def test_other_formats_name_the_line(self, tmp_path, ending, text, line):
        file = tmp_path / f"broken.{ending}"
        file.write_text(text)
        where = rf", line {line}" if line else ""
        with pytest.raises(LoadError, match=rf"broken\.{ending}{where}.*The load was discarded"):
            load_graph(tmp_path / "g", [file], on_error="skip")
        assert not (tmp_path / "g" / "graph.json").exists()

    def test_what_is_no_file_is_refused(self, tmp_path):
        (tmp_path / "folder.nt").mkdir()
        os.mkfifo(tmp_path / "pipe.nt")
        for name, reason in (
            ("nothing", "cannot be read"),
            ("folder", "cannot be read"),
            ("pipe", "not a regular file"),
        ):
            with pytest.raises(LoadError, match=rf"{name}\.nt.* {reason}"):
                load_graph(tmp_path / "g", [tmp_path / f"{name}.nt"])
        with pytest.raises(LoadError, match="No file to load"):
            load_into_folder([], tmp_path / "g")
        with pytest.raises(LoadError, match="No file to load"):
            load_graph(tmp_path / "g", [])
        assert not (tmp_path / "g").exists()


class TestLocks:
    def test_first_load_in_progress(self, tmp_path):
        (tmp_path / "g" / "gen-1").mkdir(parents=True)
        (tmp_path / "g" / "gen-1" / "loading.json").write_text("{}")
        folder = GraphFolder(tmp_path / "g")
        assert not folder.is_being_written()
        with folder.write_lock():
            assert folder.is_being_written()
            with pytest.raises(StoreBusy, match="Another process is loading data into"):
                open_store(tmp_path / "g")
        assert not folder.is_being_written()

    def test_generation_in_use_is_kept_until_closed(self, load):
        path = load(NUMBER[:2])
        with EmbeddedStore(path, workers=1) as reader:
            load(NUMBER[2:4], into=path)
            assert len(reader.select("SELECT * { ?s ?p ?o }")) == 2
            assert (path / "gen-1").is_dir() and (path / "gen-2").is_dir()
        load(NUMBER[4:6], into=path)
        assert [p.name for p in sorted(path.glob("gen-*"))] == ["gen-3"]
        assert GraphFolder(path).meta().triples == 6


LOAD = """
import sys
from pathlib import Path
from kgqa.graph.embedded.loading import load_graph
load_graph(Path(sys.argv[1]), [Path(sys.argv[2])], progress=lambda p: print(p.stage, flush=True))
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory) -> Path:
    """Return a file that takes about a second to load, long enough to interrupt."""
    file = tmp_path_factory.mktemp("big") / "big.nt"
    with open(file, "w") as out:
        out.writelines(f"<http://e/{n}> <http://e/p{n % 7}> <http://e/{n * 31 % 100_003}> .\n" for n in range(100_000))
        out.write("_:x <http://e/p> _:y .\n")
    return file


@pytest.fixture(scope="module")
def expected(big, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "g"
    load_graph(folder, [big])
    return meta(folder)


@pytest.mark.slow
class TestInterrupted:
    @pytest.mark.parametrize("who", ["worker", "parent"])
    def test_killed(self, tmp_path, big, expected, python, wait_until, users_of, who):
        folder = tmp_path / "g"
        parent = python(LOAD, folder, big)
        assert parent.stdout.readline().startswith("loading")
        (worker,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        os.kill(int(worker) if who == "worker" else parent.pid, signal.SIGKILL)
        errors = parent.communicate(timeout=20)[1]
        assert who == "parent" or re.search("LoadError: The loading process died.*resume", errors)
        ended = wait_until(lambda: not users_of(folder) and not GraphFolder(folder).is_being_written())
        assert ended, "a worker or a lock outlived the load"
        with pytest.raises(StoreIncomplete, match="interrupted before it was complete.*resume=True"):
            open_store(folder)
        with pytest.raises(LoadError, match="earlier load .* was interrupted.*resume=True.*restart=True"):
            load_graph(folder, [big])
        report = load_graph(folder, resume=True)
        assert (report.fingerprint, report.triples) == (expected.fingerprint, expected.triples)
        assert len(triples(folder)) == expected.triples
        with pytest.raises(LoadError, match="no interrupted load"):
            load_graph(folder, resume=True)

    def test_resume(self, tmp_path, load, loads_in_process):
        def interrupt(progress):
            raise KeyboardInterrupt

        folder, file = tmp_path / "g", tmp_path / "mine.nt"
        file.write_text("\n".join(NUMBER) + "\n")
        with pytest.raises(KeyboardInterrupt):
            load_graph(folder, [file], progress=interrupt, schema="rdfs", settings={"walks": "free"})
        content, journal = file.read_text(), folder / "gen-1" / "loading.json"
        file.write_text(content + "\n")
        with pytest.raises(LoadError, match=r"mine\.nt has changed since the interrupted load.*restart=True"):
            load_graph(folder, resume=True)
        file.write_text(content)
        written = journal.read_text()
        journal.write_text('{"generation": 1')
        with pytest.raises(LoadError, match=r"loading\.json cannot be read.*restart=True"):
            load_graph(folder, resume=True)
        journal.write_text(written)
        load_graph(folder, resume=True)
        after = meta(folder)
        assert (after.triples, after.schema, after.settings) == (50, "rdfs", {"walks": "free"})

    def test_a_load_goes_on_in_the_middle_of_a_file(self, tmp_path, big, expected, monkeypatch):
        """Lines that the journal calls done are not loaded again, and the result is the same."""
        segments: list[int] = []

        class Killed(BaseException):
            pass

        def save(journal: loading.Journal, folder: GraphFolder) -> None:
            saved(journal, folder)
            segments.append(journal.files[0].lines_done)
            if first and segments[-1] >= 40_000:
                raise Killed

        saved, first = loading.Journal.save, True
        monkeypatch.setattr(loading.Journal, "save", save)
        monkeypatch.setattr(loading, "SEGMENT_BYTES", 1 << 20)
        with in_process_loads():
            with pytest.raises(Killed):
                load_graph(tmp_path / "g", [big])
            first, done = False, segments[-1]
            segments.clear()
            report = load_graph(tmp_path / "g", resume=True)
        assert done < segments[0] and segments[-1] == 100_001
        assert (report.fingerprint, report.triples, report.lines) == (expected.fingerprint, expected.triples, 100_001)
        assert len(triples(tmp_path / "g")) == expected.triples


NO_PERMISSION = """
import os, sys
from pathlib import Path
from kgqa.errors import KgqaError
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
base = Path(sys.argv[1])
os.setgid(65534)
os.setuid(65534)
def attempt(do):
    try:
        print("done", do(), flush=True)
    except KgqaError as error:
        print(type(error).__name__, error, flush=True)
attempt(lambda: load_graph(base / "g", [base / "numbers.nt"]))
attempt(lambda: EmbeddedStore(base / "g", writable=True))
attempt(lambda: EmbeddedStore(base / "secret"))
attempt(lambda: load_graph(base / "g", [base / "secret.nt"]))
if os.access(sys.executable, os.X_OK):
    attempt(lambda: len(EmbeddedStore(base / "g", workers=1).select("SELECT * { ?s ?p ?o }")))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_no_permission(load, python, request):
    """The load runs as another user, because root may read everything."""
    public = Path(tempfile.mkdtemp())  # other users may not enter the folders of pytest
    request.addfinalizer(lambda: shutil.rmtree(public))
    public.chmod(0o755)
    load(NUMBER[:2], into=public / "g")
    load(NUMBER[:2], into=public / "secret")
    (public / "secret" / "graph.json").chmod(0o600)
    for name in ("numbers.nt", "secret.nt"):
        (public / name).write_text(NUMBER[5] + "\n")
    (public / "secret.nt").chmod(0o600)
    out, errors = python(NO_PERMISSION, public, cwd="/").communicate(timeout=60)
    lines = out.splitlines()
    assert len(lines) >= 4, errors
    assert all(line.startswith("StoreUnavailable No permission to write to") for line in lines[:2]), lines
    assert "graph.json cannot be read: Permission denied" in lines[2], lines[2]
    assert lines[3].startswith("LoadError") and "secret.nt cannot be read: Permission denied" in lines[3]
    assert lines[4:] in ([], ["done 2"])  # reading needs no permission to write
    assert meta(public / "g").triples == 2
