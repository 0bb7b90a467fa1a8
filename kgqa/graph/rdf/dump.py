"""Reads all triples of a graph folder as lines, without keeping them in memory.

A process of its own reads the engine's files, because damaged files can end the process that opens them. Its standard
output has the triples as N-Triples.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kgqa.errors import StoreCrashed
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.rdf.lines import blocks
from kgqa.text.words import clean


def dump_blocks(folder: Path, graphs: Sequence[str] = ()) -> Iterator[bytes]:
    r"""Yield the triples of some graphs of a folder as canonical N-Triples, in blocks of complete lines.

    The last bytes of a line are ` .\n`, which occur nowhere else in it. A triple of several graphs is yielded for each.

    Args:
        folder: a graph folder. The generation that is published now is read, even if another is published meanwhile.
        graphs: the IRIs of named graphs; empty for the default graph.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy: see `EmbeddedStore`.
        StoreCrashed: the engine's files cannot be read.
    """
    with EmbeddedStore(folder, workers=1) as store:
        files = store.folder.store_dir(store.meta.generation)
        command = [sys.executable, "-m", "kgqa.graph.rdf.dump", str(files), *graphs]
        nothing = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as process:
            assert process.stdout is not None
            try:
                yield from blocks(process.stdout)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise StoreCrashed(f"The graph at {clean(str(folder))} could not be read.", "Load it again.")


def main(files: str, *graphs: str) -> None:
    """Write the triples of some graphs to standard output."""
    import pyoxigraph as ox

    store = ox.Store.read_only(files)
    for graph in map(ox.NamedNode, graphs) if graphs else [ox.DefaultGraph()]:
        store.dump(sys.stdout.buffer, format=ox.RdfFormat.N_TRIPLES, from_graph=graph)


if __name__ == "__main__":
    main(*sys.argv[1:])
