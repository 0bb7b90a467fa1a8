"""Limits on XML and JSON that would exhaust memory: nested entities, deep nesting."""

from __future__ import annotations

import re
from typing import IO, Protocol

import numpy as np

HEAD_BYTES = 256 << 10
"""Size of the part at the start of an XML file in which entities may be declared."""
MAX_ENTITIES = 1_000
MAX_ENTITY_BYTES = 1_024
MAX_JSON_DEPTH = 256
"""Maximum nesting of JSON-LD. The parser copies a node's context into each inner node: 3,000 levels take 0.7 GB of
memory, 20,000 levels 9 GB."""
_CHUNK = 1 << 20

_ENTITY = b"<!ENTITY"
_FLAT_ENTITY = re.compile(rb"<!ENTITY\s+[\w.:-]+\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_REFERENCE = re.compile(rb"&(?!#|(?:amp|lt|gt|quot|apos);)|%")
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}\\'))
_STEP = np.zeros(256, dtype=np.int64)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


class Readable(Protocol):
    """A stream for a parser."""

    def read(self, size: int = ..., /) -> bytes:
        """Read at most `size` bytes."""
        ...


class XmlWithFlatEntities:
    """An XML stream whose entities are few, short and do not refer to each other.

    OWL files use such entities to abbreviate namespaces. Any other entity raises ValueError.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = stream.read(HEAD_BYTES)
        self._seam = self._head[-len(_ENTITY) + 1 :]
        _check_entities(self._head)

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes. Raises ValueError for entities after the first `HEAD_BYTES` of the file."""
        size = size if size > 0 else _CHUNK
        if self._head:
            piece, self._head = self._head[:size], self._head[size:]
            return piece
        piece = self._stream.read(size)
        # parsers accept declarations anywhere, even after the start of the root element
        seen = self._seam + piece
        if _ENTITY in seen:
            raise ValueError(f"the file declares entities after its first {HEAD_BYTES:,} bytes")
        self._seam = seen[-len(_ENTITY) + 1 :]
        return piece


class ShallowJson:
    """A JSON stream nested at most MAX_JSON_DEPTH levels. `read` raises ValueError if the nesting is deeper."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._escape = b""
        self._in_text = 0
        self._depth = 0

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes. Raises ValueError if the nesting is too deep."""
        piece = self._stream.read(size if size > 0 else _CHUNK)
        plain = _ESCAPE.sub(b"", self._escape + piece)
        self._escape = b"\\" if plain.endswith(b"\\") else b""
        # every second part between quotation marks is a string
        parts = plain.translate(None, _NOT_STRUCTURE).split(b'"')
        outside = b"".join(parts[self._in_text :: 2])
        self._in_text = (self._in_text + len(parts) - 1) % 2
        if outside:
            depths = self._depth + np.cumsum(_STEP[np.frombuffer(outside, dtype=np.uint8)])
            self._depth = int(depths[-1])
            if depths.max() > MAX_JSON_DEPTH:
                raise ValueError(f"the JSON is nested deeper than {MAX_JSON_DEPTH} levels")
        return piece


def check_no_doctype(data: bytes) -> None:
    """Refuse XML that may declare entities. Raises ValueError if the XML has a DOCTYPE or is not UTF-8."""
    if b"<!DOCTYPE" in data or b"\0" in data:
        raise ValueError("the file has a DOCTYPE or is not in UTF-8; remove the DOCTYPE, or convert the file to UTF-8")


def _check_entities(head: bytes) -> None:
    """Check the entities in the head of a file. Raises ValueError for too many, too long or nested entities."""
    starts = head.count(_ENTITY)
    if not starts:
        return
    found = list(_FLAT_ENTITY.finditer(head))
    values = [match[1] if match[1] is not None else match[2] for match in found]
    if len(found) != starts or any(_REFERENCE.search(value) for value in values):
        raise ValueError("the file declares entities that refer to other entities or files; expand these entities")
    if len(found) > MAX_ENTITIES or any(len(value) > MAX_ENTITY_BYTES for value in values):
        raise ValueError(
            f"the file declares more than {MAX_ENTITIES:,} entities, or one longer than {MAX_ENTITY_BYTES:,} bytes"
        )
