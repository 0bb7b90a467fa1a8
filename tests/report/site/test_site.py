"""The files of a report site: names, links and overwriting."""

from __future__ import annotations

import gc
import re
import tracemalloc
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

import pytest

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.scores import score_record
from kgqa.evaluation.runs.records import Record
from kgqa.report.files import ReportError
from kgqa.report.site.index_page import losses_of
from kgqa.report.site.index_rows import index_rows, page_name
from kgqa.report.site.outcomes import STAGES, UNSCORED, answers_and_gold, stage_of
from kgqa.report.site.writing import MARK, write_site
from tests.report.test_comparison import FakeRun, record
from tests.report.test_pages import ATTACKS


def links(page: Path) -> list[Path]:
    text = page.read_text()
    found = [unescape(each) for each in re.findall(r'href="([^"]*)"', text)]
    found += re.findall(r'"(run-\d+/[^"]*\.html)"', text)
    return [page.parent / each for each in found]


@pytest.fixture(scope="module")
def site(offline, by_model, tmp_path_factory) -> Path:
    return write_site([offline, by_model], tmp_path_factory.mktemp("site") / "out").parent


def test_files_of_a_site(site):
    assert (site / "index.html").is_file() and (site / MARK).is_file()
    assert [len(list((site / f"run-{n}").iterdir())) for n in (1, 2)] == [12, 2]
    assert {each.name for each in site.iterdir()} == {"index.html", "compare.html", MARK, "run-1", "run-2"}


def test_links_lead_to_files_of_the_site(site):
    pages = [site / "index.html", site / "compare.html", *site.glob("run-*/*.html")]
    seen = set()
    for page in pages:
        for link in links(page):
            assert link.is_file(), (page, link)
            seen.add(link.resolve())
    assert seen == {page.resolve() for page in pages}


def test_pages_of_one_question_link_to_each_other(site):
    (first,) = site.glob("run-1/00001-*.html")
    (other,) = site.glob("run-2/00001-*.html")
    assert other.resolve() in {link.resolve() for link in links(first)}
    assert first.resolve() in {link.resolve() for link in links(other)}
    assert (site / "index.html").read_text().count("anthem is Kimigayo") == 1


def test_question_page(site):
    page = unescape(next(site.glob("run-2/00001-*.html")).read_text())
    assert "Which city is the capital of the country whose anthem is Kimigayo?" in page
    assert "Tokyo" in page and "m.demo_tokyo" in page
    assert "SELECT DISTINCT ?answer" in page and "location.country.capital" in page
    assert page.count('class="match"') >= 6 and "Round 2" in page
    assert 'class="path"' in page and "national anthem of" in page
    assert "model calls" in page


def test_index_page(site):
    page = (site / "index.html").read_text()
    assert "Hit@1" in page and 'class="plot"' in page and "Where right answers were lost" in page
    assert "Hit@1 by hops" in page and "Difference from top" in page


