"""A corpus whose graph is on a Virtuoso server: the same facts and answers as in a folder, after every change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.opening import open_store
from kgqa.storage.corpus_file import read_corpus_file

QUESTION = "What is the birthplace of the architect of Auk Stack Light?"
OFF = ("--embeddings", "off")
VIEWS = ("facts", "hyper", "text", "statements", "communities")


@pytest.fixture
def run(kgqa, virtuoso_server):
    """Run `kgqa` with the server as the one that it manages."""
    folder = str(virtuoso_server.folder.path)
    return lambda *arguments: kgqa(*arguments, KGQA_VIRTUOSO_FOLDER=folder)


def write(docs: Path, name: str, text: str) -> None:
    docs.mkdir(exist_ok=True)
    (docs / name).write_text(text)


def content(corpus: Path) -> dict[str, set]:
    """Return the triples of each view."""
    views = read_corpus_file(corpus).views
    with open_store(corpus) as store:
        found = {}
        for view in VIEWS:
            rows = store.select(f"SELECT ?s ?p ?o FROM <{views[view][0]}> WHERE {{ ?s ?p ?o }}", fresh=True)
            found[view] = set(rows)
        return found


def test_every_change_on_a_server_equals_that_in_a_folder(run, virtuoso_server, tmp_path):
    docs, corpora = tmp_path / "docs", (tmp_path / "here", tmp_path / "there")
    write(docs, "lighthouse.md", "# Auk Stack Light\n\nArchitect: Nils Aaberg\nHeight: 31 metres\n")
    write(
        docs,
        "nils.md",
        "# Nils Aaberg\n\nBirthplace: Little Auk\nInstrument: violin\n\nNils Aaberg was a Norwegian architect.\n",
    )
    write(docs, "书.txt", "作者: 老舍\n国家: 中国\n\n北京是中国的首都。\n")

    def build(*arguments) -> list[dict]:
        options = ((), ("--graph-url", virtuoso_server.url))
        done = [
            run("corpus", "build", *arguments, "--into", corpus, *OFF, "--json", *more)
            for corpus, more in zip(corpora, options)
        ]
        assert [each.returncode for each in done] == [0, 0], done[1].err
        here, there = map(content, corpora)
        assert here == there
        return [json.loads(each.out) for each in done]

    def ask(question: str) -> list[str]:
        done = [run("ask", question, "--graph", corpus, "--json", *OFF) for corpus in corpora]
        found = [json.loads(each.out) for each in done]
        assert found[0]["answers"] == found[1]["answers"], done[1].err
        return [answer["name"] for answer in found[1]["answers"]]

    assert build(docs)[1]["added"] == 3
    assert ask(QUESTION) == ["Little Auk"]
    found = run("graph", "search", "auk stack light", "--graph", corpora[1], "--json")
    assert [each["name"] for each in json.loads(found.out)][:1] == ["Auk Stack Light"]

    write(docs, "nils.md", "# Nils Aaberg\n\nBirthplace: Great Auk\nInstrument: violin\n")
    assert [each["changed"] for each in build()] == [1, 1]
    assert ask(QUESTION) == ["Great Auk"]

    (docs / "nils.md").unlink()
    assert [each["removed"] for each in build()] == [1, 1]

    password = (virtuoso_server.folder.path / "password-kgqa").read_text().strip()
    for corpus in corpora:
        views = read_corpus_file(corpus).views
        graphs = [iri for iris in views.values() for iri in iris]
        store = EndpointStore(virtuoso_server.url, writable=graphs, access=Access(user="kgqa", password=password))
        with Corpus.open(corpus, writable=True, store=store if corpus == corpora[1] else None) as opened:
            removal = [edit for edit in opened.database.edits() if edit.kind == "delete"][-1]
            opened.editor.undo(removal.id, agent="ann", cascade=True)
            opened.editor.publish()
    here, there = map(content, corpora)
    assert here == there and here["facts"]
    assert ask(QUESTION) == ["Great Auk"]
    assert "no problems" in run("corpus", "check", corpora[1]).out


def test_server_that_others_run_needs_a_login(run, kgqa, virtuoso_server, tmp_path):
    write(tmp_path / "docs", "a.md", "# Ann\n\nFriend: Bob Hill\nColour: red\n")
    arguments = (
        "corpus",
        "build",
        tmp_path / "docs",
        "--into",
        tmp_path / "c",
        "--graph-url",
        virtuoso_server.url,
        *OFF,
    )
    elsewhere = {"KGQA_VIRTUOSO_FOLDER": str(tmp_path / "none")}
    done = kgqa(*arguments, **elsewhere)
    assert done.returncode == 1 and "KGQA_ENDPOINT_PASSWORD" in done.err
    password = virtuoso_server.allow_updates("corpora").read_text().strip()
    login = {"KGQA_ENDPOINT_USER": "corpora", "KGQA_ENDPOINT_PASSWORD": password}
    done = kgqa(*arguments, **elsewhere, **login)
    assert done.returncode == 0, done.err
    assert content(tmp_path / "c")["facts"]
    with Corpus.open(tmp_path / "c") as opened:
        assert opened.database.seq == 1
