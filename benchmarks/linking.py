"""Measures the accuracy of topic linking and masking on every question set with gold topics.

Linking sees only the question:

- `known`: share of gold topics that have a name with at least one word that occurs in the question.
- `recall@1`, `recall@5`: share of gold topics that are the first entity of `rank_hits`, or among the first five. With two
  topics, recall@1 is at most 50.
- `recall@gold`: as `recall@5`, but among as many entities as the question has topics.
- `precision`, `same`: results for the topics that `kgqa ask` uses without --topic. `precision` is the share of these
  topics that are gold; `same` is the share of questions with exactly the gold topics.

Masking sees the question and the names of its gold topics, but not their positions:

- `unmasked`: number of topics without a masked span.
- `leaks`: number of questions that still contain a name according to a second matcher.
- `covered`, `exact`: only for MetaQA, which marks the mention. `covered` is the share of questions in which the marked
  span was masked; `exact` is the share in which nothing else was masked.

The rules were developed on the first half of each set (even positions); use the results on the second half.

    python benchmarks/linking.py --work /tmp/linking [--limit 200] [--sets fast metaqa] [--no-fit] [--json]

Exits with 1 if recall@5 of freebase_fast, WC2014 or MetaQA is below 90%.

With --server URL --graph-iri IRI, linking and search of the first set are compared between a graph folder and a server.
The server must contain the graph and the index of its names (kgqa virtuoso index). Results are not cached. `same` is
the share of texts with equal results; `ms` are the p50 and p95 per text in the folder and on the server; `requests` is
the number of requests to the server per text. Exits with 1 if any result differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from common import data_file, machine, percentile, print_json, print_table

from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.reading import NameReader
from kgqa.graph.opening import open_graph
from kgqa.graph.store import Rows
from kgqa.model import Entity
from kgqa.rank.embedding.encoder import open_encoder
from kgqa.rank.tournaments.chooser import TextScorer
from kgqa.search.linking import NameLookup, find_mentions, rank_hits
from kgqa.search.masking import leaks, placeholders, replace_spans, topic_spans
from kgqa.search.name_matching import word_keys
from kgqa.storage.cache import Cache

LIMIT = 0.9
FREEBASE = tuple(
    f"freebase/{name}.nt.gz"
    for name in [
        "kg_arcane1",
        "kg_arcane2_skolem",
        "kg_epr_dev",
        "kg_fb237",
        "kg_fb237_cvt",
        "kg_gold_dev",
        "kg_grasp",
        "kg_inverse_closure",
        "kg_simplequestions",
        "kg_subgraphrag",
        "names",
        "schema",
    ]
)
# name: files of the graph, files of questions, whether LIMIT applies
SETS: dict[str, tuple[tuple[str, ...], tuple[str, ...], bool]] = {
    "fast": (("freebase_fast/kg.nt.gz", "freebase/schema.nt.gz"), ("freebase_fast/questions.jsonl.gz",), True),
    "wc2014": (
        ("wc2014/kg.nt.gz",),
        ("wc2014/questions_path2.dev.jsonl.gz", "wc2014/questions_conj.dev.jsonl.gz"),
        True,
    ),
    "metaqa": (
        ("metaqa/kg.nt.gz", "metaqa/names.nt.gz"),
        tuple(f"metaqa/questions_{hops}hop.dev.jsonl.gz" for hops in (1, 2, 3)),
        True,
    ),
    **{
        name: ((f"pathquestion/{name}.kg.nt.gz",), (f"pathquestion/{name}.questions.dev.jsonl.gz",), False)
        for name in ("pq2h", "pq3h", "pql2h", "pql3h")
    },
    "freebase": (
        FREEBASE,
        ("freebase/questions_webqsp_test.dev.jsonl.gz", "freebase/questions_cwq_test.dev.jsonl.gz"),
        False,
    ),
}


def ready_graph(name: str, work: Path) -> KnowledgeGraph:
    """Open the graph folder of a question set below `work`; load the graph if the folder does not exist."""
    files = [data_file(*file.split("/")) for file in SETS[name][0]]
    folder = GraphFolder(work / name)
    if not folder.exists():
        print(f"Loading {name} into {folder.path} (once) ...", file=sys.stderr)
        work.mkdir(parents=True, exist_ok=True)
        load_graph(folder.path, files, restart=True)
    return open_graph(folder.path, cache=Cache(work / "cache"))


def questions_of(file: str, limit: int) -> list[dict[str, Any]]:
    """Return the questions that have a topic and that the graph can answer."""
    with gzip.open(data_file(*file.split("/")), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    usable = [
        row
        for row in rows
        if row["topic_entities"]
        and row.get("path_check", "exact") == "exact"
        and row.get("support", "observed") != "incomplete"
    ]
    return usable[:limit]


def gold_of(graph: KnowledgeGraph, row: dict[str, Any]) -> list[Entity]:
    return list(dict.fromkeys(Entity(graph.schema.iri(topic["id"])) for topic in row["topic_entities"]))


def linking(graph: KnowledgeGraph, rows: list[dict[str, Any]], fit: TextScorer | None) -> dict[str, float]:
    topics = first = five = as_many = known = right = taken = same = 0
    seconds = 0.0
    for row in rows:
        gold = set(gold_of(graph, row))
        started = time.perf_counter()
        ranked = (hit.match.entity for hit in rank_hits(graph, NameLookup(row["question"], graph.names), fit))
        found = list(dict.fromkeys(ranked))[: max(5, len(gold))]
        seconds += time.perf_counter() - started
        chosen = {mention.matches[0].entity for mention in find_mentions(graph, row["question"], fit=fit)}
        asked = set(word_keys(row["question"]))
        names = graph.names.names_of(list(gold))
        topics += len(gold)
        first += len(gold & set(found[:1]))
        five += len(gold & set(found[:5]))
        as_many += len(gold & set(found[: len(gold)]))
        known += sum(any(asked & set(word_keys(name)) for name in names[topic]) for topic in gold)
        right += len(gold & chosen)
        taken += len(chosen)
        same += gold == chosen
    return {
        "n": len(rows),
        "topics": topics,
        "known": known / topics,
        "recall@1": first / topics,
        "recall@gold": as_many / topics,
        "recall@5": five / topics,
        "precision": right / taken if taken else math.nan,
        "taken": right / topics,
        "same": same / len(rows),
        "ms": 1000 * seconds / len(rows),
    }


def masking(graph: KnowledgeGraph, rows: list[dict[str, Any]]) -> dict[str, float]:
    topics = unmasked = leaking = covered = exact = marked = 0
    for row in rows:
        names = dict(graph.names.names_of(gold_of(graph, row)))
        found = topic_spans(row["question"], names)
        masked = replace_spans(row["question"], found, placeholders(names))
        topics += len(names)
        unmasked += len(names.keys() - {span.topic for span in found})
        leaking += bool(leaks([masked], [name for given in names.values() for name in given]))
        if "question_marked" in row:
            marked += 1
            start, end = row["question_marked"].index("["), row["question_marked"].index("]") - 1
            spans = [(span.start, span.end) for span in found]
            covered += any(left <= start and end <= right for left, right in spans)
            exact += spans == [(start, end)]
    return {
        "n": len(rows),
        "topics": topics,
        "unmasked": unmasked,
        "leaks": leaking,
        "covered": covered / marked if marked else math.nan,
        "exact": exact / marked if marked else math.nan,
    }


def halves(rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for half, part in (("first", rows[::2]), ("second", rows[1::2])):
        if part:
            yield half, part


def similarity(work: Path) -> TextScorer | None:
    """Return the object that compares topics with the question; None if no embedding model is installed."""
    encoder = open_encoder(Cache(work / "cache"), say=lambda text: print(text, file=sys.stderr))
    if encoder is None:
        return None
    return lambda question, texts: (encoder.encode(list(texts)) @ encoder.encode_questions([question])[0]).tolist()


def measure(names: list[str], work: Path, limit: int, fit: TextScorer | None) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {"linking": [], "masking": []}
    for name in names:
        with ready_graph(name, work) as graph:
            graph.tables.prepare()
            for file in SETS[name][1]:
                for half, rows in halves(questions_of(file, limit)):
                    where = {"set": name, "questions": Path(file).name.removesuffix(".jsonl.gz"), "half": half}
                    found["linking"].append(where | linking(graph, rows, fit))
                    found["masking"].append(where | masking(graph, rows))
                    print(f"{name} {where['questions']} {half}: done", file=sys.stderr)
    return found


class CountingStore(EndpointStore):
    """An endpoint store that counts its requests."""

    requests = 0

    def select(self, query: str, **options: Any) -> Rows:
        self.requests += 1
        return super().select(query, **options)


def against_server(name: str, work: Path, limit: int, url: str, iri: str) -> list[dict[str, Any]]:
    """Compare linking and search between a graph folder and a server on the questions of one set."""
    questions = [row["question"] for file in SETS[name][1] for row in questions_of(file, limit)]
    with (
        ready_graph(name, work) as local,
        KnowledgeGraph(CountingStore(url), local.schema, view=[iri]) as remote,
    ):
        print(f"{type(remote.names).__name__}: {remote.names.count:,} names", file=sys.stderr)
        local.tables.prepare()
        remote.tables.prepare()
        return [
            {"set": name, **compared(local, remote, "linking", questions, find_mentions)},
            {"set": name, **compared(local, remote, "search", searched(local, limit), KnowledgeGraph.search)},
        ]


def searched(graph: KnowledgeGraph, limit: int) -> list[str]:
    """Return search texts: names, words from names, and prefixes of both; they are the same in every run."""
    rng = random.Random(5)
    names = sorted({name for _, name, _ in NameReader(graph.store, graph.schema, graph.view).all()})
    chosen = rng.sample(names, min(limit, 100, len(names)))
    words = [rng.choice(name.split() or [name]) for name in chosen]
    return [*chosen, *words, *(text[: rng.randint(1, len(text))] for text in (*chosen, *words))]


def compared(
    local: KnowledgeGraph,
    remote: KnowledgeGraph,
    what: str,
    texts: list[str],
    ask: Callable[[KnowledgeGraph, str], Any],
) -> dict[str, Any]:
    store = remote.store
    assert isinstance(store, CountingStore)
    same, requests, seconds = 0, [], {"folder": [], "server": []}
    for text in texts:
        before, started = store.requests, time.perf_counter()
        there = ask(remote, text)
        seconds["server"].append(time.perf_counter() - started)
        requests.append(store.requests - before)
        started = time.perf_counter()
        same += ask(local, text) == there
        seconds["folder"].append(time.perf_counter() - started)
    found: dict[str, Any] = {"what": what, "n": len(texts), "same": same / len(texts)}
    for where, measured in seconds.items():
        for share in (0.5, 0.95):
            found[f"{where} p{share * 100:.0f} ms"] = 1000 * percentile(measured, share)
    return found | {f"requests p{share * 100:.0f}": percentile(requests, share) for share in (0.5, 0.95)}


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title}")
    cells = [
        [100 * value if isinstance(value, float) and key != "ms" else value for key, value in row.items()]
        for row in rows
    ]
    print_table(list(rows[0]), cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder where graphs are loaded once")
    parser.add_argument("--limit", type=int, default=10**9, help="maximum number of questions per file")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--no-fit", action="store_true", help="ignore the relations of entities")
    parser.add_argument("--server", metavar="URL", help="compare the first set with this SPARQL endpoint instead")
    parser.add_argument("--graph-iri", metavar="IRI", default="http://freebase.com", help="the named graph there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.server:
        rows = against_server(options.sets[0], options.work, options.limit, options.server, options.graph_iri)
        if options.json:
            print_json({"against": rows, "machine": machine()})
        else:
            print_table(list(rows[0]), [list(row.values()) for row in rows])
        sys.exit(any(row["same"] < 1 for row in rows))
    fit = None if options.no_fit else similarity(options.work)
    found = measure(options.sets, options.work, options.limit, fit)
    low = [row for row in found["linking"] if SETS[row["set"]][2] and row["recall@5"] < LIMIT]
    if options.json:
        print_json(found | {"fit": fit is not None, "limit": LIMIT})
    else:
        show(f"linking, {'with' if fit else 'without'} fit; percent", found["linking"])
        show("masking; percent where not counted", found["masking"])
        for row in low:
            print(f"recall@5 of {row['questions']} ({row['half']} half) is below {LIMIT:.0%}")
    sys.exit(bool(low))


if __name__ == "__main__":
    main()
