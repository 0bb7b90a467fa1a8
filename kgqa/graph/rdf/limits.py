"""Limits on XML and JSON that would exhaust memory: nested entities, deep nesting."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import IO
from xml.parsers import expat

MAX_ENTITIES = 1_000
MAX_ENTITY_CHARS = 1_024
MAX_DEPTH = 256
"""Maximum nesting of XML and JSON-LD. The parser copies a node's context into each inner node: 3,000 levels of JSON-LD
take 0.7 GB of memory, 20,000 levels 9 GB; 5,000 levels of RDF/XML take a minute."""

_REFERENCE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)")
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class CheckedXml:
    """An XML stream that is nested at most MAX_DEPTH levels, with few, short entities that refer to no others.

    OWL files use such entities to abbreviate namespaces. `read` raises ValueError for any other entity, for deeper
    nesting, and for what is not XML.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._depth = self._entities = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = lambda name, attributes: self._step(1)
        self._parser.EndElementHandler = lambda name: self._step(-1)
        self._parser.EntityDeclHandler = self._check_entity

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes. Raises ValueError, see the class."""
        piece = self._stream.read(size)
        try:
            self._parser.Parse(piece, not piece)
        except expat.ExpatError as error:
            raise ValueError(f"not well-formed XML ({error})") from error
        return piece

    def _step(self, levels: int) -> None:
        self._depth += levels
        if self._depth > MAX_DEPTH:
            raise ValueError(f"the XML is nested deeper than {MAX_DEPTH} levels")

    def _check_entity(self, name: str, is_parameter: bool, value: str | None, *_: object) -> None:
        self._entities += 1
        if is_parameter or value is None or _REFERENCE.search(value):
            raise ValueError("the file declares entities that refer to other entities or files; expand these entities")
        if self._entities > MAX_ENTITIES or len(value) > MAX_ENTITY_CHARS:
            raise ValueError(
                f"the file declares more than {MAX_ENTITIES:,} entities, or one of more than {MAX_ENTITY_CHARS:,} "
                "characters"
            )


class ShallowJson:
    """A JSON stream nested at most MAX_DEPTH levels. `read` raises ValueError if the nesting is deeper."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._escape = b""
        self._in_text = self._depth = 0

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes. Raises ValueError if the nesting is too deep."""
        piece = self._stream.read(size)
        plain = _ESCAPE.sub(b"", self._escape + piece)
        self._escape = b"\\" if plain.endswith(b"\\") else b""
        # every second part between quotation marks is a string
        parts = plain.translate(None, _NOT_STRUCTURE).split(b'"')
        outside = b"".join(parts[self._in_text :: 2])
        self._in_text = (self._in_text + len(parts) - 1) % 2
        depths = list(accumulate(map(_STEPS.__getitem__, outside), initial=self._depth))
        self._depth = depths[-1]
        if max(depths) > MAX_DEPTH:
            raise ValueError(f"the JSON is nested deeper than {MAX_DEPTH} levels")
        return piece
