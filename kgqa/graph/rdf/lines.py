"""N-Triples and N-Quads line by line: checked and put into canonical form.

Every line is checked before the engine parses the block, because the engine would lose not only a malformed line, but
also the valid line after it. Blocks of canonical lines, as in most dumps, are accepted by one regular expression, which
matches nothing that the engine refuses. Other lines are rewritten by a second regular expression, or parsed one at a
time by the engine's parser.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO
from urllib.parse import quote

import pyoxigraph as ox

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 16 << 20
GENID = "urn:kgqa:genid:"

_IRI_CHARS = rb"[A-Za-z0-9\-._~:/?@!$&'()*+,;=]"
_RUN = _IRI_CHARS + rb"*+(?:%[0-9A-Fa-f]{2}" + _IRI_CHARS + rb"*+)*+"
_AUTHORITY = rb"(?://[A-Za-z0-9\-._~!$&'()*+,;=]*+(?::[0-9]*+)?(?=[/?#>])|(?!//))"
_IRI = rb"<[A-Za-z][A-Za-z0-9+.\-]*+:" + _AUTHORITY + _RUN + rb"(?:#" + _RUN + rb")?>"
_TEXT = rb'"(?:[^"\\\x00-\x1f\x7f]++|\\["\\nrtbf])*+"'
_TAG = rb"@[a-z]{2,8}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
_TYPE = rb"\^\^(?!<http://www\.w3\.org/2001/XMLSchema#string>)" + _IRI
_OBJECT = rb"(?:" + _IRI + rb"|" + _TEXT + rb"(?:" + _TAG + rb"|" + _TYPE + rb")?)"
_TRIPLES = re.compile(rb"(?:" + _IRI + rb" " + _IRI + rb" " + _OBJECT + rb" \.\n)*+")
_QUADS = re.compile(rb"(?:" + _IRI + rb" " + _IRI + rb" " + _OBJECT + rb"(?: " + _IRI + rb")? \.\n)*+")
_LOOSE = re.compile(
    rb"[ \t]*("
    + _IRI
    + rb")[ \t]+("
    + _IRI
    + rb")[ \t]+("
    + _OBJECT
    + rb")[ \t]*(?:("
    + _IRI
    + rb")[ \t]*)?\.[ \t]*\n?"
)
_IGNORED = re.compile(rb"[ \t\n]*(?:#.*)?", re.DOTALL)


def rewind(stream: IO[bytes]) -> IO[bytes]:
    """Return a stream at its beginning, or after its UTF-8 byte order mark."""
    stream.seek(0)
    if stream.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        stream.seek(0)
    return stream


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    r"""Read a stream as blocks of complete lines, which all end in `\n`, whatever the ends of lines in the stream.

    A line longer than MAX_LINE_BYTES is cut, and a byte that no valid line contains is added to its end. Such a line is
    later reported as malformed.
    """
    rest, too_long = b"", False
    while data := stream.read(BLOCK_BYTES):
        if b"\r" in data:
            data += stream.read(1) if data.endswith(b"\r") else b""
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest, too_long = data[cut:], False
        elif not too_long:
            rest += data
        if len(rest) > MAX_LINE_BYTES and not too_long:
            rest, too_long = rest[:MAX_LINE_BYTES] + b"\0", True
    if rest:
        yield rest + b"\n"


@dataclass(frozen=True, slots=True)
class Block:
    r"""A block of lines of a file: its valid lines in canonical form, which end in ` .\n`, and their numbers (from 1).

    The block begins at line `first` of the file (counted from 0) and ends before line `end`.
    """

    lines: list[bytes]
    numbers: Sequence[int]
    first: int
    end: int


class LineReader:
    """Rewrites blocks of lines in canonical form.

    Args:
        tag: hexadecimal digits that identify the file. A blank node is replaced by an IRI made of this tag and the
            node's label, so that loading a file twice gives the same nodes.
        format: N_TRIPLES or N_QUADS.
        malformed: called for each malformed line, with its number (from 1) and the parser's message.
    """

    def __init__(self, tag: str, format: ox.RdfFormat, malformed: Callable[[int, str], None]) -> None:
        self._genid = f"{GENID}{tag}:"
        self._format = format
        self._quads = format == ox.RdfFormat.N_QUADS
        self._malformed = malformed
        self.line = 0
        """The number of lines read so far, malformed ones included."""

    def read(self, block: bytes) -> Block:
        """Return the valid lines of a block in canonical form; report the malformed lines."""
        lines = block.splitlines(keepends=True)
        first, self.line = self.line, self.line + len(lines)
        good = lines
        numbers: Sequence[int] = range(first + 1, self.line + 1)
        canonical = _is_utf8(block) and (_QUADS if self._quads else _TRIPLES).fullmatch(block)
        if not canonical:
            fixed = {number: self._fixed(number, line) for number, line in zip(numbers, lines)}
            numbers = [number for number, line in fixed.items() if line]
            good = [fixed[number] for number in numbers]
        # most blocks have plain numbers only, and counting them costs less than a look at each line
        if not canonical or block.count(_TYPED) != len(_PLAIN_NUMBER.findall(block)):
            good = [_as_stored(line) if _TYPED in line else line for line in good]
        return Block(good, numbers, first, self.line)

    def _fixed(self, number: int, line: bytes) -> bytes:
        """Return a line in canonical form; b"" for a comment, an empty line, or a malformed line, which is reported."""
        if _IGNORED.fullmatch(line):
            return b""
        match = _LOOSE.fullmatch(line) if _is_utf8(line) else None
        if match and (self._quads or not match[4]):
            return b" ".join(term for term in match.groups() if term) + b" .\n"
        try:
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"the line is longer than {MAX_LINE_BYTES:,} bytes")
            (quad,) = ox.parse(line, format=self._format)
            return quad_line(quad, lambda node: self._genid + quote(node.value, safe=""))
        except (SyntaxError, ValueError) as error:
            self._malformed(number, _reason(error))
            return b""


# the engine stores XML Schema numbers, booleans and dates by value: "007" comes back as "7"
_TYPED = b'"^^<http://www.w3.org/2001/XMLSchema#'
# numbers that come back as they are; the space before them shows that they are no part of a text
_PLAIN_NUMBER = re.compile(
    rb' "(?:(?:0|-?[1-9][0-9]{0,16})"\^\^<http://www\.w3\.org/2001/XMLSchema#integer>'
    rb'|-?(?:0|[1-9][0-9]{0,16})\.[0-9]{0,15}[1-9]"\^\^<http://www\.w3\.org/2001/XMLSchema#decimal>) '
)


def _as_stored(line: bytes) -> bytes:
    """Rewrite the typed literal of a line as the engine returns it, so that equal values become one triple."""
    if _PLAIN_NUMBER.search(line):
        return line
    match = _LOOSE.fullmatch(line)
    if not match or _TYPED not in match[3]:
        return line
    stored = _stored_literal(match[3])
    return line if stored == match[3] else line[: match.start(3)] + stored + line[match.end(3) :]


@lru_cache(maxsize=100_000)
def _stored_literal(literal: bytes) -> bytes:
    store = ox.Store()
    store.load(b"<a:a> <a:a> " + literal + b" .", format=ox.RdfFormat.N_TRIPLES)
    (quad,) = store
    return str(quad.object).encode("utf-8")


def quad_line(quad: ox.Quad, genid: Callable[[ox.BlankNode], str]) -> bytes:
    """Return a quad as a canonical N-Quads line. `genid` returns the IRI that replaces a blank node.

    Raises:
        ValueError: the quad contains a triple as a term (RDF 1.2), which is not supported.
    """

    def term(value: object) -> object:
        if isinstance(value, ox.BlankNode):
            return ox.NamedNode(genid(value))
        if isinstance(value, ox.Triple):
            raise ValueError("a triple as a term of a triple (RDF 1.2) is not supported")
        return value

    terms = [term(quad.subject), quad.predicate, term(quad.object)]
    if not isinstance(quad.graph_name, ox.DefaultGraph):
        terms.append(term(quad.graph_name))
    return (" ".join(str(item) for item in terms) + " .\n").encode("utf-8")


def split_graph(line: bytes) -> tuple[bytes, bytes | None]:
    """Split a canonical N-Quads line into the line of its triple and the IRI of its graph (None: default graph)."""
    start = line.index(b" ", line.index(b" ") + 1) + 1
    # IRIs and language tags contain no quotes: the last quote ends the literal
    after = line.rindex(b'"') if line[start : start + 1] == b'"' else start
    end = line.index(b" ", after)
    return (line, None) if line[end:] == b" .\n" else (line[:end] + b" .\n", line[end + 2 : -4])


def lines_by_graph(lines: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Group canonical N-Quads lines by the IRI of their graph; "" is the default graph."""
    groups: dict[bytes, list[bytes]] = {}
    end, group = b"", list[bytes]()
    for line in lines:
        # most lines end like the one before; with three terms before this end, it is a graph
        if not (end and line.endswith(end) and line.find(b" ", line.find(b" ") + 1) < len(line) - len(end)):
            graph = split_graph(line)[1] or b""
            group = groups.setdefault(graph, [])
            end = b" <" + graph + b"> .\n" if graph else b""
        group.append(line)
    return {graph.decode(): group for graph, group in groups.items()}


def stored_line(line: bytes) -> bytes:
    """Return one N-Quads line without blank nodes in the form in which the engine stores it.

    Raises:
        SyntaxError: the line is not valid.
    """
    if not _QUADS.fullmatch(line):
        (quad,) = ox.parse(line, format=ox.RdfFormat.N_QUADS)
        line = quad_line(quad, lambda node: node.value)
    return _as_stored(line) if _TYPED in line else line


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _reason(error: Exception) -> str:
    text = str(getattr(error, "msg", None) or error)
    return re.sub(r"^Parser error (?:at|between) line [^:]*: ", "", text)[:200]
