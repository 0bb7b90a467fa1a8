"""Converts a graph of GRBench (Jin et al. 2024, Graph Chain-of-Thought) to N-Triples.

The file is read twice: once to learn which nodes exist and which edges only one of their ends lists, and once to write.
Memory grows by 8 bytes per node, and by 8 bytes per edge that only an inverse link has.
"""

from __future__ import annotations

import re
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kgqa.errors import LoadError
from kgqa.evaluation.datasets.grbench.lines import ConversionReport, GraphLines
from kgqa.evaluation.datasets.grbench.nodes import Node, graph_file, read_nodes
from kgqa.evaluation.datasets.grbench.scan import batches, scan_nodes
from kgqa.storage.atomic_files import replace_file
from kgqa.text.hints import Option

Progress = Callable[[str, int, int], None]
"""Called with the stage (`reading`, `writing`), the bytes read so far and all bytes of the file."""
_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*", re.ASCII)


def convert(
    place: Path,
    out: Path,
    *,
    name: str = "",
    keep_order: bool = False,
    progress: Progress = lambda stage, done, total: None,
) -> ConversionReport:
    """Convert a graph to an RDF file, which is written completely or not at all.

    Args:
        place: the folder of a graph, or its file.
        out: the new file, .nt or .nt.gz.
        name: name of the graph in IRIs; by default that of the folder.
        keep_order: whether to write the order of lists, see docs/grbench.md.

    Raises:
        LoadError: the graph cannot be read, is damaged or has another format, or the file cannot be written.
    """
    started = time.monotonic()
    if not out.name.endswith((".nt", ".nt.gz")):
        raise LoadError(f"{out} must end in .nt or .nt.gz.", "Choose a name such as legal.nt.gz")
    file = graph_file(place)
    size = file.stat().st_size
    name = name or (place if place.is_dir() else place.parent).resolve().name
    if not _NAME.fullmatch(name):
        raise LoadError(
            f"{name!r} cannot be the name of a graph in IRIs.", "Give a plain one: ", Option("name", "legal")
        )
    report = ConversionReport(name)

    def nodes(stage: str) -> Iterator[Node]:
        return read_nodes(file, lambda done: progress(stage, done, size))

    try:
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            scan = scan_nodes(nodes("reading"), Path(folder))
        blocks = _blocks(nodes("writing"), GraphLines(scan, report, keep_order), report)
        replace_file(out, _compressed(blocks) if out.suffix == ".gz" else blocks)
    except OSError as error:
        raise LoadError(f"{out} cannot be written: {error.strerror or error}.") from error
    report.seconds = time.monotonic() - started
    return report


def _blocks(nodes: Iterable[Node], graph: GraphLines, report: ConversionReport) -> Iterator[bytes]:
    def encoded(lines: list[str]) -> bytes:
        report.triples += len(lines)
        return "".join(lines).encode("utf-8", "replace")

    for batch, links in batches(nodes):
        yield encoded([line for node in batch for line in graph.node(node)])
        for listed in links:
            yield encoded(list(graph.edges(listed)))
    yield encoded(list(graph.schema()))


def _compressed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(4, zlib.DEFLATED, 31)
    yield from map(packer.compress, blocks)
    yield packer.flush()
