"""Export of queries as files."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.graph.opening import open_graph
from kgqa.model import Entity
from kgqa.report.export import INDEX, query_file, write_queries
from kgqa.report.files import ReportError
from kgqa.storage.cache import Cache
from tests.report.test_comparison import FakeRun, record
from tests.report.test_pages import ATTACKS


def rows(folder):
    with open(folder / INDEX, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def record_with_query(number=1, *, query="SELECT * { ?s ?p ?o }", **more):
    return replace(record(number, 1.0), **more, answer={"status": "answered", "sparql": query})


def test_exported_queries_give_the_answers(offline, session_cache, tmp_path):
    (done,) = write_queries([offline], tmp_path / "q")
    found = rows(tmp_path / "q")
    assert done.questions == len(found) == 12 and done.queries == sum(bool(row["file"]) for row in found) >= 8
    with open_graph(cache=Cache(session_cache)) as graph:
        for line, each in zip(found, offline.records()):
            assert line["id"] == each.id and bool(line["file"]) == bool(each.answer["sparql"])
            if line["file"]:
                text = (tmp_path / "q" / line["file"]).read_text()
                assert f"# id: {each.id}\n# question: {each.text}\n" in text
                values = {v.iri if isinstance(v, Entity) else v.value for (v,) in graph.store.select(text)}
                assert values == {given.get("iri") or given["value"] for given in each.answer["answers"]}


@pytest.mark.parametrize("text", [*ATTACKS, "a\nDROP GRAPH <x>", "a\\u000ADROP ALL", "a\r\nb\x0bc\x85d", "\\U0000000A"])
def test_hostile_texts_stay_in_comments(text):
    found = query_file(record_with_query(id=text, text=text))
    head, query = found[: found.index("SELECT")], found[found.index("SELECT") :]
    assert query == "SELECT * { ?s ?p ?o }\n"
    assert all(line.startswith("# ") for line in head.splitlines()) and len(head.splitlines()) == 4
    assert "\\" not in head


@given(st.text(), st.text())
def test_comment_has_four_lines(ident, text):
    found = query_file(record_with_query(id=ident, text=text))
    assert len(found.splitlines()) == 5 and found.endswith("SELECT * { ?s ?p ?o }\n")


def test_answer_from_texts_gets_the_query_of_its_evidence():
    found = record_with_query(query="")
    found = replace(found, answer={**found.answer, "evidence_sparql": "SELECT ?piece", "evidence_class": "exact"})
    assert query_file(found).splitlines()[3:] == ["# class of the query of the evidence: exact", "SELECT ?piece"]


def test_question_without_query_has_no_file(tmp_path):
    write_queries(
        [FakeRun("a", [record_with_query(1), record_with_query(2, query=""), record_with_query(3)])], tmp_path
    )
    assert [bool(row["file"]) for row in rows(tmp_path)] == [True, False, True]
    assert len(list(tmp_path.glob("*.rq"))) == 2


def test_index_has_no_formulas(tmp_path):
    write_queries([FakeRun("a", [record_with_query(1, id="=1+1", text="@x", dataset="-y")])], tmp_path)
    (row,) = rows(tmp_path)
    assert (row["id"], row["question"], row["dataset"]) == ("'=1+1", "'@x", "'-y")


def test_one_folder_per_run(tmp_path):
    runs = [FakeRun(name, [record_with_query()]) for name in ("top-1", "../../up", "../../up", "日本")]
    done = write_queries(runs, tmp_path / "out")
    assert [each.folder.name for each in done] == ["top-1", "up-nowhere", "up-nowhere-2", "run-4"]
    assert {each.name for each in (tmp_path / "out").iterdir()} == {each.folder.name for each in done}
    assert {each.name for each in tmp_path.iterdir()} == {"out"}
    write_queries(runs, tmp_path / "out")


def test_export_replaces_only_earlier_exports(tmp_path):
    write_queries([FakeRun("a", [record_with_query(1), record_with_query(2)])], tmp_path / "q")
    write_queries([FakeRun("a", [record_with_query(3)])], tmp_path / "q")
    assert len(list((tmp_path / "q").glob("*.rq"))) == 1
    (tmp_path / "q" / "mine.rq").write_text("")
    with pytest.raises(ReportError, match="other files"):
        write_queries([FakeRun("a", [record_with_query(1)])], tmp_path / "q")
    (tmp_path / "several").mkdir()
    (tmp_path / "several" / "mine").write_text("")
    with pytest.raises(ReportError, match="other files"):
        write_queries(
            [FakeRun("a", [record_with_query(1)]), FakeRun("b", [record_with_query(1)])], tmp_path / "several"
        )


def test_queries_stand_in_the_order_of_the_file(tmp_path):
    found = [replace(record_with_query(n), number=n) for n in (2, 0, 1)]
    write_queries([FakeRun("a", found)], tmp_path)
    assert [(row["number"], row["id"], row["file"][:5]) for row in rows(tmp_path)] == [
        ("1", "0", "00001"),
        ("2", "1", "00002"),
        ("3", "2", "00003"),
    ]
