"""Two programs on the same server, the same questions and the same scripted model: what each asks for an answer.

    peer.py --graph http://127.0.0.1:8890/sparql --dataset questions.jsonl --limit 20
    peer.py ... --peer DIR --peer-command 'python main_freebase.py --url {sparql} --llm {llm} --questions {questions}'

Both speak through two counting proxies on the loopback: one before the SPARQL server, one that is the model. So nothing
has to be changed in a checkout but two addresses, which its command gets: {sparql} and {llm} (with /v1), besides
{questions}, a JSONL file of id, question, topics, and {out}, a folder. No code of any peer is in this project.

Counted for each: SPARQL queries, model calls, tokens of prompts (by words and signs), seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from common import machine, print_json, print_table

from kgqa.evaluation.datasets import dataset_questions
from kgqa.evaluation.questions import GoldQuestion, spread
from kgqa.testing.model_oracle import Gold, ModelOracle
from kgqa.testing.server import ScriptedServer

_TOKEN = re.compile(r"\w+|[^\w\s]")
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "host"}


@dataclass
class Counts:
    """What came by."""

    queries: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self) -> None:
        with self.lock:
            self.queries += 1


class Proxy:
    """Passes SPARQL requests on to a server and counts them."""

    def __init__(self, target: str) -> None:
        counts = self.counts = Counts()
        pool = urllib3.PoolManager(maxsize=32)
        base = urlsplit(target)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _pass_on(self) -> None:
                counts.add()
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else None
                path = self.path[len("/sparql") :] if self.path.startswith("/sparql") else self.path
                url = f"{base.scheme}://{base.netloc}{base.path}{path}"
                headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
                reply = pool.request(self.command, url, body=body, headers=headers, retries=False, timeout=300.0)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    if name.lower() not in HOP_BY_HOP:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.data)))
                self.end_headers()
                self.wfile.write(reply.data)

            do_GET = do_POST = _pass_on

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/sparql"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def measured(command: Sequence[str], folder: Path, proxy: Proxy, model: ScriptedServer, n: int) -> dict[str, float]:
    """Run a command and count what it asks, by question."""
    queries, calls = proxy.counts.queries, len(model.requests)
    started = time.perf_counter()
    # one method must not find what another has asked for
    environment = {**os.environ, "KGQA_ENDPOINT_CACHE": "off"}
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    asked = model.requests[calls:]
    tokens = sum(len(_TOKEN.findall(str(m.get("content", "")))) for request in asked for m in request.messages)
    return {
        "SPARQL queries": (proxy.counts.queries - queries) / n,
        "model calls": len(asked) / n,
        "prompt tokens": tokens / n,
        "seconds": seconds / n,
    }


def write_questions(questions: Sequence[GoldQuestion], file: Path) -> None:
    rows = [{"id": q.id, "question": q.text, "topic_entities": [{"id": t} for t in q.topics]} for q in questions]
    gold = [[{"id": a.id, "name": a.name} if a.id else {"name": a.name} for a in q.answers] for q in questions]
    file.write_text("".join(json.dumps(row | {"answers": g}) + "\n" for row, g in zip(rows, gold, strict=True)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--graph", required=True, help="SPARQL endpoint")
    parser.add_argument("--graph-iri", help="its named graph")
    parser.add_argument("--dataset", default="demo", help="questions, as for kgqa eval")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--methods", default="top-1,top-2,tog", help="ours (default top-1,top-2,tog)")
    parser.add_argument("--peer", type=Path, metavar="DIR", help="a checkout of another program")
    parser.add_argument("--peer-command", help="how it is run there, with {sparql} {llm} {questions} {out} in it")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds the model takes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if bool(options.peer) != bool(options.peer_command):
        parser.error("--peer and --peer-command go together")
    questions = spread(dataset_questions(options.dataset), options.limit)
    kgqa = str(Path(sys.executable).with_name("kgqa"))
    rows = {}
    proxy = Proxy(options.graph)
    oracle = ModelOracle({"": Gold()})
    with tempfile.TemporaryDirectory() as work, ScriptedServer(oracle, latency=options.latency) as model:
        file = Path(work) / "questions.jsonl"
        write_questions(questions, file)
        for method in options.methods.split(","):
            command = [
                kgqa, "eval", "run", "--dataset", str(file), "--out", f"{work}/{method}", "--method", method, "-q",
                "--graph", proxy.url, "--llm", f"{model.url}#m", "--embeddings", "off", "--concurrency", "1",
            ]  # fmt: skip
            if options.graph_iri:
                command += ["--graph-iri", options.graph_iri]
            rows[f"kgqa {method}"] = measured(command, Path(work), proxy, model, len(questions))
        if options.peer:
            (Path(work) / "peer").mkdir()
            places = {"sparql": proxy.url, "llm": model.url, "questions": str(file), "out": f"{work}/peer"}
            command = [part.format(**places) for part in shlex.split(options.peer_command)]
            rows[options.peer.name] = measured(command, options.peer, proxy, model, len(questions))
    proxy.close()
    if options.json:
        print_json({"machine": machine(), "questions": len(questions), "by question": rows})
    else:
        print(f"{len(questions)} questions; means of one question\n")
        names = list(next(iter(rows.values())))
        print_table(("program", *names), [(name, *row.values()) for name, row in rows.items()])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
