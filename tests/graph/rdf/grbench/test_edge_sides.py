"""Comparison of both ends of edges: the same with files as with sets."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgqa.graph.rdf.grbench import edge_sides
from kgqa.graph.rdf.grbench.edge_sides import EdgeSides, edge_hashes, hashes_of

NODES = [f"n{number}" for number in range(6)]
edge = st.tuples(st.sampled_from(NODES), st.sampled_from([*NODES, "gone"]), st.integers(0, 2))


@given(written=st.lists(edge, max_size=30), inverse=st.lists(edge, max_size=30), buffer=st.sampled_from([3, 1000]))
def test_alone_as_by_sets(written, inverse, buffer):
    """An inverse edge is given by its listing node, then the listed one."""
    with tempfile.TemporaryDirectory() as folder:
        old, edge_sides.BUFFER = edge_sides.BUFFER, buffer
        try:
            sides = EdgeSides(Path(folder))
            for here, there, link in written:
                sides.add("written", edge_hashes(*map(hashes_of, ([here], [there])), link), hashes_of([there]), link)
            for here, there, link in inverse:
                sides.add("inverse", edge_hashes(*map(hashes_of, ([there], [here])), link), hashes_of([there]), link)
            alone, only_written, only_inverse = sides.alone(np.sort(hashes_of(NODES)))
        finally:
            edge_sides.BUFFER = old
    first = {each for each in written if each[1] != "gone"}
    second = {(there, here, link) for here, there, link in inverse if there != "gone"}
    expected = [edge_hashes(hashes_of([s]), hashes_of([o]), link)[0] for s, o, link in second - first]
    assert alone.tolist() == sorted(expected)
    for link in range(3):
        assert only_written.get(link, 0) == sum(each[2] == link for each in first - second)
        assert only_inverse.get(link, 0) == sum(each[2] == link for each in second - first)
