"""Line-based RDF, each line checked alone, because the engine loses the line after a malformed one."""

from __future__ import annotations

import io

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.graph.rdf import lines as rdf_lines
from kgqa.graph.rdf.lines import LineReader, blocks

A = b"<http://e/a> <http://e/p> <http://e/b> .\n"
B = b'<http://e/a> <http://e/p> "text" .\n'
C = b'<http://e/a> <http://e/p> "text"@en .\n'


def read(data: bytes, *, quads: bool = False, tag: str = "f00d") -> tuple[list[bytes], list[tuple[int, str]]]:
    """Return the valid lines, and (line number, message) of the malformed ones."""
    bad: list[tuple[int, str]] = []
    format = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
    reader = LineReader(tag, format, lambda line, message: bad.append((line, message)))
    good = [line for block in blocks(io.BytesIO(data)) for line in reader.read(block).lines]
    return good, bad


MALFORMED = [
    b"nonsense",
    b"<http://e/a> <http://e/p> .",
    b"<http://e/a> <http://e/p> <http://e/b>",
    b"<http://e/a> <http://e/p> <http://e/b> . <http://e/a> <http://e/p> <http://e/c> .",
    b"<http://e/a> <http://e/p> \"open .",
    b'<http://e/a> <http://e/p> "bad \\q escape" .',
    b'<http://e/a> <http://e/p> "\\ud800" .',
    b'<http://e/a> <http://e/p> "x"@toolonglanguage .',
    b"<http://e:port/a> <http://e/p> <http://e/b> .",
    b"<relative> <http://e/p> <http://e/b> .",
    b"<http://e/a b> <http://e/p> <http://e/b> .",
    b"<http://e/%zz> <http://e/p> <http://e/b> .",
    b"<http://e/a> _:p <http://e/b> .",
    b'<http://e/a> <http://e/p> "caf\xe9" .',
    b"<http://e/a> <http://e/p> <http://e/b> <http://e/g> .",
    b"<http://e/a> <http://e/p> <<( <http://e/a> <http://e/p> <http://e/b> )>> .",
]  # fmt: skip


class TestIndependentLines:
    @pytest.mark.parametrize("bad", MALFORMED)
    def test_valid_lines_around_a_malformed_one_are_kept(self, bad):
        good, wrong = read(A + B + bad + b"\n" + C + A)
        assert good == [A, B, C, A]
        assert [line for line, _ in wrong] == [3]
        assert wrong[0][1] and "\n" not in wrong[0][1]

    @given(
        st.lists(st.sampled_from([A, B, C, b"bad\n", b"# c\n", b"\n"]), max_size=30),
        st.sampled_from([b"\n", b"\r\n", b"\r"]),
        st.integers(1, 80),
    )
    def test_any_block_size_and_line_end(self, lines, end, size):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rdf_lines, "BLOCK_BYTES", size)
            good, wrong = read(b"".join(lines).replace(b"\n", end))
        assert good == [line for line in lines if line.startswith(b"<")]
        assert [line for line, _ in wrong] == [n for n, line in enumerate(lines, 1) if line == b"bad\n"]


