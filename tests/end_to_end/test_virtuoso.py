"""A graph on a Virtuoso server from the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgqa.demo
from kgqa.virtuoso.server import Server
from tests.virtuoso_server import copied, running_server

DEMO, OTHER = "http://demo.example/graph", "http://other.example/graph"
QUESTION = "Which city is the capital of the country whose anthem is Kimigayo?"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
HOSTILE = ["a\x1b[2Jb", "c\u202ed", "}} UNION {{ ?s ?p ?o }} #", '" . } # \\', "line\nline", "\x07\x9b1m"]
QUICK = {"KGQA_RANK_EMBEDDINGS": "off"}


def load(server: Server, file: Path, graph: str) -> None:
    copy = server.import_folder / file.name
    shutil.copyfile(file, copy)
    server.load([copy], graph)


@pytest.fixture(scope="module")
def server(prepared_folder, tmp_path_factory) -> Iterator[Server]:
    """A server with the demo graph only."""
    with running_server(copied(prepared_folder, tmp_path_factory.mktemp("server") / "own")) as server:
        load(server, Path(kgqa.demo.__file__).with_name("graph.nt"), DEMO)
        yield server


@pytest.fixture(scope="module")
def two_graphs(server, tmp_path_factory) -> Server:
    """The server with a second graph that has hostile names."""
    lines = [f"<http://o.example/a> <http://o.example/likes{n}> <http://o.example/b{n}> ." for n in range(len(HOSTILE))]
    lines += [f"<http://o.example/b{n}> {LABEL} {json.dumps(text)} ." for n, text in enumerate(HOSTILE)]
    file = tmp_path_factory.mktemp("lines") / "other.nt"
    file.write_text("\n".join([*lines, f'<http://o.example/a> {LABEL} "Ann" .']) + "\n", encoding="ascii")
    load(server, file, OTHER)
    return server


def check_failure(done, *messages: str) -> None:
    """Check that a command ended with 1 and these messages."""
    assert done.returncode == 1, done.out + done.err
    for text in messages:
        assert text in done.out + done.err


# --- one graph


def test_same_answers_as_in_a_folder(kgqa, server):
    """The only graph need not be named, and the answers equal those on the bundled graph."""
    # the bundled graph has this setting, a server cannot store it
    command = ("ask", QUESTION, "--json", "--mediator-hop", "free")
    asked = {place: kgqa(*command, *place, **QUICK) for place in ((), ("--graph", server.url))}
    embedded, on_server = (json.loads(done.out) for done in asked.values())
    for answer in (embedded, on_server):
        answer["sparql"] = [line for line in answer["sparql"].split("\n") if not line.startswith(("FROM", "# digest"))]
        for name in ("queries", "seconds"):
            del answer["usage"][name]
        del answer["graph"]["place"], answer["graph"]["fingerprint"], answer["graph"]["iris"]
    assert embedded == on_server and [answer["name"] for answer in on_server["answers"]] == ["Tokyo"]
    assert on_server["query_class"] == "exact"
    named = kgqa("ask", QUESTION, "--show-sparql", "--graph", server.url, "--graph-iri", DEMO, **QUICK)
    assert f"\nFROM <{DEMO}>\n" in named.out and named.returncode == 0


def test_info_and_search(kgqa, server):
    embedded = json.loads(kgqa("graph", "info", "--json").out)
    on_server = json.loads(kgqa("graph", "info", server.url, "--json").out)
    assert on_server["graphs"] == [DEMO] and on_server["place"] == server.url
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
        assert on_server[name] == embedded[name], name
    for words in ("kimigayo toky", "no such name"):
        embedded, on_server = kgqa("graph", "search", words), kgqa("graph", "search", words, "--graph", server.url)
        assert (embedded.out, embedded.returncode) == (on_server.out, on_server.returncode)


# --- several graphs


def test_one_of_several_graphs_must_be_named(kgqa, two_graphs):
    for command in (("ask", QUESTION), ("graph", "search", "tokyo")):
        check_failure(kgqa(*command, "--graph", two_graphs.url), "--graph-iri", DEMO, OTHER)
    found = kgqa("graph", "search", "tokyo", "--graph", two_graphs.url, "--graph-iri", DEMO)
    assert found.returncode == 0 and "Tokyo" in found.out
    assert kgqa("graph", "search", "tokyo", "--graph", two_graphs.url, "--graph-iri", OTHER).returncode == 3
    check_failure(
        kgqa("ask", QUESTION, "--graph", two_graphs.url, "--graph-iri", "http://nobody.example/", **QUICK), "empty"
    )


@pytest.mark.parametrize(
    ("iri", "messages"),
    [
        ("no iri", "absolute IRI"),
        ("http://x> WHERE { ?s ?p ?o } #", "absolute IRI"),
        ("http://x/\udcff", "not valid UTF-8"),
        ("", "Choose one with --graph-iri"),
    ],
)
def test_invalid_graph_iri(kgqa, two_graphs, iri, messages):
    check_failure(kgqa("graph", "search", "tokyo", "--graph", two_graphs.url, "--graph-iri", iri), messages)


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
    ("place", "messages"),
    [
        ("http://127.0.0.1:9/sparql", "Nothing answers"),
        ("{base}/nowhere", "404"),
        ("{base}/", "on Virtuoso it is /sparql"),
        ("{base}/sparql?x=1", "--graph-iri"),
        ("http://me:secret@127.0.0.1:9/sparql", "login"),
        ("http:///sparql", "and name a host"),
        ("http://no such host/sparql", "and name a host"),
    ],
)
def test_wrong_addresses(kgqa, server, place, messages):
    place = place.format(base=server.url.removesuffix("/sparql"))
    done = kgqa("graph", "search", "tokyo", "--graph", place, **QUICK)
    assert done.returncode in (1, 2) and messages in done.err, done.err
    assert "secret" not in done.out + done.err


def test_server_stops_between_questions(kgqa, started, server):
    """Last, because it ends the server: the next questions fail with advice, and the batch continues."""
    batch = started("ask", "--json", "--graph", server.url, "--graph-iri", DEMO, env={**os.environ, **QUICK})
    batch.stdin.write(f"{QUESTION}\n".encode())
    batch.stdin.flush()
    assert json.loads(batch.stdout.readline())["status"] == "answered"
    os.kill(server.status().pid, signal.SIGKILL)
    out, err = batch.communicate(b"Who wrote Kimigayo?\nWhere is Tokyo?\n", timeout=60)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["status"] for answer in answers] == ["failed", "failed"]
    assert all("Nothing answers" in answer["reason"] for answer in answers)
    assert batch.returncode == 1 and b"Traceback" not in err
    check_failure(
        kgqa("ask", QUESTION, "--graph", server.url, "--graph-iri", DEMO, **QUICK),
        "Nothing answers",
        "kgqa virtuoso status",
    )
    assert server.status().state == "crashed"
