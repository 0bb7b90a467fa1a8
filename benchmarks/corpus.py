"""Measures the building and the searching of a corpus against limits, on the data in KGQA_DATA.

    write     chunk, index (BM25) and write the 6,119 passages of corpus_2wiki, without models: at least 2,000 chunks/s
    facts     write facts with their provenance (the 17,000 triples of MuSiQue) into the graph, compared with the bare
              engine's bulk load of the same quads: at most 2 times its time
    noop      build again when nothing has changed: at most 5 s, the start of the command included
    leiden    find the communities of 120,000 edges: at most 3 s
    search    search passages by BM25, vectors and PageRank: at most 60 ms at the 95th percentile, beside embedding
    growth    build 1/8, 1/4, 1/2 and all of the passages: the time grows with an exponent of at most 1.15
    musique   convert the passages and triples of MuSiQue, without embedding: at most 30 s

Each build is a process of its own, with a new folder. `wall` is the time that its stages take, without the start of the
interpreter; `processor` is the processor time of all its processes. On a machine on which other programs run, compare
processor times: `--processor` compares these with the limits. Ratios are of runs that alternate.

    python benchmarks/corpus.py [SECTION ...] [--rounds 3] [--quick] [--processor] [--check] [--json]

With --check, exits with 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import CHECKOUT, data_file, machine, percentile, print_json, print_table

CHUNKS_PER_SECOND, FACTS_RATIO, NOOP_SECONDS, LEIDEN_SECONDS = 2_000.0, 2.0, 5.0, 3.0
SEARCH_MS, GROWTH_EXPONENT, MUSIQUE_SECONDS = 60.0, 1.15, 30.0
LEIDEN_EDGES = 120_000


@dataclass(frozen=True)
class Bench:
    """What the sections share: a folder, the number of rounds, which time counts, and the share of the data."""

    folder: Path
    rounds: int
    clock: str
    quick: bool

    def passages(self, share: float = 1.0) -> Path:
        """Write a share of the passages of corpus_2wiki, chosen at random, and return the file."""
        file = self.folder / f"passages-{share:g}.json"
        if not file.exists():
            with gzip.open(data_file("corpus_2wiki", "corpus.json.gz"), "rt", encoding="utf-8") as source:
                passages = json.load(source)
            chosen = random.Random(0).sample(passages, round(len(passages) * share))
            file.write_text(json.dumps(chosen, ensure_ascii=False), encoding="utf-8")
        return file

    def openie(self) -> Path:
        """Return the passages and triples of MuSiQue."""
        file = self.folder / "openie.json"
        if not file.exists():
            with gzip.open(data_file("musique", "openie_gpt35.json.gz"), "rb") as source, open(file, "wb") as target:
                shutil.copyfileobj(source, target)
        return file

    def new(self) -> Path:
        """Return a folder that does not exist yet."""
        return Path(tempfile.mkdtemp(dir=self.folder)) / "new"


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure a block: wall time and processor time, that of finished child processes included."""

    def processor() -> float:
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(each.ru_utime + each.ru_stime for each in both)

    found: dict[str, float] = {}
    wall, used = time.perf_counter(), processor()
    yield found
    found.update(wall=time.perf_counter() - wall, processor=processor() - used)


def build(folder: Path, *arguments: str | Path) -> dict[str, Any]:
    """Run `kgqa corpus build`; return its report with the time of the process and of its stages."""
    command = [sys.executable, "-m", "kgqa", "corpus", "build", *map(str, arguments), "--into", str(folder)]
    environment = {**os.environ, "KGQA_CACHE_FOLDER": str(folder.parent / "cache"), "PYTHONPATH": str(CHECKOUT)}
    with timed() as whole:
        done = subprocess.run(
            [*command, "--embeddings", "off", "--json", "--quiet"], env=environment, stdout=subprocess.PIPE, check=False
        )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed; see its output above.")
    report: dict[str, Any] = json.loads(done.stdout)
    return {**report, "process": whole, "wall": sum(report["seconds"].values()), "processor": whole["processor"]}


