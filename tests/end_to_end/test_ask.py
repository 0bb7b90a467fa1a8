"""`kgqa ask` and small commands on the demo graph, without configuration."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import rdflib

from scripts import demo_graph as build

CAPITAL = "Which city is the capital of the country whose anthem is Kimigayo?"
KEYS = {
    "id", "question", "status", "reason", "answers", "topics", "paths", "sparql", "query_class", "grounding",
    "approximate", "method", "notes", "defects", "graph", "usage",
    "accepted", "confidence", "weak", "evidence", "evidence_sparql", "evidence_class", "response", "citations", "nearest", "hints", "prefixes",
}  # fmt: skip


@pytest.fixture(scope="module")
def demo():
    graph = rdflib.Graph()
    graph.parse(data="".join(f"{line}\n" for line in build.build_lines()), format="nt")
    return graph


def test_text_output(kgqa):
    done = kgqa("ask", CAPITAL, COLUMNS="120")
    assert done.returncode == 0
    assert done.out.startswith("Tokyo (m.demo_tokyo)\n")
    assert "  path   Kimigayo ──national anthem of──▶ • ──" in done.out
    assert "──▶ Japan ──country capital──▶ Tokyo\n" in done.out and "walk" not in done.out
    narrow = kgqa("ask", CAPITAL, COLUMNS="70").out
    assert "  path   Kimigayo\n         └──national anthem of──▶ •\n            └──" in narrow
    assert re.search(r"cost   \d+ candidates of up to 2 hops, \d+ comparisons?, \d+ SPARQL queries, [\d.]+ s", done.out)
    assert "no language model configured" in done.out
    assert "<http" not in done.out.replace("PREFIX ns: <http://rdf.freebase.com/ns/>", "")


def test_full_iris(kgqa):
    assert "Tokyo  <http://rdf.freebase.com/ns/m.demo_tokyo>" in kgqa("ask", CAPITAL, "--iris").out


def test_json_and_its_query_on_another_engine(kgqa, demo):
    found = json.loads(kgqa("ask", CAPITAL, "--json").out)
    assert set(found) == KEYS
    assert (found["status"], found["grounding"], found["query_class"]) == ("answered", "graph", "exact")
    assert [(a["id"], a["name"]) for a in found["answers"]] == [("m.demo_tokyo", "Tokyo")]
    assert found["defects"] == []
    assert [str(row[0]) for row in demo.query(found["sparql"])] == [a["iri"] for a in found["answers"]]
    path = found["paths"][0]
    assert path["steps"][-1] == {"relation": "http://rdf.freebase.com/ns/location.country.capital", "direction": "out"}
    assert path["mediators"] == [1]
    stored = {(str(s), str(p), str(o)) for s, p, o in demo}
    assert path["triples"] and all(tuple(triple) in stored for triple in path["triples"])


def test_json_and_show_sparql_exclude_each_other(kgqa):
    done = kgqa("ask", CAPITAL, "--json", "--show-sparql")
    assert (done.returncode, done.out) == (2, "") and "--json or --show-sparql: the JSON object has" in done.err


def test_explain_says_that_no_query_came(kgqa):
    declined = kgqa("ask", "How many roads must a man walk down?", "--show-sparql")
    assert (declined.returncode, declined.out) == (3, "")
    done = kgqa("explain", input=declined.out)
    assert (done.returncode, done.out) == (1, "") and len(done.err.splitlines()) == 1
    assert "No query was given" in done.err and "Not valid SPARQL" not in done.err


def test_show_sparql(kgqa, demo):
    done = kgqa("ask", CAPITAL, "--show-sparql")
    assert [str(row[0]) for row in demo.query(done.out)] == ["http://rdf.freebase.com/ns/m.demo_tokyo"]
    assert "m.demo_tokyo" not in done.out


def test_trace(kgqa):
    done = kgqa("ask", CAPITAL, "--trace")
    for kind in ("linked", "masked", "expanded", "pool", "shortlist", "match", "kept", "ranked", "read"):
        assert f"] {kind}:" in done.err
    kinds = {event["kind"] for event in json.loads(kgqa("ask", CAPITAL, "--trace", "--json").out)["trace"]}
    assert {"linked", "expanded", "match", "read"} <= kinds


def test_several_questions_from_standard_input(kgqa):
    lines = [
        "Who directed the film Parasite?",
        "",
        json.dumps({"question": "Which currency is used there?", "topics": ["m.demo_japan"], "id": "two"}),
        '{"question": no JSON}',
        "How many goals did FC Bayern Munich score?",
    ]
    done = kgqa("ask", "--json", input="\n".join(lines))
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [item["status"] for item in found] == ["answered", "answered", "failed", "unsupported"]
    assert found[1]["id"] == "two" and found[1]["answers"][0]["id"] == "m.demo_japanese_yen"
    assert done.returncode == 1


@pytest.mark.parametrize(
    "question", ["How many countries border France?", "Is Tokyo expensive?", "What is the largest city of Brazil?"]
)
def test_declined_questions(kgqa, question):
    done = kgqa("ask", question, "--json")
    found = json.loads(done.out)
    assert (done.returncode, found["status"], found["answers"], found["sparql"]) == (3, "unsupported", [], "")


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("How many films did Steven Spielberg direct before 1990?", ["2"]),
        ("Who is the youngest actor in Alien?", ["Sigourney Weaver"]),
        ("Is Munich the capital of Germany?", ["false"]),
        ("Who was president of the United States in 1962?", ["John F. Kennedy"]),
    ],
)
def test_computed_answers(kgqa, question, answers):
    """The answer is what the exported query returns, and the trace says which words led to it."""
    done = kgqa("ask", question, "--trace", "--json")
    found = json.loads(done.out)
    assert (done.returncode, [each["name"] for each in found["answers"]]) == (0, answers)
    assert found["query_class"] == "exact"
    (read,) = (event for event in found["trace"] if event["kind"] == "conditions")
    assert all(each["words"].lower() in question.lower() for each in read["found"])


def test_ranking_without_embeddings(kgqa):
    found = json.loads(kgqa("ask", "Who directed the film Parasite?", "--embeddings", "off", "--json").out)
    assert found["answers"][0]["name"] == "Bong Joon-ho"
    assert "BM25" in found["notes"][-1]


def test_depth_with_mediators(kgqa):
    """A mediator and its exit are one hop or two, depending on the setting."""
    edges = json.loads(kgqa("ask", CAPITAL, "--json", "--mediator-hop", "edge").out)
    assert all(len(path["steps"]) <= 2 for path in edges["paths"])
    deeper = json.loads(kgqa("ask", CAPITAL, "--json", "--mediator-hop", "edge", "--depth", "3").out)
    assert [a["name"] for a in deeper["answers"]] == ["Tokyo"]


def test_ambiguous_name(kgqa):
    found = json.loads(kgqa("ask", "Who directed Jaws?", "--json").out)
    assert any("could also be" in note for note in found["notes"])


def test_explain(kgqa):
    sparql = kgqa("ask", CAPITAL, "--show-sparql").out
    explained = kgqa("explain", input=sparql).out
    assert explained.splitlines()[0] == "Find every ?answer such that"
    assert "Kimigayo (m.demo_kimigayo) has “national anthem of”: ?e1" in explained
    assert "?answer is not Kimigayo (m.demo_kimigayo)" in explained
    assert kgqa("explain", input=kgqa("ask", CAPITAL, "--json").out).out == explained


def test_explain_without_the_graph_of_the_query(kgqa):
    """An exported query carries its explanation; the hint says that any other is of another graph."""
    own = kgqa("ask", CAPITAL, "--show-sparql").out.replace("ns/m.demo", "ns/m.other")
    assert kgqa("explain", input=own).out.splitlines()[0] == "Find every ?answer such that"
    done = kgqa("explain", "SELECT ?a { <http://velo.example/tadej_pogacar> <http://velo.example/heldIn> ?a }")
    assert "1. tadej pogacar (http://velo.example/tadej_pogacar) has “held in”: ?a" in done.out
    assert done.err.count("\n") == 1 and "Nothing in this query is in the demo graph" in done.err
    assert not kgqa("explain", "SELECT ?f { ?f ns:film.film.directed_by ?d }").err


def test_settings_file_in_the_working_folder(kgqa, tmp_path):
    (tmp_path / "kgqa.toml").write_text("[explore]\ndepth = 1\n")
    assert json.loads(kgqa("ask", CAPITAL, "--json").out)["usage"]["hops"] == 1
    shown = json.loads(kgqa("config", "show", "--json", KGQA_EXPLORE_BEAM="5").out)
    assert shown["explore.depth"]["value"] == 1 and shown["explore.depth"]["from"].endswith("kgqa.toml")
    assert (shown["explore.beam"]["value"], shown["explore.beam"]["from"]) == (5, "KGQA_EXPLORE_BEAM")


def test_cache_info_and_clear(kgqa, tmp_path):
    own = {"KGQA_CACHE_FOLDER": str(tmp_path / "cache")}
    kgqa("ask", "Who directed the film Parasite?", "--embeddings", "off", **own)
    kinds = {entry["kind"] for entry in json.loads(kgqa("cache", "info", "--json", **own).out)["entries"]}
    assert {"demo", "graphs"} <= kinds
    kgqa("cache", "clear", **own)
    assert json.loads(kgqa("cache", "info", "--json", **own).out)["entries"] == []


@pytest.mark.parametrize("command", [[], ["ask"], ["graph"], ["graph", "load"], ["graph", "info"], ["graph", "search"],
                                     ["explain"], ["config"], ["config", "show"], ["cache"], ["cache", "clear"], ["completion"]])  # fmt: skip
def test_help_of_commands(kgqa, command):
    done = kgqa(*command, "--help")
    assert done.returncode == 0 and "Usage: kgqa" in done.out and len(done.out.splitlines()) > 5


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(kgqa, shell):
    assert "_KGQA_COMPLETE" in kgqa("completion", shell).out


def test_completion_completes(kgqa):
    done = kgqa(_KGQA_COMPLETE="bash_complete", COMP_WORDS="kgqa gra", COMP_CWORD="1")
    assert "graph" in done.out


def test_version(kgqa):
    from kgqa import __version__

    assert __version__ in kgqa("--version").out


def test_invalid_json_lines_fail_alone(kgqa):
    lines = [
        '{"question": "What is the capital?", "topics": "m.demo_japan", "id": null}',
        '{"question": 3, "id": 7}',
        '{"q": "x"}',
        '{"question": "a", ',
        '{"question": "What is the capital?", "topics": [1]}',
        "{Parasite} was directed by whom?",
        "{question: 'What is the capital of Japan?'}",
        "{",
        '"question": "What is the capital of Japan?",',
        '["What is the capital of Japan?"]',
        'question": "What is the capital of Japan?"}',
    ]
    done = kgqa("ask", "--json", "--embeddings", "off", input="\n".join(lines))
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [item["status"] for item in found] == ["answered", *["failed"] * 4, "answered", *["failed"] * 5]
    assert all("on one line" in item["reason"] for item in found[-5:])
    assert [item["id"] for item in found[:2]] == ["", "7"]
    assert [word in item["reason"] for word, item in zip(("question", "question", "JSON", "topics"), found[1:5])] == [
        True
    ] * 4
    assert done.returncode == 1


def test_config_shows_settings_of_the_graph(kgqa, tmp_path):
    shown = json.loads(kgqa("config", "show", "--json").out)["explore.mediator_hop"]
    assert (shown["value"], shown["from"]) == ("free", "graph")
    (tmp_path / "a.nt").write_text("<http://e/a> <http://e/b> <http://e/c> .\n")
    assert kgqa("graph", "load", "a.nt", "--into", "g").returncode == 0
    shown = json.loads(kgqa("config", "show", "--graph", "g", "--json").out)["explore.mediator_hop"]
    assert (shown["value"], shown["from"]) == ("edge", "default")
    nowhere = kgqa("config", "show", "--graph", "nowhere")
    assert nowhere.returncode == 0 and "no graph" in nowhere.err


def test_damaged_demo_graph_is_rebuilt(kgqa, tmp_path):
    own = {"KGQA_CACHE_FOLDER": str(tmp_path / "cache")}
    assert kgqa("graph", "info", **own).returncode == 0
    (folder,) = (tmp_path / "cache" / "demo").iterdir()
    shutil.rmtree(folder / "gen-1")
    done = kgqa("graph", "info", **own)
    assert done.returncode == 0 and "triples" in done.out


TURTLE = """
@prefix ex: <http://example.org/people/> .
@prefix ns: <http://example.org/vocab#> .
@prefix http: <http://evil/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:ada rdfs:label "Ada Lovelace" ; ns:birthPlace ex:london .
ex:london rdfs:label "London" ; ns:country <http://places.example/uk/GB> .
<http://places.example/uk/GB> rdfs:label "United Kingdom" .
ns:birthPlace rdfs:label "birth place" . ns:country rdfs:label "country" .
"""


def test_a_hint_can_be_run_as_it_is(kgqa, tmp_path):
    (tmp_path / "a.ttl").write_text(TURTLE)
    assert kgqa("graph", "load", "a.ttl", "--into", "my graph").returncode == 0
    done = kgqa("ask", "Who is Nobody?", "--graph", "my graph", "--embeddings", "off")
    assert "`kgqa graph search --graph 'my graph' NAME`" in done.out
    assert "--graph" not in kgqa("ask", "Who is Zzyzx Qwrt?").out


def test_prefixes_of_a_file_name_entities_and_shorten_queries(kgqa, tmp_path):
    """A second file that uses a prefix for something else does not change what it means."""
    (tmp_path / "a.ttl").write_text(TURTLE)
    (tmp_path / "b.ttl").write_text("@prefix ns: <http://other/> . ns:a <http://other/p> ns:b .")
    for name in "ab":
        assert kgqa("graph", "load", f"{name}.ttl", "--into", "g").returncode == 0
    options = ("--graph", "g", "--embeddings", "off")
    city = kgqa("ask", "What is the birth place of Ada Lovelace?", "--topic", "ex:ada", *options)
    assert (
        city.out.startswith("London (ex:london)\n")
        and "# 1. Ada Lovelace (ex:ada) has “birth place”: ?answer, where ?answer is not Ada" in city.out
    )
    country = kgqa("ask", "What is the country of the birth place of Ada Lovelace?", *options).out
    assert country.startswith("United Kingdom  <http://places.example/uk/GB>\n")
    query = kgqa("ask", "What is the country of the birth place of Ada Lovelace?", "--show-sparql", *options).out
    assert query.startswith("PREFIX ex: <http://example.org/people/>\nPREFIX ns: <http://example.org/vocab#>\n#")
    assert "ex:ada ns:birthPlace ?e1" in query and "http://other" not in query
    graph = rdflib.Graph()
    graph.parse(data=TURTLE, format="turtle")
    assert [str(row[0]) for row in graph.query(query)] == ["http://places.example/uk/GB"]
    assert kgqa("explain", *options[:2], input=query).out.startswith("Find every ?answer such that\n")
    record = json.loads((tmp_path / "g" / "graph.json").read_text())
    assert record["prefixes"].keys() == {"ex", "ns", "rdfs"} and record["prefixes"]["ns"].endswith("vocab#")
    record["prefixes"] = {"ns": "x> } DROP ALL #/", "ok": "http://example.org/people/", "a b": "http://e/"}
    (tmp_path / "g" / "graph.json").write_text(json.dumps(record))
    damaged = kgqa("ask", "What is the birth place of Ada Lovelace?", *options).out
    assert damaged.startswith("London (ok:london)\n") and "DROP" not in damaged
