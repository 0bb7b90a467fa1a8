"""The graphs of a corpus on SPARQL servers: first build, edits, crashes, undo."""

from __future__ import annotations

import secrets

import pytest

from kgqa.corpus.checking import check
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import document_iri
from kgqa.corpus.rdf.vocabulary import graph_iris
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from tests.corpus.small_corpus import insert
from tests.graph.graph_factories import VirtuosoGraphFactory
from tests.sparql_server import SparqlServer


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture(params=["loopback", "virtuoso"])
def server(request):
    """Return the URL of a server and the login of a user who may write."""
    if request.param == "virtuoso":
        factory = VirtuosoGraphFactory(request.getfixturevalue("virtuoso_server"))
        yield factory.url, factory.access()
        factory.close()
    else:
        loopback = SparqlServer(writable=True)
        yield loopback.url, Access()
        loopback.close()


def test_a_corpus_on_a_server(server, tmp_path):
    url, access = server
    base = f"urn:kgqa:test-{secrets.token_hex(4)}:"
    folder = CorpusFolder(tmp_path / "c")
    folder.create(graph=url, base=base)
    graphs = graph_iris(base).values()
    with EndpointStore(url, writable=graphs, access=access) as store:

        def opened() -> Corpus:
            return Corpus.open(folder.path, writable=True, store=store)

        with opened() as corpus:
            insert(corpus.editor, "ada.txt", "Ada wrote notes", 'Ada knew "Babbage"/person')
            insert(corpus.editor, "书.txt", "Ada described engine 伦敦/city", "7 of أدا")
            assert corpus.editor.publish()
            assert not corpus.editor.publish()
            assert check(corpus, store) == []
            first = {view: store.triples_of([graph]) for view, graph in folder.graphs.items() if view != "edits"}
        for step in ("target", "facts", "text"):
            with opened() as corpus:
                insert(corpus.editor, "ada.txt", f"Ada wrote {step}", "Ada met Dora Eve", kind="update")

                def kill(name: str, step=step) -> None:
                    if name == step:
                        raise Killed

                with pytest.raises(Killed):
                    corpus.editor.publish(kill)
        with opened() as corpus:
            assert "last" in check(corpus, store)[0]
            for edit in list(corpus.database.edits(2))[::-1]:
                corpus.editor.undo(edit.id, agent="ann")
            corpus.editor.publish()
            assert check(corpus, store) == []
            assert first == {
                view: store.triples_of([graph]) for view, graph in folder.graphs.items() if view != "edits"
            }
            corpus.editor.apply("delete", (), corpus.editor.removals_of_document(document_iri("书.txt")), agent="ann")
            corpus.editor.publish()
            assert check(corpus, store) == []
            corpus.editor.rebuild()
            assert check(corpus, store) == []


def test_a_first_build_that_was_cut_off_is_finished(server, tmp_path):
    url, access = server
    base = f"urn:kgqa:test-{secrets.token_hex(4)}:"
    folder = CorpusFolder(tmp_path / "c")
    folder.create(graph=url, base=base)
    with EndpointStore(url, writable=graph_iris(base).values(), access=access) as store:
        with Corpus.open(folder.path, writable=True, store=store) as corpus:
            insert(corpus.editor, "ada.txt", "Ada wrote notes", "Ada knew Babbage/person")

            def kill(name: str) -> None:
                if name == "load":
                    raise Killed

            with pytest.raises(Killed):
                corpus.editor.publish(kill)
        with Corpus.open(folder.path, writable=True, store=store) as corpus:
            insert(corpus.editor, "ada.txt", "Ada wrote letters", kind="update")
            corpus.editor.publish()
            assert check(corpus, store) == []
