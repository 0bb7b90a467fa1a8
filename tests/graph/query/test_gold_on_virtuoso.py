"""The gold queries on a real Virtuoso, as published and in standard SPARQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from kgqa.graph.endpoint.store import EndpointStore
from tests.graph.query import test_gold_queries as gold
from tests.virtuoso_server import copied, running_server

pytestmark = gold.pytestmark


@pytest.fixture(scope="module")
def store(prepared_folder, tmp_path_factory) -> Iterator[EndpointStore]:
    """Yield a server with this data only, because the queries name no graph."""
    with running_server(copied(prepared_folder, tmp_path_factory.mktemp("gold") / "server")) as server:
        for graph, files in (("http://e/freebase", gold.FAST_FILES), ("http://e/wikidata", gold.WIKIDATA_FILES)):
            copies = [server.import_folder / f"{graph[9:]}-{file.name}" for file in files]
            for file, copy in zip(files, copies):
                shutil.copyfile(file, copy)
            server.load(copies, graph)
        with EndpointStore(server.url) as store:
            yield store


@pytest.mark.parametrize("form", ["sparql", "sparql_portable"])
def test_freebase(store, form):
    """Published queries work with and without the extensions of Virtuoso."""
    found = gold.questions()
    assert len(found) == 243
    gold.check_freebase(store, found, form)


def test_wikidata(store):
    gold.check_wikidata(store, exceptions=gold.NOT_ON_VIRTUOSO)
