"""A graph on a Virtuoso server from the command line: asked like a folder, and every way it can be missing explained."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgqa.demo
from kgqa.virtuoso.server.server import Server
from tests.virtuoso_server import copied, running_server

DEMO, OTHER = "http://demo.example/graph", "http://other.example/graph"
QUESTION = "Which city is the capital of the country whose anthem is Kimigayo?"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
HOSTILE = ["a\x1b[2Jb", "c\u202ed", "}} UNION {{ ?s ?p ?o }} #", '" . } # \\', "line\nline", "\x07\x9b1m"]
QUICK = {"KGQA_RANK_EMBEDDINGS": "off", "KGQA_ENDPOINT_PATIENCE": "0.5"}


def load(server: Server, file: Path, graph: str) -> None:
    copy = server.import_folder / file.name
    shutil.copyfile(file, copy)
    assert [result.error for result in server.load([copy], graph)] == [None]


@pytest.fixture(scope="module")
def server(prepared_folder, tmp_path_factory) -> Iterator[Server]:
    """A server of our own with the demo graph and nothing else."""
    with running_server(copied(prepared_folder, tmp_path_factory.mktemp("server") / "own")) as server:
        load(server, Path(kgqa.demo.__file__).with_name("graph.nt"), DEMO)
        yield server


@pytest.fixture(scope="module")
def two_graphs(server, tmp_path_factory) -> Server:
    """The server with a second graph, whose names are hostile."""
    lines = [f"<http://o.example/a> <http://o.example/likes{n}> <http://o.example/b{n}> ." for n in range(len(HOSTILE))]
    lines += [f"<http://o.example/b{n}> {LABEL} {json.dumps(text)} ." for n, text in enumerate(HOSTILE)]
    file = tmp_path_factory.mktemp("lines") / "other.nt"
    file.write_text("\n".join([*lines, f'<http://o.example/a> {LABEL} "Ann" .']) + "\n", encoding="ascii")
    load(server, file, OTHER)
    return server


def failed(done, *said: str) -> None:
    """It ended with 1 and a message of one kind, without a traceback; `kgqa` looks for that."""
    assert done.returncode == 1, done.out + done.err
    for text in said:
        assert text in done.out + done.err


# --- one graph


def test_the_same_as_in_a_folder(kgqa, server):
    """The only graph need not be named, and what is said of it is what the bundled graph says."""
    # the bundled graph keeps this setting with itself, which a graph on a server cannot
    alike = ("ask", QUESTION, "--json", "--mediator-hop", "free")
    asked = {place: kgqa(*alike, *place, **QUICK) for place in ((), ("--graph", server.url))}
    here, there = (json.loads(done.out) for done in asked.values())
    for answer in (here, there):
        answer["sparql"] = [line for line in answer["sparql"].split("\n") if not line.startswith("FROM")]
        for name in ("queries", "seconds"):
            del answer["usage"][name]
        del answer["graph"]["place"], answer["graph"]["fingerprint"], answer["graph"]["iris"]
    assert here == there and [answer["name"] for answer in there["answers"]] == ["Tokyo"]
    assert there["query_class"] == "exact"
    named = kgqa("ask", QUESTION, "--show-sparql", "--graph", server.url, "--graph-iri", DEMO, **QUICK)
    assert f"\nFROM <{DEMO}>\n" in named.out and named.returncode == 0


def test_what_is_in_it_and_its_names(kgqa, server):
    here = json.loads(kgqa("graph", "info", "--json").out)
    there = json.loads(kgqa("graph", "info", server.url, "--json").out)
    assert there["graphs"] == [DEMO] and there["place"] == server.url
    for name in (
        "triples",
        "relations",
        "explored_relations",
        "labelled_entities",
        "names",
        "mediator_relations",
        "schema",
        "top_relations",
    ):
        assert there[name] == here[name], name
    for words in ("kimigayo toky", "no such name"):
        here, there = kgqa("graph", "search", words), kgqa("graph", "search", words, "--graph", server.url)
        assert (here.out, here.returncode) == (there.out, there.returncode)


# --- several graphs


def test_of_several_graphs_one_has_to_be_named(kgqa, two_graphs):
    for command in (("ask", QUESTION), ("graph", "search", "tokyo")):
        failed(kgqa(*command, "--graph", two_graphs.url), "--graph-iri", DEMO, OTHER)
    found = kgqa("graph", "search", "tokyo", "--graph", two_graphs.url, "--graph-iri", DEMO)
    assert found.returncode == 0 and "Tokyo" in found.out
    assert kgqa("graph", "search", "tokyo", "--graph", two_graphs.url, "--graph-iri", OTHER).returncode == 3
    failed(kgqa("ask", QUESTION, "--graph", two_graphs.url, "--graph-iri", "http://nobody.example/", **QUICK), "empty")


@pytest.mark.parametrize(
    ("iri", "said"),
    [
        ("no iri", "absolute IRI"),
        ("http://x> WHERE { ?s ?p ?o } #", "absolute IRI"),
        ("http://x/\udcff", "not UTF-8"),
        ("", "Choose one with --graph-iri"),
    ],
)
def test_a_graph_with_an_impossible_name(kgqa, two_graphs, iri, said):
    failed(kgqa("graph", "search", "tokyo", "--graph", two_graphs.url, "--graph-iri", iri), said)


def test_hostile_names_are_shown_as_text(kgqa, two_graphs):
    place = ("--graph", two_graphs.url, "--graph-iri", OTHER)
    topics = [f"http://o.example/b{number}" for number in range(len(HOSTILE))]
    lines = [json.dumps({"question": f"who likes {text}?", "topics": [topic]}) for text, topic in zip(HOSTILE, topics)]
    asked = [
        kgqa("ask", *form, *place, input="\n".join(lines), **QUICK)
        for form in (("--json", "--trace"), ("-v", "--iris"))
    ]
    assert asked[0].out.count('"answered"') == len(HOSTILE) and asked[1].out.count("Ann") >= len(HOSTILE)
    query = kgqa("ask", "who likes line?", "--show-sparql", *place, **QUICK)
    found = [kgqa("graph", "search", words, *place) for words in ("line", "2jb")]
    for done in (*asked, query, *found):
        assert done.returncode == 0
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", done.out + done.err)


# --- no graph


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("http://127.0.0.1:9/sparql", "Nothing answers"),
        ("{base}/nowhere", "404"),
        ("{base}/", "path of Virtuoso's is /sparql"),
        ("{base}/sparql?x=1", "--graph-iri"),
        ("http://me:secret@127.0.0.1:9/sparql", "login"),
        ("http:///sparql", "is not the address"),
        ("http://no such host/sparql", "is not the address"),
    ],
)
def test_wrong_addresses(kgqa, server, place, said):
    place = place.format(base=server.url.removesuffix("/sparql"))
    done = kgqa("graph", "search", "tokyo", "--graph", place, **QUICK)
    assert done.returncode in (1, 2) and said in done.err, done.err
    assert "secret" not in done.out + done.err


def test_a_server_that_stops_between_questions(kgqa, started, server):
    """Last, for it ends the server: the next question fails with what to do, and the batch goes on."""
    batch = started("ask", "--json", "--graph", server.url, "--graph-iri", DEMO, env={**os.environ, **QUICK})
    batch.stdin.write(f"{QUESTION}\n".encode())
    batch.stdin.flush()
    assert json.loads(batch.stdout.readline())["status"] == "answered"
    os.kill(server.status().pid, signal.SIGKILL)
    begun = time.monotonic()
    out, err = batch.communicate(b"Who wrote Kimigayo?\nWhere is Tokyo?\n", timeout=60)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["status"] for answer in answers] == ["failed", "failed"]
    assert all("Nothing answers" in answer["reason"] for answer in answers)
    assert batch.returncode == 1 and b"Traceback" not in err and time.monotonic() - begun < 20
    failed(
        kgqa("ask", QUESTION, "--graph", server.url, "--graph-iri", DEMO, **QUICK),
        "Nothing answers",
        "kgqa virtuoso status",
    )
    assert server.status().state == "crashed"
