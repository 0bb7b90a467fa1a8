"""Measures the cost of ranking as ratios within one run, and how far the exported model differs from torch.

BM25 is compared with rank-bm25, a warm cache of embeddings with a cold one, and `kgqa --help` with the import of
sentence-transformers. The texts are Freebase relations in words, from the ontology in the benchmark data. Each time is
the smallest of several. The two sides of a ratio alternate, so that a busy machine slows both. BM25 is measured in CPU
time.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import math
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import data_file, machine, print_json, print_table

from kgqa.rank import lexical
from kgqa.rank.embedding.encoder import CachedEncoder, open_encoder
from kgqa.rank.embedding.onnx_encoder import OnnxEncoder, packaged_minilm
from kgqa.rank.embedding.torch_encoder import TorchEncoder
from kgqa.rank.embedding.vector_cache import VectorCache
from kgqa.schema import load_schema
from kgqa.storage.cache import Cache
from kgqa.text.words import relation_words

QUESTION = "who is the mayor of the city where the team with this mascot plays its home games?"
MINIMUM_COSINE = 0.9999
POOLS = (50, 500, 5000)


def relation_texts(count: int, seed: int) -> list[str]:
    """Return `count` distinct texts of Freebase relations."""
    schema = load_schema("freebase")
    with gzip.open(data_file("ontology", "fb_roles.gz"), "rt", encoding="utf-8") as lines:
        relations = {line.split()[1] for line in lines if len(line.split()) == 3}
    texts = sorted({relation_words(schema.id_base + relation, schema) for relation in relations})
    return random.Random(seed).sample(texts, count)


def seconds(
    *calls: Callable[[], Any],
    times: int,
    before: Callable[[], Any] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the smallest time of each call; calls alternate, and the time of `before` is not included."""
    best = [math.inf] * len(calls)
    for _ in range(times):
        for place, call in enumerate(calls):
            before()
            start = clock()
            call()
            best[place] = min(best[place], clock() - start)
    return best


def line(name: str, ours: float, theirs: float, limit: float | None, *, unit: float = 1000.0) -> dict[str, Any]:
    ratio = ours / theirs
    return {
        "what": name,
        "ours": ours * unit,
        "theirs": theirs * unit,
        "ratio": ratio,
        "limit": limit,
        "within": None if limit is None else ratio <= limit,
    }


def forget_terms() -> None:
    lexical._cached_terms.cache_clear()
    lexical._term.cache_clear()


def bm25_lines(texts: Sequence[str], times: int) -> list[dict[str, Any]]:
    """Time indexing and querying in two cases.

    Texts never seen before: both libraries split the texts into terms. Texts seen before: kgqa receives the texts, and
    rank-bm25 the terms.

    """
    from rank_bm25 import BM25Okapi

    wanted = list(dict.fromkeys(lexical.terms(QUESTION)))
    bags = [lexical.terms(text) for text in texts]

    def ours() -> np.ndarray:
        return lexical.bm25(QUESTION, texts)

    def theirs() -> np.ndarray:
        return BM25Okapi([lexical.terms(text) for text in texts]).get_scores(lexical.terms(QUESTION))

    def theirs_from_terms() -> np.ndarray:
        return BM25Okapi(bags).get_scores(wanted)

    timed = partial(seconds, times=times, clock=time.thread_time)
    for call in (ours, theirs_from_terms):
        call()  # One-time costs of the first call.
    warm = timed(ours, theirs_from_terms)
    cold = timed(ours, theirs, before=forget_terms)
    return [
        line(f"BM25 of {len(texts):,} texts seen before", *warm, 0.5),
        line(f"BM25 of {len(texts):,} texts never seen before", *cold, None),
    ]


def embedding_lines(texts: Sequence[str], times: int) -> list[dict[str, Any]]:
    """Compare the time to read vectors from disk with the time to compute them, and ONNX with torch."""
    with tempfile.TemporaryDirectory() as folder:
        opened = open_encoder(Cache(Path(folder)))
        if opened is None:
            return []
        encoder = opened._encoder
        (cold,) = seconds(lambda: CachedEncoder(encoder, _vectors(folder)).encode(texts), times=1)
        (warm,) = seconds(lambda: CachedEncoder(encoder, _vectors(folder)).encode(texts), times=times)
        found = [line(f"{len(texts):,} vectors: warm cache against cold", warm, cold, 1 / 20)]
        files = packaged_minilm()
        if files is not None and isinstance(encoder, OnnxEncoder) and importlib.util.find_spec("sentence_transformers"):
            few = [QUESTION, *texts[:200]]
            cosine = float((encoder.encode(few) * TorchEncoder(str(files)).encode(few)).sum(axis=1).min())
            found.append(
                {"what": "smallest cosine of ONNX and torch", "ours": None, "theirs": None, "ratio": cosine}
                | {"limit": MINIMUM_COSINE, "within": cosine >= MINIMUM_COSINE}
            )
        return found


def _vectors(folder: str):
    return VectorCache(Path(folder) / "benchmark.sqlite")


def help_line(times: int) -> list[dict[str, Any]]:
    program = Path(sysconfig.get_path("scripts")) / "kgqa"
    if importlib.util.find_spec("sentence_transformers") is None or not program.is_file():
        return []

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)

    ours, theirs = seconds(
        lambda: run(str(program), "--help"),
        lambda: run(sys.executable, "-c", "import sentence_transformers"),
        times=times,
    )
    return [line("`kgqa --help` against importing sentence-transformers", ours, theirs, 0.1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=15, help="repetitions of each call; the smallest time counts")
    parser.add_argument("--vectors", type=int, default=1000, help="number of embedded texts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.times < 1 or not 1 <= options.vectors <= POOLS[-1]:
        parser.error(f"--times is 1 at least, --vectors from 1 to {POOLS[-1]:,}")
    texts = relation_texts(POOLS[-1], options.seed)
    lines = [
        *(each for size in POOLS for each in bm25_lines(texts[:size], options.times)),
        *embedding_lines(texts[: options.vectors], options.times),
        *help_line(min(options.times, 3)),
    ]
    missed = [each["what"] for each in lines if each["within"] is False]
    if options.json:
        print_json({"machine": machine(), "numpy": np.__version__, "lines": lines, "missed": missed})
    else:
        head = ["what", "ours ms", "theirs ms", "ratio", "limit", "within"]
        print_table(head, [[_cell(value) for value in each.values()] for each in lines])
        print("\nMissed: " + "; ".join(missed) if missed else "\nAll limits are met.")
    return 1 if missed else 0


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "NO", None: "-"}[value]
    return value if isinstance(value, str) else f"{value:.4g}"


if __name__ == "__main__":
    sys.exit(main())
