"""Reads the nodes of a graph.json of GRBench one at a time, whatever the size of the file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

from kgqa.errors import LoadError
from kgqa.storage.json_stream import MAX_VALUE_CHARS, JsonStream, LongValue
from kgqa.text.words import clean

GRAPH_FILES = ("graph.json", "graph.json.gz")
_CHUNK = 1 << 20
_IDS_AT_ONCE = 50_000
_SECTION_END = "_nodes"


@dataclass(frozen=True, slots=True)
class NodePart:
    """A node, or a part of a node that is too long to be read at once.

    `features`: as in the file. `links`: by name, the ids of neighbours. `first`, `last`: whether it is the node's
    first or last part.
    """

    type: str
    id: str
    features: Mapping[str, Any] = field(default_factory=dict)
    links: Mapping[str, list[str]] = field(default_factory=dict)
    first: bool = True
    last: bool = True


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


def read_nodes(
    file: Path, on_bytes: Callable[[int], None] = lambda done: None, *, max_chars: int = MAX_VALUE_CHARS
) -> Iterator[NodePart]:
    """Read the nodes of a file in order.

    Args:
        file: JSON: an object of `TYPE_nodes`, each an object of nodes by id with `features` and `neighbors`.
        on_bytes: called with the number of bytes read so far, compressed if the file is.
        max_chars: a longer node is read in parts; a longer feature is an error.

    Raises:
        LoadError: the file cannot be read, is cut short, is not JSON or has another format.
    """
    node = ""
    try:
        with ExitStack() as stack:
            on_disk: IO[bytes] = stack.enter_context(open(file, "rb"))
            text = cast(IO[bytes], gzip.GzipFile(fileobj=on_disk)) if file.suffix == ".gz" else on_disk
            stream = JsonStream(_chunks(text, on_disk, on_bytes), max_value_chars=max_chars)
            for section in stream.members():
                type_ = section.removesuffix(_SECTION_END)
                for ident in stream.members():
                    node = ident
                    try:
                        value = stream.value()
                    except LongValue:
                        yield from _long_node(stream, type_, ident)
                        continue
                    yield _whole_node(type_, ident, value)
            stream.end()
    except LongValue:
        raise LoadError(
            f"{file.name}: node {clean(node[:80])!r} has a value longer than {max_chars:,} characters.",
            "Shorten this value.",
        ) from None
    except ValueError as error:
        where = f" (in or after node {clean(node[:80])!r})" if node else ""
        raise LoadError(
            f"{file.name} is damaged or not a graph of GRBench{where}: {error}.",
            "Download the file again.",
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise LoadError(f"{file.name} is truncated or damaged: {error}.", "Download the file again.") from None
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error.strerror or error}.") from error


def _chunks(text: IO[bytes], on_disk: IO[bytes], on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    while chunk := text.read(_CHUNK):
        yield chunk
        on_bytes(on_disk.tell())


def _whole_node(type_: str, ident: str, value: Any) -> NodePart:
    if not isinstance(value, dict):
        raise ValueError("a node must be an object")
    features, neighbours = value.get("features") or {}, value.get("neighbors") or {}
    if not isinstance(features, dict) or not isinstance(neighbours, dict):
        raise ValueError("features and neighbors must be objects")
    for link, listed in neighbours.items():
        if type(listed) is not list or not _are_texts(listed):
            neighbours[link] = _ids(listed)
    return NodePart(type_, ident, features, neighbours)


def _long_node(stream: JsonStream, type_: str, ident: str) -> Iterator[NodePart]:
    """Read a node in parts: each feature and each piece of a list of neighbours is one."""
    yield NodePart(type_, ident, last=False)
    for part in stream.members():
        if part not in ("features", "neighbors"):
            stream.value()
            continue
        for name in stream.members():
            if part == "features":
                yield NodePart(type_, ident, {name: stream.value()}, first=False, last=False)
                continue
            for ids in _listed(stream):
                yield NodePart(type_, ident, links={name: ids}, first=False, last=False)
    yield NodePart(type_, ident, first=False)


def _listed(stream: JsonStream) -> Iterator[list[str]]:
    opening = stream.peek()
    if opening == "{":
        for _ in stream.members():
            yield from _listed(stream)
    elif opening == "[":
        yield []
        items = stream.items()
        while ids := list(islice(items, _IDS_AT_ONCE)):
            yield _ids(ids)
    else:
        yield _ids(stream.value())


def _are_texts(listed: list[Any]) -> bool:
    return not listed or set(map(type, listed)) == {str}


def _ids(listed: Any) -> list[str]:
    """Return the ids of a list of neighbours; before the last step of GRBench, legal lists are objects of lists."""
    if isinstance(listed, dict):
        listed = list(chain.from_iterable(map(_ids, listed.values())))
    if listed is None:
        return []
    if isinstance(listed, (str, int)):
        listed = [listed]
    if not isinstance(listed, list):
        raise ValueError("neighbours must be lists of ids")
    if _are_texts(listed):
        return listed
    if not all(isinstance(each, (str, int)) for each in listed):
        raise ValueError("neighbours must be lists of ids")
    return [str(each) for each in listed]
