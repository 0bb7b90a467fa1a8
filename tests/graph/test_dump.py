"""All triples of a graph folder as lines."""

from __future__ import annotations

import pytest

from kgqa.errors import StoreCrashed
from kgqa.graph.rdf.dump import dump_blocks

DEFAULT = ['<http://e/a> <http://e/r> "x .\\n \\" <y> ." .', "<http://e/a> <http://e/r> <http://e/b> ."]
NAMED = ['<http://e/a> <http://e/r> "北京\\t"@en <urn:g> .', "<http://e/a> <http://e/r> <http://e/b> <urn:h> ."]


def test_lines_of_graphs(load):
    folder = load(DEFAULT + NAMED)

    def lines(*graphs: str) -> list[str]:
        return sorted(b"".join(dump_blocks(folder, graphs)).decode().splitlines())

    assert lines() == sorted(DEFAULT)
    assert lines("urn:g", "urn:h") == sorted(
        line.replace(" <urn:g> .", " .").replace(" <urn:h> .", " .") for line in NAMED
    )
    assert lines("urn:none") == []


def test_damaged_files(load):
    folder = load(DEFAULT)
    blocks = dump_blocks(folder)
    for file in (folder / "gen-1" / "store").glob("CURRENT"):
        file.write_text("nonsense")
    with pytest.raises(StoreCrashed, match="could not be read"):
        list(blocks)
