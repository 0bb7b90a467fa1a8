"""Loading into a URL: in bulk into the user's own server, otherwise by updates."""

from __future__ import annotations

import pytest
from kgqa.virtuoso.bulk.url_loading import NotResumable, discard_load, load_into_url

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def test_into_the_users_own_server(virtuoso_server, monkeypatch, tmp_path):
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(virtuoso_server.folder.path))
    file, notes = tmp_path / "names.nt", []
    file.write_text(f'<http://e/a> {LABEL} "Ada" .\n<http://e/b> {LABEL} "Bo" .\n')
    done = load_into_url([file], virtuoso_server.url, graph_iri="urn:url-loading", notify=notes.append)
    assert (done.bulk, done.names, done.report.added, done.schema.name) == (True, 2, 2, "rdfs")
    assert (done.graph_iri, done.url) == ("urn:url-loading", virtuoso_server.url)
    assert notes == ["The files are loaded. Indexing the names ..."]
    assert discard_load(virtuoso_server.url) is False


def test_updates_leave_nothing_to_resume(monkeypatch, tmp_path):
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(tmp_path))
    for attempt in (discard_load, lambda url: load_into_url([], url, resume=True)):
        with pytest.raises(NotResumable, match="cannot be resumed or discarded"):
            attempt("http://127.0.0.1:1/sparql")
