"""What `golden.py` records of corpora and their edits, the dump cleaner, exported queries and metrics."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest.mock import patch

from common import CHECKOUT, data_file
from dump_sample import write_dump
from golden_adapter import read_text_questions, text_agent
from golden_methods import evograph_options, prompted, text_corpus
from golden_records import FREEBASE, Record, file, kgqa, loaded, read_rows, spread

KINDS = ("chunk", "statement", "entity", "community", "path")
EDIT = re.compile(r"[0-9a-f]{40}")
UNSTABLE = re.compile(r'(?<=urn:kgqa:usage:)[0-9a-f]{24}|(?<=corpus:content> ")[0-9a-f]{64}|(?<=:)[0-9a-f]{10}(?=")')
"""Ids and hashes of edits that follow from times, and the random end of a session."""
TIME = re.compile(r'"\d{4}-\d\d-\d\dT[^"]*"')
TIMES = re.compile(r"seconds|^at$|^decided$|^started|^finished|_at$|version|^file$|^run$")
"""Keys of JSON whose values differ from run to run."""
DUMP_LINES = 20_000
ONE_BY_ONE = {"gnn-rag": ("gnnrag_webqsp_llama2_predictions", 350), "aog": ("aog_simpleqa_qwen3max", 150)}
"""Formats of published predictions: the file, and how many of it are scored one by one."""


def inside(*arguments: object) -> Any:
    """Run a command that prints JSON in this process, which is quicker for short commands; return the JSON."""
    (command,) = entry_points(group="console_scripts", name="kgqa")
    out = io.StringIO()
    argv = patch.object(sys, "argv", ["kgqa", *map(str, arguments)])
    with argv, contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        command.load()()
    return json.loads(out.getvalue())


def without_times(value: Any) -> Any:
    """Return JSON without what differs from run to run, also in tables whose rows have a name."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if not TIMES.search(key)}
    if isinstance(value, list):
        named = [str(each.get("name")) if isinstance(each, dict) else "" for each in value]
        return [without_times(each) for name, each in zip(named, value) if not TIMES.search(name)]
    return value


def masked(text: str, numbers: Mapping[str, str]) -> str:
    """Return a text with numbers in place of the ids of edits, and without what follows from these and from times."""
    return UNSTABLE.sub("...", EDIT.sub(lambda match: numbers.get(match[0], match[0]), text))


