"""Reads the nodes of a graph.json of GRBench one at a time, whatever the size of the file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec

from kgqa.errors import LoadError
from kgqa.storage.json_stream import JsonStream, LongValue
from kgqa.text.words import clean

GRAPH_FILES = ("graph.json", "graph.json.gz")
MAX_NODE_CHARS = 256 << 20
_CHUNK = 1 << 20
Ids = list[str | int]


class _NodeJson(msgspec.Struct):
    """A node as the file has it. Before the last step of GRBench, legal lists are objects of lists."""

    features: dict[str, Any] | None = None
    neighbors: dict[str, Ids | dict[str, Ids] | str | int | None] | None = None


class Node(msgspec.Struct, frozen=True):
    """A node: its features as in the file, and for each link the ids of the neighbours that it lists."""

    type: str
    id: str
    features: dict[str, Any]
    links: dict[str, list[str]]


def graph_file(place: Path) -> Path:
    """Return the file with the nodes: `place` itself, or graph.json or graph.json.gz in this folder.

    Raises:
        LoadError: there is none.
    """
    for file in (place, *(place / name for name in GRAPH_FILES)):
        if file.is_file():
            return file
    raise LoadError(
        f"{place} contains no graph.json.",
        "Give the folder of one graph of GRBench, such as processed_data/legal.",
    )


def read_nodes(file: Path, on_bytes: Callable[[int], None] = lambda done: None) -> Iterator[Node]:
    """Read the nodes of a file in order.

    Args:
        file: JSON: an object of `TYPE_nodes`, each an object of nodes by id with `features` and `neighbors`.
        on_bytes: called with the number of bytes read so far, compressed if the file is.

    Raises:
        LoadError: the file cannot be read, is cut short, is not JSON or has another format, or a node has more than
            `MAX_NODE_CHARS` characters.
    """
    ident = ""
    try:
        with open(file, "rb") as on_disk:
            text = gzip.GzipFile(fileobj=on_disk) if file.suffix == ".gz" else on_disk
            stream = JsonStream(_chunks(text, on_disk, on_bytes), max_value_chars=MAX_NODE_CHARS)
            for section in stream.members():
                for ident in stream.members():
                    node = msgspec.convert(stream.value(), _NodeJson)
                    links = {link: _ids(listed) for link, listed in (node.neighbors or {}).items()}
                    yield Node(section.removesuffix("_nodes"), ident, node.features or {}, links)
            stream.end()
    except LongValue:
        raise LoadError(
            f"{file.name}: the node after {clean(ident[:80])!r} has more than {MAX_NODE_CHARS:,} characters.",
            "Shorten it.",
        ) from None
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        where = f" (in or after node {clean(ident[:80])!r})" if ident else ""
        raise LoadError(
            f"{file.name} is damaged or not a graph of GRBench{where}: {clean(str(error))}.", "Download the file again."
        ) from None
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error.strerror or error}.") from error


def _chunks(text: IO[bytes] | gzip.GzipFile, on_disk: IO[bytes], on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    while chunk := text.read(_CHUNK):
        yield chunk
        on_bytes(on_disk.tell())


def _ids(listed: Ids | dict[str, Ids] | str | int | None) -> list[str]:
    if isinstance(listed, dict):
        listed = list(chain.from_iterable(listed.values()))
    elif not isinstance(listed, list):
        listed = [] if listed is None else [listed]
    return list(map(str, listed))
