"""Damaged and untrusted graph folders: every value is checked, and nothing outside the folder is changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings

from kgqa.errors import KgqaError, StoreUnavailable
from kgqa.graph.embedded.loading import discard_interrupted, load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.opening import open_graph, open_store
from kgqa.storage.cache import Cache
from tests.conftest import SOAK
from tests.hostile_files import as_json, hostile, run_limited

NAME = '<http://e/1> <http://www.w3.org/2000/01/rdf-schema#label> "{}"@en .\n'
JOURNAL = {
    "on_error": "fail",
    "files": [{"path": "/x.nt", "format": ".nt", "size": 1, "sha256": "0" * 64, "lines_done": 0}],
    "schema": "",
    "settings": {"walks": "free"},
}
RECORD = {
    "generation": 1,
    "schema": "rdfs",
    "settings": {"walks": "free", "mediator_hop": "free"},
    "files": [{"path": "/x.nt", "sha256": "0" * 64}],
    "id": "0" * 32,
    "graphs": {"": {"triples": 1, "sum": "0" * 64}},
}
MAX_EXAMPLES = 100 if SOAK else 5


def make(folder: Path, name: str = "one") -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    (folder.parent / "facts.nt").write_text(NAME.format(name))
    load_graph(folder, [folder.parent / "facts.nt"], schema="rdfs")
    return folder


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("foreign") / "g")


@pytest.fixture
def copy(graph, tmp_path) -> Path:
    """Return a copy of the graph folder to damage, beside a file that must not change."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "letter").write_text("dear")
    return Path(shutil.copytree(graph, tmp_path / "a" / "g"))


def untouched(tmp_path: Path) -> bool:
    inside = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    outside = {path for path in inside if not path.startswith("a/")}
    return outside == {"a", "victim", "victim/letter"} and (tmp_path / "victim" / "letter").read_text() == "dear"


class TestNoGraph:
    def test_missing_folder(self, tmp_path):
        with pytest.raises(StoreUnavailable, match="There is no graph at .*nowhere.*load_into_"):
            open_store(tmp_path / "nowhere")
        assert not (tmp_path / "nowhere").exists()

    def test_folder_with_other_files(self, tmp_path):
        (tmp_path / "letter.nt").write_text("dear")
        with pytest.raises(StoreUnavailable, match="is not a graph folder"):
            open_store(tmp_path)
        with pytest.raises(StoreUnavailable, match="contains other files"):
            load_graph(tmp_path, [tmp_path / "letter.nt"])
        assert [path.name for path in tmp_path.iterdir()] == ["letter.nt"]

    def test_damaged_record(self, copy):
        wrong = [{"new_key": 1}, {"generation": None}, {"files": 5}, {"graphs": None}]
        for text in ("", "[]", "5", "\x00" * 100, "{" * 100_000, *(json.dumps({**RECORD, **each}) for each in wrong)):
            (copy / "graph.json").write_text(text)
            with pytest.raises(StoreUnavailable, match="graph.json cannot be read.*load the data again"):
                open_store(copy)
        (copy / "graph.json").unlink()
        os.mkfifo(copy / "graph.json")
        with pytest.raises(StoreUnavailable, match="graph.json cannot be read.*not an ordinary file"):
            open_store(copy)

    def test_damaged_engine_files(self, copy):
        for file in (copy / "gen-1" / "store").iterdir():
            file.write_bytes(b"damaged")
        with pytest.raises(StoreUnavailable), open_store(copy) as store:
            store.select("SELECT * { ?s ?p ?o }")


@pytest.mark.parametrize(
    "target",
    ["gen-1", "gen-1/store", "gen-2", "gen-1/store/CURRENT", "gen-1/read.lock", "write.lock", "unpublished.log"],
)
def test_links_out_of_the_folder_are_not_followed(copy, tmp_path, target):
    link = copy / target
    if link.is_dir():
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "victim" / ("" if target.startswith("gen") and "." not in target else "letter"))
    (tmp_path / "a" / "more.nt").write_text(NAME.format("more"))
    for how in (
        lambda: load_graph(copy, [tmp_path / "a" / "more.nt"]),
        lambda: load_graph(copy, resume=True),
        lambda: discard_interrupted(copy),
        lambda: EmbeddedStore(copy, writable=True).close(),
    ):
        with pytest.raises(KgqaError, match="is a link|is missing"):
            how()
        assert untouched(tmp_path)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.cli
@pytest.mark.parametrize(
    ("file", "values", "commands"),
    [
        ("graph.json", RECORD, ("info --graph g", "load more.nt --into g")),
        ("gen-2/loading.json", JOURNAL, ("load --resume --into g", "info --graph g", "load --discard --into g")),
    ],
)
def test_any_record_gives_a_graph_or_an_error(graph, tmp_path_factory, monkeypatch, file, values, commands):
    @settings(max_examples=MAX_EXAMPLES)
    @given(hostile(values))
    def check(damaged):
        target = tmp_path_factory.mktemp("record")
        shutil.copytree(graph, target / "g")
        (target / "more.nt").write_text(NAME.format("more"))
        (target / "g" / "gen-2" / "store").mkdir(parents=True)
        (target / "g" / file).write_text(as_json(damaged))
        monkeypatch.chdir(target)
        for command in commands:
            done = run_limited("graph", *command.split())
            assert done.code in (0, 1, 2) and "internal error" not in done.text, done.text
            assert done.code == 0 or file == "graph.json" or "info" not in command, done.text
        assert sorted(item.name for item in target.iterdir()) == ["g", "more.nt"]

    check()


def test_cached_tables_belong_to_one_folder(graph, tmp_path):
    """They are used for no other folder, even one that claims to have the same triples."""

    def names(folder: Path, text: str) -> list[str]:
        with open_graph(folder, cache=Cache(tmp_path / "cache")) as opened:
            return [hit.name for hit in opened.search(text)]

    foreign = make(tmp_path / "foreign", "poison")
    records = [json.loads((folder / "graph.json").read_text()) for folder in (foreign, graph)]
    (foreign / "graph.json").write_text(json.dumps({**records[0], "graphs": records[1]["graphs"]}))
    assert names(foreign, "poison") == ["poison"] and names(graph, "one") == ["one"]
    # also at the same path
    shutil.move(foreign, tmp_path / "kept")
    shutil.copytree(graph, foreign)
    assert names(foreign, "one") == ["one"] and names(tmp_path / "kept", "poison") == ["poison"]