def write(bench: Bench) -> dict[str, Any]:
    """Chunk, index and write passages."""
    runs = [build(bench.new(), bench.passages(), "--extract", "none") for _ in range(bench.rounds)]
    fastest = min(runs, key=lambda run: float(run[bench.clock]))
    speed = fastest["chunks"] / fastest[bench.clock]
    return {
        "values": {"chunks": fastest["chunks"], "wall": fastest["wall"], "processor": fastest["processor"]},
        "stages": fastest["seconds"],
        "measured": speed,
        "limit": CHUNKS_PER_SECOND,
        "unit": "chunks/s",
        "within": speed >= CHUNKS_PER_SECOND,
    }


def facts(bench: Bench) -> dict[str, Any]:
    """Write facts with their provenance, and load the same quads with the engine alone, alternately."""
    from kgqa.corpus.folder import CorpusFolder
    from kgqa.corpus.storage.database import Database

    corpus = bench.new()
    build(corpus, "--triples", bench.openie())
    database = Database(CorpusFolder(corpus).database)
    additions = list(database.live.all(database.seq))
    database.close()
    quads = bench.folder / "quads.nq"
    runs: dict[str, list[dict[str, float]]] = {"log": [], "graph": [], "bare": []}
    for number in range(bench.rounds + 1):
        for side in ("kgqa", "bare") if number % 2 else ("bare", "kgqa"):
            if side == "kgqa" or not quads.exists():
                found = write_facts(bench.new(), additions, quads)
            if side == "bare":
                found = {"bare": load_bare(bench.new(), quads)}
            if number:  # the first round fills the disk cache
                for name, value in found.items():
                    runs[name].append(value)
    medians = {name: median(run[bench.clock] for run in side) for name, side in runs.items()}
    ratio = medians["graph"] / medians["bare"]
    return {
        "values": {
            **{f"{name} ({bench.clock})": value for name, value in medians.items()},
            "with the log": (medians["graph"] + medians["log"]) / medians["bare"],
            "quads": sum(1 for _ in open(quads, "rb")),
        },
        "measured": ratio,
        "limit": FACTS_RATIO,
        "unit": "times the bare load",
        "within": ratio <= FACTS_RATIO,
    }


def write_facts(folder: Path, additions: list[Any], quads: Path) -> dict[str, dict[str, float]]:
    """Return the times to commit additions to the log of a new corpus and to publish its graph; keep its quads."""
    from kgqa.corpus.building.build import fewer_collections
    from kgqa.corpus.editor import Editor
    from kgqa.corpus.folder import CorpusFolder

    opened = CorpusFolder(folder)
    opened.create()

    def keep(step: str) -> None:
        if step == "file" and not quads.exists():
            shutil.copy(opened.staging, quads)

    with Editor(opened) as editor, fewer_collections():
        with timed() as log:
            editor.apply("insert", additions, agent="benchmark")
        with timed() as graph:
            editor.publish(keep)
    return {"log": log, "graph": graph}


def load_bare(folder: Path, quads: Path) -> dict[str, float]:
    """Return the time of the engine's bulk load."""
    import pyoxigraph as ox

    with timed() as found:
        store = ox.Store(str(folder))
        with open(quads, "rb") as stream:
            store.bulk_load(stream, format=ox.RdfFormat.N_QUADS)
        store.flush()
        store.optimize()
    return found


def noop(bench: Bench) -> dict[str, Any]:
    """Build again when nothing has changed."""
    corpus = bench.new()
    build(corpus, bench.passages())
    runs = [build(corpus, bench.passages())["process"] for _ in range(bench.rounds)]
    seconds = min(run[bench.clock] for run in runs)
    return {
        "values": {"wall": min(run["wall"] for run in runs), "processor": min(run["processor"] for run in runs)},
        "measured": seconds,
        "limit": NOOP_SECONDS,
        "unit": "s",
        "within": seconds <= NOOP_SECONDS,
    }


