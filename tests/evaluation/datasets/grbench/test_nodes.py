"""The reader of graph.json: damaged, foreign and compressed files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kgqa.errors import LoadError
from kgqa.evaluation.datasets.grbench import nodes
from kgqa.evaluation.datasets.grbench.nodes import read_nodes

TEXT = (Path(__file__).parent / "fixtures" / "academic" / "graph.json").read_text()


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
    """Damage is found where it is, and not after 256 million characters."""
    file = tmp_path / "graph.json"
    assert TEXT.count(old) == 1
    file.write_text(TEXT.replace(old, new) + " " * 4_000)
    with pytest.raises(LoadError, match=f"in or after node '{where}'"):
        list(read_nodes(file))


def test_long_node_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes, "_CHUNK", 16)
    monkeypatch.setattr(nodes, "MAX_NODE_CHARS", 100)
    file = tmp_path / "graph.json"
    file.write_text(json.dumps({"x_nodes": {"1": {"features": {"title": "y" * 500}, "neighbors": {}}}}))
    with pytest.raises(LoadError, match="the node after '1' has more than 100 characters"):
        list(read_nodes(file))


def test_truncated_gzip(tmp_path):
    file = tmp_path / "graph.json.gz"
    file.write_bytes(gzip.compress(TEXT.encode())[:-20])
    with pytest.raises(LoadError, match="damaged"):
        list(read_nodes(file))
