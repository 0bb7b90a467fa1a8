"""What `golden.py` records of answers, corpora, the dump cleaner, exported queries and metrics.

A section yields records: what it is about, a key, and a value of JSON. All go through the command line.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import CHECKOUT, data_file

KGQA = str(Path(sys.executable).with_name("kgqa"))
DATA = Path(os.environ.get("KGQA_DATA") or CHECKOUT.parent / "shared" / "data").resolve()
FREEBASE = (("freebase_fast/kg.nt.gz", "freebase/schema.nt.gz"), "freebase_fast/questions.jsonl.gz")
METAQA = ("metaqa/kg.nt.gz", "metaqa/names.nt.gz")
WIKIDATA = ("wikidata/kg.nt.gz", "wikidata/names.nt.gz")
COMPANY = ("tests/company/graph.ttl",)
UNSTABLE = ("usage", "trace", "graph", "id")
"""Keys of an answer that are not recorded."""
Record = tuple[str, str, Any]


@dataclass(frozen=True)
class QuestionSet:
    """Questions on a graph: files below the data folder or this checkout, and options of `kgqa ask`.

    Of a large file, `count` questions are asked; with `answerable`, those whose gold query finds something; with
    `linked`, without the topics in the file.
    """

    graph: tuple[str, ...]
    questions: str
    count: int | None = None
    options: tuple[str, ...] = ()
    linked: bool = False
    answerable: bool = False

    def rows(self) -> list[dict[str, Any]]:
        rows = read_rows(file(self.questions))
        return spread([row for row in rows if row.get("support") != "empty"] if self.answerable else rows, self.count)


WALKS = {"pathquestion": ("--walks", "free", "--depth", "3"), "metaqa": ("--walks", "topic-never", "--depth", "3")}
SETS: Mapping[str, QuestionSet] = {
    "freebase_fast, schema, top": QuestionSet(*FREEBASE),
    "freebase_fast, schema, top-2": QuestionSet(*FREEBASE, options=("--method", "top-2")),
    "freebase_fast, no schema, top": QuestionSet(FREEBASE[0][:1], FREEBASE[1]),
    "freebase_fast, linked": QuestionSet(*FREEBASE, count=100, linked=True),
    "pathquestion 3 hops": QuestionSet(
        ("pathquestion/pq3h.kg.nt.gz",), "pathquestion/pq3h.questions.dev.jsonl.gz", 150, WALKS["pathquestion"]
    ),
    "metaqa 2 hops": QuestionSet(METAQA, "metaqa/questions_2hop.dev.jsonl.gz", 150, WALKS["metaqa"]),
    "wikidata wwq": QuestionSet(WIKIDATA, "wikidata/questions_wwq_test.dev.jsonl.gz", answerable=True),
    "wikidata wwq, also unknown topics": QuestionSet(WIKIDATA, "wikidata/questions_wwq_val.dev.jsonl.gz", 50),
    "demo": QuestionSet((), "kgqa/demo/questions.jsonl", linked=True),
    "demo conditions": QuestionSet((), "kgqa/demo/conditions.jsonl", linked=True),
    "company": QuestionSet(COMPANY, "tests/company/questions.jsonl", linked=True),
}
GRAPHS = {"demo": (), "freebase_fast": FREEBASE[0], "metaqa": METAQA, "wikidata": WIKIDATA, "company": COMPANY}
"""The graphs of the questions in `computed_questions.jsonl` and `off_topic.jsonl`."""


def kgqa(*arguments: object, input: str = "", codes: Sequence[int] = (0,)) -> str:
    """Run the command; return what it writes; exit if it ends with another code than these."""
    command = [KGQA, *map(str, arguments)]
    done = subprocess.run(command, input=input, capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def file(name: str) -> Path:
    """Return a file of the checkout or of the data folder."""
    return CHECKOUT / name if name.startswith(("tests/", "kgqa/", "benchmarks/")) else data_file(*name.split("/"))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects in the lines of a file."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def spread(rows: list[Any], count: int | None) -> list[Any]:
    """Return `count` of the rows, spread over them; all of them if `count` is None."""
    return rows if count is None else [rows[number * len(rows) // count] for number in range(count)]


def loaded(names: Sequence[str], work: Path) -> list[str]:
    """Load a graph, once; return the options that name it."""
    if not names:
        return []
    folder = work / "graphs" / re.sub(r"\W+", "_", " ".join(names))
    if not folder.exists():
        kgqa("graph", "load", *map(file, names), "--into", folder, "-q")
    return ["--graph", str(folder)]


def stdin_lines(rows: Sequence[Mapping[str, Any]], linked: bool = False) -> str:
    """Return questions as `kgqa ask` reads them."""
    lines = []
    for row in rows:
        topics = [] if linked else [each["id"] for each in row.get("topic_entities", ())]
        lines.append(json.dumps({"question": row["question"], "topics": topics, "id": row["id"]}))
    return "".join(f"{line}\n" for line in lines)


def stable(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer says, without times, places and costs."""
    return {key: value for key, value in answer.items() if key not in UNSTABLE}


def asked(rows: Sequence[Mapping[str, Any]], *options: str, linked: bool = False) -> Iterator[tuple[str, Any]]:
    """Ask questions in one process; yield the id and the answer of each."""
    out = kgqa("ask", "--json", "-q", *options, input=stdin_lines(rows, linked), codes=(0, 1, 3))
    for row, line in zip(rows, out.splitlines(), strict=True):
        yield row["id"], stable(json.loads(line))


def answers(work: Path) -> Iterator[Record]:
    for name, each in SETS.items():
        for key, answer in asked(each.rows(), *loaded(each.graph, work), *each.options, linked=each.linked):
            yield name, key, answer
    for name in ("computed_questions", "off_topic"):
        questions = read_rows(file(f"benchmarks/{name}.jsonl"))
        for graph, files in GRAPHS.items():
            rows = [row for row in questions if row["graph"] == graph]
            for key, answer in asked(rows, *loaded(files, work)) if rows else ():
                yield name, f"{graph} {key}", answer


def virtuoso(work: Path) -> Iterator[Record]:
    if not (shutil.which("virtuoso-t") or os.environ.get("VIRTUOSO_T")):
        print("virtuoso: skipped, because Virtuoso is not installed", file=sys.stderr)
        return
    http, sql = free_port(), free_port()
    folder = ("--folder", work / "virtuoso")
    kgqa("virtuoso", "start", *folder, "--http-port", http, "--sql-port", sql, "--memory-share", "0.05", "-q")
    try:
        url = f"http://127.0.0.1:{http}/sparql"
        os.environ["KGQA_VIRTUOSO_FOLDER"] = str(work / "virtuoso")
        kgqa("graph", "load", *map(file, FREEBASE[0]), "--into", url, "-q")
        for key, answer in asked(spread(read_rows(file(FREEBASE[1])), 60), "--graph", url):
            for path in answer["paths"]:  # the server returns rows in any order
                path["walks"].sort(key=json.dumps)
                path["triples"].sort(key=json.dumps)
            yield "freebase_fast, top", key, answer
    finally:
        kgqa("virtuoso", "stop", *folder, "-q")


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
