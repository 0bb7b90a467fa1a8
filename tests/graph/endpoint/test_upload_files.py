"""Lines for upload to a server: checked in advance, for one graph, with line numbers."""

from __future__ import annotations

import pytest

from kgqa.errors import LoadError
from kgqa.graph.endpoint.upload import LONGEST_IRI_BYTES, upload_blocks, upload_problem
from kgqa.graph.rdf.files import MalformedLines, file_job

GOOD = "<http://e/a> <http://e/p> <http://e/b> .\n"


@pytest.fixture
def read(tmp_path):
    """Return `read(text, ending="nt")`: the lines to send with their numbers, and the malformed lines."""

    def read(text: str, *, ending: str = "nt"):
        file = tmp_path / f"data.{ending}"
        file.write_text(text, encoding="utf-8")
        malformed = MalformedLines("skip")
        blocks = list(upload_blocks([file_job(file)], "urn:mine", tmp_path, malformed, progress=lambda progress: None))
        return [(line.decode(), number) for lines, _ in blocks for line, number in lines], malformed.examples

    return read


def test_iris_that_servers_truncate_are_malformed(read):
    fits, too_long = (f"<{'http://e/':x<{size}}>" for size in (LONGEST_IRI_BYTES, LONGEST_IRI_BYTES + 1))
    lines = [
        f"{fits} <http://e/p> {fits} .\n",
        f"{too_long} <http://e/p> <http://e/b> .\n",
        f"<http://e/a> {too_long} <http://e/b> .\n",
        f"<http://e/a> <http://e/p> {too_long} .\n",
        f'<http://e/a> <http://e/p> "<{"x" * 5000}>" .\n',
    ]
    sent, malformed = read("".join(lines))
    assert sent == [(lines[0], 1), (lines[4], 5)]
    assert malformed[0].message == "an IRI of 1,801 bytes, more than servers store (1,800)"


@pytest.mark.parametrize("ending, text, line", [
    ("nq", f"{GOOD[:-2]}<urn:mine> .\n{GOOD}\nx\n{GOOD[:-2]}<urn:other> .\n", "line 5"),
    ("trig", "<urn:a> <urn:b> <urn:c> . <urn:other> { <urn:d> <urn:e> <urn:f> }", "line 2"),
])  # fmt: skip
def test_triple_of_another_graph_is_an_error_even_with_skip(read, ending, text, line):
    with pytest.raises(
        LoadError, match=rf"data\.{ending}, {line}: .*<urn:other>.*for <urn:mine>.*graph_iri=.urn:other"
    ):
        read(text, ending=ending)


def test_default_graph_stands_for_the_named_graph(read):
    assert read(f"{GOOD}{GOOD[:-2]}<urn:mine> .\n", ending="nq")[0] == [(GOOD, 1), (GOOD, 2)]


def test_nul_is_not_sent():
    for text, sent in (("a\\U00000000", False), ("a\\\\u0000b", True), ("\\\\\\u0000", False), ("\\u0001", True)):
        assert (upload_problem(f'<http://e/a> <http://e/b> "{text}" .\n'.encode()) is None) == sent