def leiden(bench: Bench) -> dict[str, Any]:
    """Find the communities of a graph with groups and hubs."""
    from kgqa.corpus.communities.finding import find_communities

    rng = np.random.default_rng(0)
    nodes = LEIDEN_EDGES * 2 // 3
    groups = rng.integers(0, nodes // 40, nodes)
    by_group = np.argsort(groups, kind="stable")
    near = by_group[(np.arange(LEIDEN_EDGES) * 2 + rng.integers(1, 30, LEIDEN_EDGES)) % nodes]
    ends = np.stack((by_group[np.arange(LEIDEN_EDGES) * 2 % nodes], near), axis=1)
    hubs = rng.random(LEIDEN_EDGES) < 0.1
    ends[hubs, 1] = rng.zipf(1.5, int(hubs.sum())) % nodes
    pairs = {(int(min(pair)), int(max(pair))) for pair in ends if pair[0] != pair[1]}
    while len(pairs) < LEIDEN_EDGES:
        one, other = rng.integers(0, nodes, 2)
        if one != other:
            pairs.add((int(min(one, other)), int(max(one, other))))
    edges = [(f"urn:{one:06}", f"urn:{other:06}", 1.0) for one, other in sorted(pairs)]
    times, found = [], ()
    for _ in range(bench.rounds):
        with timed() as run:
            found = find_communities(edges)
        times.append(run)
    seconds = min(run[bench.clock] for run in times)
    return {
        "values": {
            "wall": min(run["wall"] for run in times),
            "processor": min(run["processor"] for run in times),
            "edges": len(edges),
            "communities": len(found),
        },
        "measured": seconds,
        "limit": LEIDEN_SECONDS,
        "unit": "s",
        "within": seconds <= LEIDEN_SECONDS,
    }


class HashEncoder:
    """Stands for an embedding model: adds up a fixed random vector for each word; embedding takes no time."""

    name, max_tokens, size = "hashed words", 256, 384

    def __init__(self) -> None:
        self._words = np.random.default_rng(0).standard_normal((1 << 14, self.size)).astype(np.float32)

    def token_spans(self, texts: list[str]) -> list[list[tuple[int, int]]]:
        return [[found.span() for found in re.finditer(r"\w+|[^\w\s]", text)] for text in texts]

    def encode_once(self, texts: list[str]) -> np.ndarray:
        found = np.empty((len(texts), self.size), dtype=np.float32)
        for number, text in enumerate(texts):
            rows = [sum(map(ord, word)) * len(word) % len(self._words) for word in re.findall(r"\w+", text)]
            vector = self._words[rows].sum(axis=0) if rows else self._words[0]
            found[number] = vector / np.linalg.norm(vector)
        return found

    encode_questions = encode_once


def search(bench: Bench) -> dict[str, Any]:
    """Search passages with all channels; the times of single queries."""
    from kgqa.corpus.corpus import Corpus

    corpus = bench.new()
    report = build(corpus, bench.passages(), "--extract", "rules")
    encoder = HashEncoder()
    with gzip.open(data_file("corpus_2wiki", "corpus.json.gz"), "rt", encoding="utf-8") as source:
        passages = json.load(source)
    rng = random.Random(1)
    questions = [
        f"Who is related to {one['title']} and when was {other['title']} made?"
        for one, other in (rng.sample(passages, 2) for _ in range(50 if bench.quick else 200))
    ]
    times: dict[str, list[float]] = {}
    with Corpus.open(corpus, encoder=encoder) as opened:
        statements = len(opened.index.pieces("statement"))
        for name, channels in (("bm25", ["bm25"]), ("vectors", ["dense"]), ("PageRank", ["pagerank"]), ("all", [])):
            retriever = opened.retriever("chunk", channels)
            retriever.search(questions[:2], 10)
            encoder.encode_questions(questions)
            times[name] = []
            for question in questions:
                started = time.perf_counter() if bench.clock == "wall" else time.process_time()
                retriever.search([question], 10)
                ended = time.perf_counter() if bench.clock == "wall" else time.process_time()
                times[name].append((ended - started) * 1000)
    p95 = percentile(times["all"], 0.95)
    return {
        "values": {
            **{f"{name}, ms p50": percentile(each, 0.5) for name, each in times.items()},
            **{f"{name}, ms p95": percentile(each, 0.95) for name, each in times.items()},
            "chunks": report["chunks"],
            "statements": statements,
        },
        "measured": p95,
        "limit": SEARCH_MS,
        "unit": "ms",
        "within": p95 <= SEARCH_MS,
    }


def growth(bench: Bench) -> dict[str, Any]:
    """Build shares of the passages with facts by rules; fit the exponent of the growth of the time."""
    shares = (0.125, 0.25, 0.5, 1.0)
    build(bench.new(), bench.passages(shares[0]))
    runs = {share: [] for share in shares}
    for _ in range(bench.rounds):
        for share in shares:
            runs[share].append(build(bench.new(), bench.passages(share)))
    fastest = {share: min(each, key=lambda run: run[bench.clock]) for share, each in runs.items()}
    # the start of the interpreter and imports are the same for all
    start = start_seconds() if bench.clock == "processor" else 0.0
    seconds = {share: run[bench.clock] - start for share, run in fastest.items()}
    exponent = float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])
    return {
        "values": {
            **{f"{fastest[share]['chunks']:,} chunks, s": value for share, value in seconds.items()},
            "last doubling": math.log2(seconds[1.0] / seconds[0.5]),
        },
        "measured": exponent,
        "limit": GROWTH_EXPONENT,
        "unit": "exponent",
        "within": exponent <= GROWTH_EXPONENT,
    }