@pytest.mark.parametrize("ident", [*ATTACKS, "/etc/passwd", "..", "", "a" * 5000, "CON", "x\\y", "a/b\0c"])
def test_ids_do_not_become_file_names(ident, tmp_path):
    name = page_name(1, replace(record(1, 1.0), id=ident))
    assert re.fullmatch(r"00001-[0-9a-f]{12}\.html", name)
    index = write_site([FakeRun("run", [replace(record(1, 1.0), id=ident, dataset=ident)])], tmp_path / "site")
    written = {each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*") if each.is_file()}
    assert len(written) == 3 and all(re.fullmatch(r"site/[a-z0-9./-]+", each) for each in written)
    assert all(link.is_file() for link in links(index))


def test_repeated_question_has_two_pages(tmp_path):
    index = write_site([FakeRun("run", [record(1, 1.0), record(1, 0.0)])], tmp_path)
    assert len(list(tmp_path.glob("run-1/*.html"))) == 2 and len(links(index)) == 2


def test_earlier_report_is_replaced(tmp_path):
    write_site([FakeRun("a", [record(n, 1.0) for n in range(5)]), FakeRun("b", [record(1, 1.0)])], tmp_path)
    (tmp_path / "run-1" / "notes.txt").write_text("mine")
    write_site([FakeRun("a", [record(7, 1.0)])], tmp_path)
    assert len(list(tmp_path.glob("run-*/*.html"))) == 1
    assert (tmp_path / "run-1" / "notes.txt").read_text() == "mine"


def test_questions_stand_in_the_order_of_the_file(tmp_path):
    """Predictions are written as questions end."""
    found = [replace(record(n, 1.0), number=n, id=f"q{n}") for n in (3, 0, 2, 1)]
    rows = index_rows(FakeRun("a", found), 1)
    assert [row.id for row in rows] == ["q0", "q1", "q2", "q3"]
    site = write_site([FakeRun("a", found), FakeRun("b", found[:1] + found[3:])], tmp_path).parent
    assert [
        re.search(r'id="question-id"[^>]*>(q\d)<', page.read_text())[1] for page in sorted(site.glob("run-1/*"))
    ] == [
        "q0",
        "q1",
        "q2",
        "q3",
    ]
    first = min(site.glob("run-1/*")).read_text()
    assert "1 of 4" in first and 'rel="next" href="../run-1/00002-' in first and 'rel="prev"' not in first


def test_older_runs_keep_the_order_of_their_predictions():
    assert [row.id for row in index_rows(FakeRun("a", [record(n, 1.0) for n in (3, 1, 2)]), 1)] == ["3", "1", "2"]


def test_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ReportError, match="other files"):
        write_site([FakeRun("a", [record(1, 1.0)])], tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"thesis.tex"}


def test_nothing_is_written_through_a_link(tmp_path):
    run = FakeRun("a", [record(1, 1.0)])
    write_site([run], tmp_path / "site")
    (page,) = (tmp_path / "site" / "run-1").iterdir()
    (tmp_path / "precious").write_text("mine")
    page.unlink()
    page.symlink_to(tmp_path / "precious")
    with pytest.raises(ReportError, match="is a link"):
        write_site([run], tmp_path / "site")
    assert (tmp_path / "precious").read_text() == "mine"


def test_invalid_output_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="Choose another"):
        write_site([FakeRun("a", [record(1, 1.0)])], tmp_path / "file")
    with pytest.raises(ReportError, match="1 to 24"):
        write_site([], tmp_path)


