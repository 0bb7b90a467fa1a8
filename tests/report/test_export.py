"""Queries as files: each gives the answer it stands for, and no comment ends early."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.cache import Cache
from kgqa.graph.opening import open_graph
from kgqa.model import Entity
from kgqa.report.export import INDEX, query_file, write_queries
from kgqa.report.files import ReportError
from tests.report.test_comparison import FakeRun, record
from tests.report.test_pages import ATTACKS


def rows(folder):
    with open(folder / INDEX, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def asked(number=1, *, query="SELECT * { ?s ?p ?o }", **more):
    return replace(record(number, 1.0), **more, answer={"status": "answered", "sparql": query})


def test_the_exported_queries_give_the_answers(offline, session_cache, tmp_path):
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
def test_a_comment_stays_a_comment(text):
    found = query_file(asked(id=text, text=text))
    head, query = found[: found.index("SELECT")], found[found.index("SELECT") :]
    assert query == "SELECT * { ?s ?p ?o }\n"
    assert all(line.startswith("# ") for line in head.splitlines()) and len(head.splitlines()) == 4
    assert "\\" not in head


@given(st.text(), st.text())
def test_any_id_and_question_are_four_lines_of_comment(ident, text):
    found = query_file(asked(id=ident, text=text))
    assert len(found.splitlines()) == 5 and found.endswith("SELECT * { ?s ?p ?o }\n")


def test_a_question_without_a_query_has_no_file(tmp_path):
    write_queries([FakeRun("a", [asked(1), asked(2, query=""), asked(3)])], tmp_path)
    assert [bool(row["file"]) for row in rows(tmp_path)] == [True, False, True]
    assert len(list(tmp_path.glob("*.rq"))) == 2


def test_the_index_has_no_formula(tmp_path):
    write_queries([FakeRun("a", [asked(1, id="=1+1", text="@x", dataset="-y")])], tmp_path)
    (row,) = rows(tmp_path)
    assert (row["id"], row["question"], row["dataset"]) == ("'=1+1", "'@x", "'-y")


def test_several_runs_have_a_folder_each(tmp_path):
    runs = [FakeRun(name, [asked()]) for name in ("top-1", "../../up", "../../up", "日本")]
    done = write_queries(runs, tmp_path / "out")
    assert [each.folder.name for each in done] == ["top-1", "up-nowhere", "up-nowhere-2", "run-4"]
    assert {each.name for each in (tmp_path / "out").iterdir()} == {each.folder.name for each in done}
    assert {each.name for each in tmp_path.iterdir()} == {"out"}
    write_queries(runs, tmp_path / "out")


def test_an_older_export_is_written_over_and_other_files_are_not(tmp_path):
    write_queries([FakeRun("a", [asked(1), asked(2)])], tmp_path / "q")
    write_queries([FakeRun("a", [asked(3)])], tmp_path / "q")
    assert len(list((tmp_path / "q").glob("*.rq"))) == 1
    (tmp_path / "q" / "mine.rq").write_text("")
    with pytest.raises(ReportError, match="other files"):
        write_queries([FakeRun("a", [asked(1)])], tmp_path / "q")
    (tmp_path / "several").mkdir()
    (tmp_path / "several" / "mine").write_text("")
    with pytest.raises(ReportError, match="other files"):
        write_queries([FakeRun("a", [asked(1)]), FakeRun("b", [asked(1)])], tmp_path / "several")
