"""Measures the time to load a graph with kgqa, compared with the bare engine.

The wall time in seconds is measured on freebase_fast/kg.nt.gz (214,593 triples, gzip):

- kgqa: `load_graph` into a new folder (decompress, check and hash every line, load, publish), then
  `open_graph(...).names` with an empty cache, which builds the index of names. After that, questions can be asked.
- bare: `pyoxigraph.Store(new folder).bulk_load(gzip.open(...))` and `flush()`.

Every run is a separate process with an empty folder on the same disk. The measured time includes kgqa's worker
processes, but not the start of the interpreter or imports. kgqa and the bare engine run alternately, so that background
load affects both, and their order changes from round to round. One unmeasured run of each fills the disk cache.

The bound is that kgqa's median is at most 3 times the median of the bare engine. The bare engine builds no index of
names and detects neither duplicates nor malformed lines; `load only` is kgqa's time without the index. `tables` is the
time for the tables of relations and mediators, which `kgqa graph load` makes too; it is not part of the total.

    python benchmarks/loading.py [--rounds 5] [--file kg.nt.gz] [--json]

Exits with 1 if the bound is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import data_file, machine, print_json, print_table

LIMIT = 3.0
SIDES = ("kgqa", "bare")


def load_kgqa(file: Path, folder: Path) -> dict[str, float]:
    """Return the seconds of each phase of a load with kgqa, and the number of triples."""
    import pyoxigraph  # noqa: F401  imported on both sides before the clock starts

    from kgqa.graph.embedded.loading import load_graph
    from kgqa.graph.opening import open_graph
    from kgqa.storage.cache import Cache

    started = time.perf_counter()
    report = load_graph(folder / "graph", [file])
    loaded = time.perf_counter()
    with open_graph(folder / "graph", cache=Cache(folder / "cache")) as graph:
        names = graph.names.count
        indexed = time.perf_counter()
        graph.tables.prepare()
        prepared = time.perf_counter()
    return {
        "total": indexed - started,
        "load": loaded - started,
        "names": indexed - loaded,
        "tables": prepared - indexed,
        "triples": report.triples,
        "name_count": names,
    }


def load_bare(file: Path, folder: Path) -> dict[str, float]:
    """Return the seconds of the bare engine's bulk load, and the number of triples."""
    import pyoxigraph as ox

    started = time.perf_counter()
    store = ox.Store(str(folder / "store"))
    with gzip.open(file, "rb") as stream:
        store.bulk_load(stream, format=ox.RdfFormat.N_TRIPLES)
    store.flush()
    seconds = time.perf_counter() - started
    return {"total": seconds, "load": seconds, "names": 0.0, "tables": 0.0, "triples": len(store), "name_count": 0}


def in_fresh_process(side: str, file: Path, scratch: Path | None) -> dict[str, float]:
    """Load once with kgqa or with the bare engine, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="kgqa-bench-", dir=scratch) as folder:
        command = [sys.executable, __file__, "--file", str(file), "--one", side, folder]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"The run of {side} failed; see its output above.")
        return json.loads(done.stdout)


def measure(file: Path, rounds: int, scratch: Path | None) -> dict[str, list[dict[str, float]]]:
    """Load with kgqa and with the bare engine alternately and return all measurements, in order."""
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for number in range(rounds + 1):
        for side in SIDES if number % 2 else reversed(SIDES):
            run = in_fresh_process(side, file, scratch)
            if number:  # The first round only fills the disk cache.
                runs[side].append(run)
    return runs


def summary(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return the medians, their ratio, and whether the ratio is within the bound."""
    phases = ("total", "load", "names", "tables")
    medians = {side: {phase: median(run[phase] for run in runs[side]) for phase in phases} for side in SIDES}
    bare = medians["bare"]["total"]
    ratio = medians["kgqa"]["total"] / bare
    paired = [ours["total"] / theirs["total"] for ours, theirs in zip(runs["kgqa"], runs["bare"])]
    return {
        "median_seconds": medians,
        "ratio": ratio,
        "ratio_load_only": medians["kgqa"]["load"] / bare,
        "ratio_lowest": min(paired),
        "ratio_highest": max(paired),
        "limit": LIMIT,
        "within": ratio <= LIMIT,
        "triples": {side: runs[side][0]["triples"] for side in SIDES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each side (default 5)")
    parser.add_argument("--file", type=Path, help="N-Triples, gzip (default: freebase_fast/kg.nt.gz of the data)")
    parser.add_argument("--scratch", type=Path, help="where folders are made (default: the system's)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        side, folder = options.one
        print(json.dumps((load_kgqa if side == "kgqa" else load_bare)(options.file, Path(folder))))
        return
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    file = (options.file or data_file("freebase_fast", "kg.nt.gz")).resolve()
    if not file.is_file():
        sys.exit(f"{file} does not exist.")

    runs = measure(file, options.rounds, options.scratch)
    result = summary(runs)
    if result["triples"]["kgqa"] != result["triples"]["bare"]:
        sys.exit(f"The two sides loaded different numbers of triples: {result['triples']} triples.")
    if options.json:
        print_json({"machine": machine(), "file": str(file), **result, "runs": runs})
    else:
        print(f"{file.name}: {result['triples']['bare']:,} triples, {options.rounds} rounds; seconds\n")
        rows = [
            [
                side,
                *(result["median_seconds"][side][phase] for phase in ("total", "load", "names", "tables")),
                min(run["total"] for run in runs[side]),
                max(run["total"] for run in runs[side]),
            ]
            for side in SIDES
        ]
        print_table(["", "median", "load only", "name index", "tables", "fastest", "slowest"], rows)
        verdict = "holds" if result["within"] else "MISSED"
        print(
            f"\nkgqa / bare: {result['ratio']:.2f} (round by round {result['ratio_lowest']:.2f} to "
            f"{result['ratio_highest']:.2f}; load only {result['ratio_load_only']:.2f}); "
            f"at most {LIMIT:g}: {verdict}"
        )
    sys.exit(0 if result["within"] else 1)


if __name__ == "__main__":
    main()