def start_seconds() -> float:
    """Return the processor time of starting the command and of its imports."""
    with timed() as found:
        subprocess.run(
            [sys.executable, "-c", "import kgqa.cli.main, kgqa.corpus.building.build, bm25s, scipy.sparse"],
            check=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
    return found["processor"]


def musique(bench: Bench) -> dict[str, Any]:
    """Convert the passages and triples of MuSiQue."""
    runs = [build(bench.new(), "--triples", bench.openie()) for _ in range(bench.rounds)]
    fastest = min(runs, key=lambda run: run["process"][bench.clock])
    seconds = fastest["process"][bench.clock]
    return {
        "values": {name: fastest[name] for name in ("wall", "processor", "chunks", "malformed", "communities")},
        "stages": fastest["seconds"],
        "measured": seconds,
        "limit": MUSIQUE_SECONDS,
        "unit": "s",
        "within": seconds <= MUSIQUE_SECONDS,
    }


SECTIONS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    each.__name__: each for each in (write, facts, noop, leiden, search, growth, musique)
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], epilog=f"Sections: {', '.join(SECTIONS)}."
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="what to measure (default: everything)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each measurement (default 3)")
    parser.add_argument("--quick", action="store_true", help="one round, and fewer questions")
    parser.add_argument("--processor", action="store_true", help="compare processor times instead of wall times")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--scratch", type=Path, help="where folders are made (default: the system's)")
    options = parser.parse_args()
    if unknown := set(options.sections) - SECTIONS.keys():
        parser.error(f"unknown section {min(unknown)}; choose from {', '.join(SECTIONS)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    results = {}
    with tempfile.TemporaryDirectory(prefix="kgqa-bench-", dir=options.scratch) as folder:
        clock = "processor" if options.processor else "wall"
        bench = Bench(Path(folder), 1 if options.quick else options.rounds, clock, options.quick)
        for name in options.sections or SECTIONS:
            results[name] = SECTIONS[name](bench)
            if not options.json:
                show(name, results[name])
    if options.json:
        print_json({"machine": machine(), "clock": clock, **results})
    if options.check and not all(result["within"] for result in results.values()):
        sys.exit(1)


def show(name: str, result: dict[str, Any]) -> None:
    most = "at least" if name == "write" else "at most"
    print(
        f"{name}: {result['measured']:,.2f} {result['unit']}, {most} {result['limit']:,g}: "
        f"{'holds' if result['within'] else 'MISSED'}"
    )
    print_table(["", ""], [[f"  {key}", value] for key, value in result["values"].items()])
    if "stages" in result:
        print("  stages, wall s: " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in result["stages"].items()))
    print(flush=True)


if __name__ == "__main__":
    main()
