"""Converts a graph of GRBench (Jin et al. 2024, Graph Chain-of-Thought) to N-Triples.

The file is read twice: once to learn which nodes exist and which edges only one of their ends lists, and once to write.
Memory grows by 8 bytes per node, and by 8 bytes per edge that only an inverse link has.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kgqa.errors import LoadError
from kgqa.graph.rdf.grbench.edge_lines import EdgeLines
from kgqa.graph.rdf.grbench.node_lines import NodeLines
from kgqa.graph.rdf.grbench.nodes import NodePart, graph_file, read_nodes
from kgqa.graph.rdf.grbench.report import ConversionReport
from kgqa.graph.rdf.grbench.scan import Scan, scan_nodes
from kgqa.graph.rdf.grbench.schema_lines import schema_lines
from kgqa.graph.rdf.grbench.tables import link_tables
from kgqa.storage.atomic_files import replace_file
from kgqa.text.hints import Option

Progress = Callable[[str, int, int], None]
"""Called with the stage (`reading`, `writing`), the bytes read so far and all bytes of the file."""
ENDINGS = (".nt", ".nt.gz")
_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*", re.ASCII)
_BLOCK_LINES = 20_000
_BLOCK_EDGES = 50_000
_ALL_BITS = (1 << 64) - 1


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
    if not out.name.endswith(ENDINGS):
        raise LoadError(f"{out} must end in .nt or .nt.gz.", "Choose a name such as legal.nt.gz")
    file = graph_file(place)
    size = file.stat().st_size
    name = name or (place if place.is_dir() else place.parent).resolve().name
    if not _NAME.fullmatch(name):
        raise LoadError(
            f"{name!r} cannot be the name of a graph in IRIs.", "Give a plain one: ", Option("name", "legal")
        )
    report = ConversionReport(name)

    def parts(stage: str) -> Iterator[NodePart]:
        return read_nodes(file, lambda done: progress(stage, done, size))

    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise LoadError(f"{out.parent} cannot be written: {error.strerror}.") from error
    try:
        scan = scan_nodes(parts("reading"), link_tables(), folder)
        shutil.rmtree(folder)
        if not scan.types:
            raise LoadError(f"{file} contains no nodes.")
        blocks = _blocks(parts("writing"), scan, report, keep_order)
        replace_file(out, _compressed(blocks) if out.suffix == ".gz" else blocks)
    except OSError as error:
        raise LoadError(f"{out} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.seconds = time.monotonic() - started
    return report


def _blocks(parts: Iterable[NodePart], scan: Scan, report: ConversionReport, keep_order: bool) -> Iterator[bytes]:
    nodes, edges = NodeLines(scan, report, keep_order), EdgeLines(scan, report, keep_order)
    lines: list[str] = []
    for part in _last_of_repeated(parts, scan, report):
        nodes.add(part, lines)
        edges.add(part)
        if edges.waiting >= _BLOCK_EDGES or len(lines) >= _BLOCK_LINES:
            edges.write(lines)
            yield _encoded(lines, report)
    edges.write(lines)
    lines += schema_lines(scan, report, nodes.features)
    yield _encoded(lines, report)


def _encoded(lines: list[str], report: ConversionReport) -> bytes:
    report.triples += len(lines)
    data = "".join(lines).encode("utf-8", "replace")
    lines.clear()
    return data


def _last_of_repeated(parts: Iterable[NodePart], scan: Scan, report: ConversionReport) -> Iterator[NodePart]:
    """Yield the last of nodes that the file has more than once, as `json.load` does."""
    left = dict(scan.repeated)
    report.repeated_nodes = sum(left.values()) - len(left)
    for part in parts:
        key = (part.type, hash(part.id) & _ALL_BITS) if left else None
        if key in left and left[key] > 1:
            left[key] -= part.last
            continue
        yield part


def _compressed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(4, zlib.DEFLATED, 31)
    yield from map(packer.compress, blocks)
    yield packer.flush()
