"""The reader of graph.json: long nodes in parts, damaged files, compressed files."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.errors import LoadError
from kgqa.graph.rdf.grbench import nodes
from kgqa.graph.rdf.grbench.nodes import read_nodes

FIXTURES = Path(__file__).parent / "fixtures"
TEXT = (FIXTURES / "academic" / "graph.json").read_text()


def joined(parts):
    """Put the parts of nodes together, as the JSON has them."""
    found = {}
    for part in parts:
        if part.first:
            found[part.type, part.id] = ({}, defaultdict(list))
        features, links = found[part.type, part.id]
        features.update(part.features)
        for link, ids in part.links.items():
            links[link] += ids
    return found


def test_long_nodes_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes, "_CHUNK", 16)
    file = tmp_path / "graph.json"
    file.write_text(TEXT)
    whole, parts = list(read_nodes(file)), list(read_nodes(file, max_chars=60))
    assert joined(whole) == joined(parts) and len(parts) > len(whole) == 6
    assert [part.id for part in parts if part.last] == [part.id for part in whole]


ids = st.text(max_size=5)
graphs = st.dictionaries(
    ids,
    st.dictionaries(
        ids,
        st.fixed_dictionaries(
            {
                "features": st.dictionaries(
                    ids, st.text(max_size=8) | st.integers() | st.lists(st.text(max_size=3), max_size=2)
                ),
                "neighbors": st.dictionaries(ids, st.lists(ids, max_size=4)),
            }
        ),
        max_size=3,
    ),
    max_size=3,
)


@given(graph=graphs, limit=st.integers(200, 400), indent=st.sampled_from([None, 4]), ascii_=st.booleans())
def test_any_graph_is_read_as_json_reads_it(graph, limit, indent, ascii_):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "_CHUNK", 32)
        check_reading(Path(folder) / "graph.json", graph, limit, indent, ascii_)


def check_reading(file, graph, limit, indent, ascii_):
    file.write_text(json.dumps(graph, indent=indent, ensure_ascii=ascii_), encoding="utf-8", errors="surrogatepass")
    expected = {
        (section.removesuffix("_nodes"), ident): (node["features"], node["neighbors"])
        for section, listed in graph.items()
        for ident, node in listed.items()
    }
    if len({section.removesuffix("_nodes") for section in graph}) == len(graph):
        assert joined(read_nodes(file, max_chars=limit)) == expected


@pytest.mark.parametrize("length", range(1, len(TEXT), 61))
def test_truncated_file(tmp_path, length):
    file = tmp_path / "graph.json"
    file.write_text(TEXT[:length])
    with pytest.raises(LoadError, match="damaged or not a graph"):
        list(read_nodes(file))


@pytest.mark.parametrize(
    "old, new, where",
    [
        ('"a2"], "venue"', '"a2" "venue"', "p2"),
        ('"features": {"title": "Maps', '"features": ["title", "Maps', "p1"),
        ('["p1"]}}', '[{"p1": 1}]}}', "a1"),
        ('"author_nodes": {', '"author_nodes": [', "p3"),
        ('"p3"]}}\n}}', '"p3"]}}\n}} {}', "pub_0"),
    ],
)
def test_damage_is_named_with_its_place(tmp_path, old, new, where):
    """Damage is found where it is, and not after 16 million characters."""
    file = tmp_path / "graph.json"
    assert TEXT.count(old) == 1
    file.write_text(TEXT.replace(old, new) + " " * 4_000)
    with pytest.raises(LoadError, match=f"in or after node '{where}'"):
        list(read_nodes(file))


def test_long_feature_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes, "_CHUNK", 16)
    file = tmp_path / "graph.json"
    file.write_text(json.dumps({"x_nodes": {"1": {"features": {"title": "y" * 500}, "neighbors": {}}}}))
    with pytest.raises(LoadError, match="node '1' has a value longer than 100 characters"):
        list(read_nodes(file, max_chars=100))


def test_truncated_gzip(tmp_path):
    file = tmp_path / "graph.json.gz"
    file.write_bytes(gzip.compress(TEXT.encode())[:-20])
    with pytest.raises(LoadError, match="truncated or damaged"):
        list(read_nodes(file))
