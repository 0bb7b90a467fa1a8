"""What commands print beside their main output: progress, estimates, partial counts."""

from __future__ import annotations

import json

import pytest

from kgqa.cli.eval.console import estimate_text
from kgqa.cli.graph.load import print_report
from kgqa.evaluation.runs.progress import Estimate
from kgqa.graph.store import LoadReport

TRIPLE = "<http://e/a> <http://e/b> <http://e/c> .\n"


@pytest.mark.parametrize(
    ("seconds", "cost", "text"),
    [
        (90.0, None, "about 90 s."),
        (600.0, 1.5, "about 10 min and 1.50 USD."),
        (9000.0, 0.0, "about 2.5 h and 0.00 USD."),
    ],
)
def test_estimate(seconds, cost, text):
    assert estimate_text(Estimate(5, 1200, seconds, cost)) == (
        f"Estimate from the first 5 questions: the other 1,200 will take {text}"
    )


@pytest.mark.parametrize(
    ("added", "triples", "text"),
    [
        (2, 1003, "2 triples added from 3 lines in 0.5 s; <http://g> now has 1,003."),
        (None, 1003, "An unknown number of triples added from 3 lines in 0.5 s; <http://g> now has 1,003."),
        (
            None,
            None,
            "3 lines loaded in 0.5 s. The number of triples in <http://g> is unknown, because counting took too long.",
        ),
    ],
)
def test_report_of_a_load_without_all_counts(capsys, added, triples, text):
    report = LoadReport(1, 3, added, triples, 0, (), "", 0.5)
    print_report(report, "<http://g>", "RDFS", {"names": 1200, "warnings": ["no mediators"]}, as_json=False)
    schema = "Schema: RDFS. Names indexed: 1,200. Fingerprint: none"
    assert capsys.readouterr().out.splitlines() == [text, schema, "Warning: no mediators"]


def test_quiet_load_shows_the_first_malformed_lines(kgqa, tmp_path):
    (tmp_path / "x.nt").write_text("nonsense\n" * 7 + TRIPLE)
    done = kgqa("graph", "load", "x.nt", "--into", "g", "--on-error", "skip", "--quiet")
    assert done.returncode == 0 and "7 malformed lines left out:" in done.out
    assert done.out.count("x.nt, line ") == 5 and "... (--json lists more)" in done.out
    assert done.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give at least one RDF file, or --resume."),
        (("x.nt", "--discard"), "--discard cannot be combined with FILES"),
        (("x.nt", "--resume"), "Omit FILES and --restart"),
        (("x.nt", "--graph-iri", "http://g"), "--graph-iri is only for servers"),
    ],
)
def test_load_options_that_do_not_fit(kgqa, tmp_path, arguments, message):
    (tmp_path / "x.nt").write_text(TRIPLE)
    done = kgqa("graph", "load", *arguments, "--into", "g")
    assert done.returncode == 2 and message in done.err and not (tmp_path / "g").exists()


def test_discard_without_an_interrupted_load(kgqa, tmp_path):
    (tmp_path / "x.nt").write_text(TRIPLE)
    assert kgqa("graph", "load", "x.nt", "--into", "g").returncode == 0
    done = kgqa("graph", "load", "--discard", "--into", "g")
    assert done.returncode == 0 and "There is no interrupted load at g." in done.err
    assert json.loads(kgqa("graph", "info", "g", "--json").out)["triples"] == 1


def test_search_as_json(kgqa):
    found = json.loads(kgqa("graph", "search", "Kimigayo", "--json").out)
    assert found[0] == {
        "id": "m.demo_kimigayo",
        "name": "Kimigayo",
        "iri": "http://rdf.freebase.com/ns/m.demo_kimigayo",
        "matched": "Kimigayo",
        "kind": "label",
        "exact": True,
    }
    assert json.loads(kgqa("graph", "search", "xyzzy", "--json").out) == []


def test_explain_takes_a_query_a_file_or_json(kgqa, tmp_path):
    query = "SELECT ?x WHERE { ?x <http://e/b> <http://e/c> }"
    (tmp_path / "q.rq").write_text(query)
    explained = kgqa("explain", query).out
    assert explained.startswith("Find every ?x") and kgqa("explain", "q.rq").out == explained
    for text in ('{"sparql": ""}', '{"sparql": null}', "[1]"):
        done = kgqa("explain", input=text)
        assert done.returncode == 1 and "This JSON contains no query" in done.err
    assert "more than" in kgqa("explain", input="x" * 2_000_000).err
    assert "neither a SPARQL query nor a readable file" in kgqa("explain", "missing.rq").err


def test_server_graph_has_no_settings_of_its_own(kgqa):
    shown = json.loads(kgqa("config", "show", "--graph", "http://127.0.0.1:9/sparql", "--json").out)
    assert (shown["explore.mediator_hop"]["from"], shown["graph.path"]["value"]) == (
        "default",
        "http://127.0.0.1:9/sparql",
    )


@pytest.mark.parametrize("dataset", ["cwq", "nonsense=demo"])
def test_column_of_a_thesis_table_is_checked(kgqa, dataset):
    done = kgqa("eval", "table", "5.5", "--dataset", dataset)
    assert done.returncode == 2 and "is not NAME=SOURCE with a NAME of this table. Choose from:" in done.err


def test_missing_dataset_of_a_thesis_table_is_an_error(kgqa):
    done = kgqa("eval", "table", "5.5", "--dataset", "cwq=missing.jsonl")
    assert done.returncode == 1 and "missing.jsonl cannot be read" in done.err


def test_status_and_results_of_a_finished_run(kgqa, tmp_path):
    command = ("eval", "run", "--dataset", "demo", "--sample", "3", "--embeddings", "off")
    done = kgqa(*command, "--out", "x", "--json")
    assert done.returncode == 0, done.err
    found = json.loads(done.out)
    assert (found["run"], found["method"], found["n"]) == ("x", "top", 3)
    assert kgqa("eval", "status", "x").out.splitlines()[0] == "x  top: 3 of 3 questions, done"
    done = kgqa("score", "x", "--format", "kgqa", "--json")
    assert done.returncode == 0 and json.loads(done.out)["n"] == 3


def test_local_files_of_a_dataset(kgqa, tmp_path):
    (tmp_path / "WebQSP.test.json").write_text("{}")
    done = kgqa("data", "list", "webqsp", KGQA_DATASETS=str(tmp_path))
    assert f"local: {tmp_path / 'WebQSP.test.json'}" in done.out