def nquads(corpus: Path, numbers: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the graph of a corpus by subject."""
    found = defaultdict(list)
    for line in masked(kgqa("corpus", "export", corpus, "-q"), numbers).splitlines():
        subject, _, rest = line.partition(" ")
        found[subject].append(TIME.sub('"TIME"', rest) if rest.startswith("<http://www.w3.org/ns/prov#") else rest)
    return {subject: sorted(lines) for subject, lines in found.items()}


def edits(corpus: Path) -> tuple[list[Any], dict[str, str]]:
    """Return the edits of a corpus in the order of the log, and their numbers by id."""
    listed = json.loads(kgqa("edits", "list", corpus, "--json", "--limit", 10_000))
    listed.sort(key=lambda edit: (edit["seq"] or len(listed), edit["question"], edit["adds"]))
    numbers = {edit["id"][-40:]: f"EDIT-{number}" for number, edit in enumerate(listed) if edit["id"]}
    return without_times(json.loads(masked(json.dumps(listed), numbers))), numbers


def corpus(work: Path) -> Iterator[Record]:
    documents = shutil.copytree(CHECKOUT / "kgqa" / "demo" / "corpus", work / "documents")
    demo, musique = work / "demo", work / "musique"
    yield from _documents(documents, demo)
    triples = data_file("musique", "openie_gpt35.json.gz")
    kgqa("corpus", "build", "--triples", triples, "--into", musique, "--embeddings", "off", "-q")
    for subject, lines in nquads(musique, edits(musique)[1]).items():
        yield "nquads of musique", subject, lines
    questions = read_text_questions("musique")
    text = text_corpus(work / "text", questions[:20])
    yield from _searches("musique, words", musique, [each.text for each in questions[:20]], "off")
    yield from _searches("musique, embeddings", text, [each.text for each in questions[:10]], "auto")
    yield from _history(work, shutil.copytree(text_corpus(work / "poor", ()), work / "edited"), text)


def _documents(documents: Path, corpus: Path) -> Iterator[Record]:
    """Build a corpus, and follow changes of its documents."""
    build = ("corpus", "build", documents, "--into", corpus, "--embeddings", "off", "-q")
    kgqa(*build)
    yield from _state("demo, built", corpus)
    islands, people = documents / "islands.md", documents / "people" / "ida-solheim.md"
    islands.write_text(islands.read_text().replace("Sandrey", "Sandholm", 1))
    os.utime(islands, (0, 0))
    people.unlink()
    kgqa(*build)
    yield from _state("demo, changed documents", corpus)
    kgqa("corpus", "remove", corpus, "*museum.html", "-q")
    yield from _state("demo, document removed", corpus)
    last = edits(corpus)[0][-1]["seq"]
    kgqa("edits", "undo", corpus, last, "-q")
    yield from _state("demo, undone", corpus)


def _state(name: str, corpus: Path) -> Iterator[Record]:
    """Record the graph and the edits of a corpus."""
    listed, numbers = edits(corpus)
    yield f"edits of {name}", "all", listed
    for subject, lines in nquads(corpus, numbers).items():
        yield f"nquads of {name}", subject, lines


def _searches(name: str, corpus: Path, texts: Sequence[str], embeddings: str) -> Iterator[Record]:
    for kind in KINDS:
        for text in texts:
            found = inside(
                "corpus", "search", text, "--graph", corpus, "--kind", kind, "--embeddings", embeddings, "--json"
            )
            yield f"search of {name}", f"{kind}: {text}", found


def _history(work: Path, corpus: Path, web: Path) -> Iterator[Record]:
    """Let an agent propose edits; accept, reject and undo some; read every earlier state."""
    questions = read_text_questions("musique")[:10]
    rows = [{"id": each.id, "question": each.text} for each in questions]
    for _ in prompted(rows, text_agent("evograph", questions), *evograph_options(corpus, web)):
        pass
    yield "edits, proposed", "all", edits(corpus)[0]
    waiting = EDIT.findall(kgqa("edits", "list", corpus, "--state", "waiting", "--json"))
    accepted, rejected = dict.fromkeys(waiting[:-2]), dict.fromkeys(waiting[-2:])
    for each in accepted:
        kgqa("edits", "review", corpus, "--accept", each, "--by", "golden", "-q")
    for each in rejected:
        kgqa("edits", "review", corpus, "--reject", each, "--by", "golden", "-q")
    yield "edits, reviewed", "all", edits(corpus)[0]
    kgqa("edits", "undo", corpus, next(iter(accepted)), "--cascade", "--by", "golden", "-q")
    listed, numbers = edits(corpus)
    yield "edits, undone", "all", listed
    before: set[str] = set()
    for seq in [each["seq"] for each in listed if each["seq"]]:
        state = work / f"as of {seq}"
        kgqa("edits", "as-of", corpus, seq, "--into", state, "-q")
        lines = {f"{subject} {rest}" for subject, each in nquads(state, numbers).items() for rest in each}
        yield "earlier states", str(seq), {"added": sorted(lines - before), "removed": sorted(before - lines)}
        before = lines


def dump(work: Path) -> Iterator[Record]:
    sample = work / "dump.gz"
    write_dump(sample, DUMP_LINES)
    counts = kgqa("freebase", "clean", sample, "--out", work / "cleaned", "--workers", 1, "--json", "-q")
    yield "counts", "all", without_times(json.loads(counts))
    for each in sorted((work / "cleaned").iterdir()):
        yield "lines", each.name, each.read_text(encoding="utf-8")


def metrics(work: Path) -> Iterator[Record]:
    run, queries = work / "run", work / "queries"
    questions = file(FREEBASE[1])
    options = (*loaded(FREEBASE[0], work), "--losses", "--concurrency", "1", "-q")
    kgqa("eval", "run", "--dataset", questions, "--out", run, *options)
    for row in read_rows(run / "predictions.jsonl"):
        yield "scores of a run", row["id"], {key: row[key] for key in ("scores", "loss", "hops")}
    yield "report of a run", "all", without_times(json.loads(kgqa("report", run, "--json", "--all-metrics")))
    kgqa("export", run, "--sparql", queries, "-q")
    for each in sorted(queries.glob("*.rq")):
        yield "exported queries", each.name, each.read_text(encoding="utf-8")
    for name, (source, count) in ONE_BY_ONE.items():
        predictions = data_file("recorded_llm", f"{source}.jsonl.gz")
        yield "published predictions", name, without_times(inside("score", predictions, "--format", name, "--json"))
        for number, row in enumerate(spread(read_rows(predictions), count)):
            one = work / "one.jsonl"
            one.write_text(json.dumps(row))
            found = inside("score", one, "--format", name, "--json")
            yield f"{name} prediction", str(number), without_times(found)