class TestForms:
    @pytest.mark.parametrize(
        "line, canonical",
        [
            (b"# a comment", None),
            (b"", None),
            (A[:-1] + b"\r", A),
            (b"  " + A[:-1] + b"  ", A),
            (A[:-1].replace(b" ", b"  \t "), A),
            (A[:-1] + b" # why", A),
            (b"<http://e/a><http://e/p><http://e/b>.", A),
            (b'<http://e/a> <http://e/p> "text"^^<http://www.w3.org/2001/XMLSchema#string> .', B),
            (b'<http://e/a> <http://e/p> "text"@EN .', C),
            (b'<http://e/a> <http://e/p> "caf\\u00E9" .', '<http://e/a> <http://e/p> "café" .\n'.encode()),
            ('<http://e/a> <http://e/p> "café" .'.encode(), '<http://e/a> <http://e/p> "café" .\n'.encode()),
            (b"<http://e/\\u00e9> <http://e/p> <http://e/b> .", "<http://e/é> <http://e/p> <http://e/b> .\n".encode()),
        ],
    )
    @pytest.mark.parametrize("quads", [False, True])
    def test_canonical(self, line, canonical, quads):
        assert read(line + b"\n", quads=quads) == ([canonical] if canonical else [], [])
        assert read(line, quads=quads) == ([canonical] if canonical else [], [])  # no newline at the end
        assert read(A + line + b"\n" + B, quads=quads) == ([A, *([canonical] if canonical else []), B], [])

    @pytest.mark.parametrize("break_", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
    def test_other_line_breaks_do_not_end_a_line(self, break_):
        line = f'<http://e/a> <http://e/p> "one{break_}two" .\n'.encode()
        good, wrong = read(line + A)
        assert len(good) == 2 and good[1] == A and not wrong
        (quad,) = ox.parse(good[0], format=ox.RdfFormat.N_TRIPLES)
        assert quad.object.value == f"one{break_}two"


def test_blank_nodes_become_iris_of_the_file():
    good, wrong = read("_:x <http://e/p> _:é·y .\n_:é·y <http://e/p> _:x .\n".encode(), tag="abc")
    assert not wrong
    x, y = "<urn:kgqa:genid:abc:x>", "<urn:kgqa:genid:abc:%C3%A9%C2%B7y>"
    assert b"".join(good).decode() == f"{x} <http://e/p> {y} .\n{y} <http://e/p> {x} .\n"


@pytest.mark.parametrize("size", [1_500, 3_000, 50_000])
@pytest.mark.parametrize("letter", [b"x", "é".encode()])
def test_too_long_line_is_reported_alone(monkeypatch, size, letter):
    monkeypatch.setattr(rdf_lines, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(rdf_lines, "BLOCK_BYTES", 256)
    long = b'<http://e/a> <http://e/p> "' + letter * (size // len(letter)) + b'" .\n'
    good, wrong = read(A + long + B)
    assert good == [A, B]
    assert [line for line, _ in wrong] == [2]


XSD = "http://www.w3.org/2001/XMLSchema#"
NAMED = st.from_regex(r"[a-z]{1,4}:[A-Za-z0-9é漢._~/?=@!$&'()*+,;-]{0,12}(#[a-z]{0,3})?", fullmatch=True).filter(
    lambda text: _valid_iri(text)
)
NODES = NAMED.map(ox.NamedNode)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OBJECTS = st.one_of(
    NODES,
    TEXT.map(ox.Literal),
    st.builds(lambda text, tag: ox.Literal(text, language=tag), TEXT, st.sampled_from(["en", "EN-GB", "zh-Hans", "x-y"])),
    st.builds(lambda text, iri: ox.Literal(text, datatype=ox.NamedNode(iri)), TEXT, st.sampled_from([XSD + "integer", XSD + "date", "urn:t"])),
    st.integers().map(ox.Literal),
)  # fmt: skip
QUADS = st.lists(st.builds(ox.Quad, NODES, NODES, OBJECTS, st.just(ox.DefaultGraph()) | NODES), max_size=8)


def _valid_iri(text: str) -> bool:
    try:
        return bool(list(ox.parse(f"<{text}> <http://e/p> <http://e/o> .", format=ox.RdfFormat.N_TRIPLES)))
    except SyntaxError:
        return False


class TestAgainstTheEngine:
    @given(QUADS)
    def test_engine_output_is_canonical(self, quads):
        written = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
        good, wrong = read(written, quads=True)
        assert not wrong
        assert b"".join(good) == written

    @given(st.from_regex(rdf_lines._QUADS, fullmatch=True))
    def test_the_quick_check_accepts_only_what_the_engine_accepts(self, block):
        if rdf_lines._is_utf8(block):
            list(ox.parse(block, format=ox.RdfFormat.N_QUADS))

    @given(st.lists(st.sampled_from([A, B, C, *MALFORMED]) | st.binary(max_size=40), max_size=12))
    def test_lines_that_are_read_are_accepted_by_the_engine(self, lines):
        good, _ = read(b"\n".join(lines))
        list(ox.parse(b"".join(good), format=ox.RdfFormat.N_TRIPLES))