def test_run_that_changes_during_the_report(tmp_path):
    """Records added after the first reading are left out; replaced records are an error."""

    @dataclass
    class GrowingRun(FakeRun):
        reads: int = 0

        def records(self) -> list[Record]:
            self.reads += 1
            return [record(n, 1.0) for n in range(min(self.reads, 4))]

    run = GrowingRun("a", [])
    index = write_site([run], tmp_path / "grown")
    assert len(list(index.parent.glob("run-1/*.html"))) == 2  # the summary was read first

    @dataclass
    class ChangingRun(FakeRun):
        reads: int = 0

        def records(self) -> list[Record]:
            self.reads += 1
            return [record(self.reads, 1.0)]

    with pytest.raises(ReportError, match="changed during"):
        write_site([ChangingRun("a", [])], tmp_path / "changed")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pages(offline, tmp_path):
    records = list(offline.records())

    @dataclass
    class LargeRun(FakeRun):
        record_count: int = 0

        def records(self):
            return (replace(records[n % len(records)], id=f"{n}") for n in range(self.record_count))

    peaks = []
    # objects of earlier tests, and thresholds that they left, would put off the collection of garbage
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.collect()
    gc.set_threshold(700, 10, 10)
    for record_count in (20, 20, 120):  # the first run fills the caches
        tracemalloc.start()
        write_site([LargeRun("a", [], record_count=record_count)], tmp_path / f"{record_count}-{len(peaks)}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    # 100 more pages of over 30 kB would take over 3 MB
    assert peaks[2] - peaks[1] < 1_200_000, peaks


# ---- outcomes of answers ----


def test_stage_of_an_answer():
    assert stage_of(record(1, 1.0)) == "right" and stage_of(record(1, 0.0)) == ""
    assert stage_of(record(1, 0.0, loss="prefilter")) == "prefilter"
    assert stage_of(record(1, 0.0, loss="unheard of")) == "unknown"
    for status, stage in (("failed", "failed"), ("unsupported", "unsupported"), ("budget_exhausted", "budget")):
        assert stage_of(replace(record(1, 0.0), answer={"status": status})) == stage


def test_every_loss_has_a_label():
    from kgqa.evaluation.analysis.losses import LOSSES

    assert set(LOSSES) == set(STAGES) - {"", UNSCORED}


def test_question_without_gold_is_unscored(tmp_path):
    unscored = replace(record(3, 0.0), answers=(), scores={}, text="Who knows?")
    assert stage_of(unscored) == stage_of(replace(unscored, loss="unknown", answer={"status": "failed"})) == UNSCORED
    run = FakeRun("a", [record(1, 1.0), record(2, 0.0), unscored])
    losses = losses_of([list(index_rows(run, 1))])
    assert [(each.words, each.counts) for each in losses] == [("right", ((1, 0.5),)), (STAGES[""], ((1, 0.5),))]
    site = write_site([run], tmp_path).parent
    page = next(site.glob("run-1/00003-*.html")).read_text()
    assert '<span class="badge unscored"><span aria-hidden="true">·</span> no gold answers</span>' in page
    assert "wrong" not in page[page.index("<body") :]
    assert (
        '<span class="badge wrong">cause not analysed; rerun with --losses</span>'
        in next(site.glob("run-1/00002-*.html")).read_text()
    )


def test_answers_and_gold():
    answer = {
        "answers": [
            {"id": "m.1", "name": "One", "iri": "http://x/m.1"},
            {"id": None, "name": "1996", "value": "1996", "datatype": "http://www.w3.org/2001/XMLSchema#integer"},
            {"id": "m.9", "name": "Nine", "iri": "http://x/m.9"},
        ]
    }
    other, best = (GoldAnswer("m.5", ""),), (GoldAnswer("m.1", "one"), GoldAnswer("", "1996.0"), GoldAnswer("m.2", ""))
    found = answers_and_gold(Record("i", "d", "t", answer, other, parses=(other, best)))
    assert [(each.name, each.right) for each in found.given] == [("One", True), ("1996", True), ("Nine", False)]
    assert [(each.name, each.right) for each in found.gold] == [("one", True), ("1996.0", True), ("m.2", False)]
    assert found.readings == 2


def test_model_answers_match_by_name():
    gold = (GoldAnswer("m.1", "Ann Li"), GoldAnswer("m.2", "Bob"))
    answer = {"answers": [{"id": None, "name": "ann li", "value": "ann li", "datatype": ""}], "grounding": "model"}
    found = answers_and_gold(Record("i", "d", "t", answer, gold))
    assert [each.right for each in found.given] == [True] and [each.right for each in found.gold] == [True, False]
    assert score_record(answer, [gold])["precision"] == 1
    by_graph = answers_and_gold(Record("i", "d", "t", {**answer, "grounding": "graph"}, gold))
    assert not any(each.right for each in (*by_graph.given, *by_graph.gold))


def test_shown_reading_is_the_scored_one():
    """Two readings differ in F1: ten gold answers, and one of them alone."""
    given = [{"id": f"m.{n}", "name": f"N{n}", "iri": f"http://x/m.{n}"} for n in range(2)]
    wide_reading = tuple(GoldAnswer(f"m.{n}", f"N{n}") for n in range(10))
    record = Record(
        "i", "d", "t", {"answers": given, "grounding": "graph"}, wide_reading, parses=(wide_reading, wide_reading[:1])
    )
    assert score_record(record.answer, record.readings)["recall"] == 1
    assert [each.name for each in answers_and_gold(record).gold] == ["N0"]
