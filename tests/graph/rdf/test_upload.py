"""Lines for upload to a server: checked in advance, for one graph, with line numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa.errors import LoadError
from kgqa.graph.rdf.files import MalformedLines, file_job
from kgqa.graph.rdf.upload import LONGEST_IRI_BYTES, UploadFiles, upload_problem

GOOD = "<http://e/a> <http://e/p> <http://e/b> .\n"
# the fast check accepts the form of the IRI, but its port is not a number
DOUBTFUL = "<http://e:port/> <http://e/p> <http://e/b> .\n"


@pytest.fixture
def upload_of(tmp_path):
    """Return `upload_of(text, ending="nt", on_error="skip") -> UploadFiles` for the graph urn:mine."""

    def upload_of(text: str, *, ending: str = "nt", on_error="skip", unfit=upload_problem) -> UploadFiles:
        file = tmp_path / f"data.{ending}"
        file.write_text(text, encoding="utf-8")
        return UploadFiles(
            [file_job(file)], "urn:mine", staging=tmp_path, malformed=MalformedLines(on_error), unfit=unfit
        )

    return upload_of


def sent_lines(source: UploadFiles) -> tuple[list[str], list[int]]:
    """Return the lines to send and their numbers."""
    blocks = [(block.lines, block.numbers) for block, _ in source.blocks(source.jobs[0])]
    return [line.decode() for lines, _ in blocks for line in lines], [n for _, numbers in blocks for n in numbers]


def test_line_numbers_count_malformed_lines(upload_of):
    source = upload_of(f"{GOOD}bad\n\n# nothing\n{GOOD.replace('/b', '/c')}{DOUBTFUL}{GOOD.replace('/b', '/d')}")
    source.check()
    lines, numbers = sent_lines(source)
    assert [line[-5:-3] for line in lines] == ["b>", "c>", "d>"] and numbers == [1, 5, 7]
    assert source.lines == 7
    assert [(item.line, source.malformed.count) for item in source.malformed.examples] == [(2, 2), (6, 2)]


def test_file_with_a_malformed_line_is_not_sent_without_skip(upload_of):
    with pytest.raises(LoadError, match=r"data\.nt, line 2: .*The load was discarded.*on_error=.skip"):
        upload_of(f"{GOOD}{DOUBTFUL}", on_error="fail").check()


def test_iris_that_servers_truncate_are_malformed(upload_of):
    def iri(size: int) -> str:
        return f"<{'http://e/':x<{size}}>"

    lines = [
        f"{iri(LONGEST_IRI_BYTES)} <http://e/p> {iri(LONGEST_IRI_BYTES)} .\n",
        f"{iri(LONGEST_IRI_BYTES + 1)} <http://e/p> <http://e/b> .\n",
        f"<http://e/a> {iri(LONGEST_IRI_BYTES + 1)} <http://e/b> .\n",
        f"<http://e/a> <http://e/p> {iri(LONGEST_IRI_BYTES + 1)} .\n",
        f'<http://e/a> <http://e/p> "<{"x" * 5000}>" .\n',
    ]
    source = upload_of("".join(lines))
    source.check()
    assert sent_lines(source) == ([lines[0], lines[4]], [1, 5])
    assert {item.message for item in source.malformed.examples} == {
        "an IRI of 1,801 bytes, more than servers store (1,800)"
    }


@pytest.mark.parametrize("ending, text, line", [
    ("nq", f"{GOOD[:-2]}<urn:mine> .\n{GOOD}\nx\n{GOOD[:-2]}<urn:other> .\n", "line 5"),
    ("nq", f"{GOOD[:-2]}<urn:mine> .\n{GOOD[:-2]}<urn:other> .\n", "line 2"),
    ("trig", "<urn:a> <urn:b> <urn:c> . <urn:other> { <urn:d> <urn:e> <urn:f> }", "line 2"),
])  # fmt: skip
def test_triple_of_another_graph_is_an_error_even_with_skip(upload_of, ending, text, line):
    with pytest.raises(
        LoadError, match=rf"data\.{ending}, {line}: .*<urn:other>.*for <urn:mine>.*graph_iri=.urn:other"
    ):
        upload_of(text, ending=ending).check()


def test_default_graph_stands_for_the_named_graph(upload_of):
    source = upload_of(f"{GOOD}{GOOD[:-2]}<urn:mine> .\n", ending="nq")
    source.check()
    assert sent_lines(source)[0] == [GOOD, GOOD]


def test_staged_lines_are_read_once(upload_of, tmp_path: Path):
    source = upload_of("<urn:a> <urn:p> [ <urn:q> 7 ] .", ending="ttl")
    source.check()
    (tmp_path / "data.ttl").write_text("no Turtle any more")
    assert len(sent_lines(source)[0]) == 2


@pytest.mark.parametrize(
    ("text", "sent_lines"),
    [("a\\u0000b", False), ("a\\U00000000", False), ("a\\\\u0000b", True), ("\\\\\\u0000", False), ("\\u0001", True)],
)
def test_nul_is_not_sent(text, sent_lines):
    assert (upload_problem(f'<http://e/a> <http://e/b> "{text}" .\n'.encode()) is None) == sent_lines
