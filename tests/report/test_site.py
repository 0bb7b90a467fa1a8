"""A site on disk: its files, their names, links that lead somewhere, and what is not written over."""

from __future__ import annotations

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
from kgqa.report.index_page import losses_of
from kgqa.report.index_rows import index_rows, page_name
from kgqa.report.outcomes import STAGES, UNSCORED, answers_and_gold, stage_of
from kgqa.report.site import MARK, write_site
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


def test_an_index_and_a_page_a_question_and_run(site):
    assert (site / "index.html").is_file() and (site / MARK).is_file()
    assert [len(list((site / f"run-{n}").iterdir())) for n in (1, 2)] == [12, 2]
    assert {each.name for each in site.iterdir()} == {"index.html", MARK, "run-1", "run-2"}


def test_every_link_leads_to_a_file_of_the_site(site):
    pages = [site / "index.html", *site.glob("run-*/*.html")]
    seen = set()
    for page in pages:
        for link in links(page):
            assert link.is_file(), (page, link)
            seen.add(link.resolve())
    assert seen == {page.resolve() for page in pages}


def test_a_question_of_two_runs_is_one_line_and_its_pages_know_each_other(site):
    (first,) = site.glob("run-1/00001-*.html")
    (other,) = site.glob("run-2/00001-*.html")
    assert other.resolve() in {link.resolve() for link in links(first)}
    assert first.resolve() in {link.resolve() for link in links(other)}
    assert (site / "index.html").read_text().count("anthem is Kimigayo") == 1


def test_a_page_shows_what_became_of_the_question(site):
    page = unescape(next(site.glob("run-2/00001-*.html")).read_text())
    assert "Which city is the capital of the country whose anthem is Kimigayo?" in page
    assert "Tokyo" in page and "m.demo_tokyo" in page
    assert "SELECT DISTINCT ?answer" in page and "location.country.capital" in page
    assert page.count('class="match"') >= 11 and "Round 2" in page
    assert 'class="path"' in page and "national anthem of" in page
    assert "model calls" in page


def test_the_index_says_how_right_and_where_lost(site):
    page = (site / "index.html").read_text()
    assert "Hit@1" in page and 'class="plot"' in page and "Where right answers were lost" in page
    assert "Hit@1 by hops" in page and "Difference from top" in page


@pytest.mark.parametrize("ident", [*ATTACKS, "/etc/passwd", "..", "", "a" * 5000, "CON", "x\\y", "a/b\0c"])
def test_no_id_becomes_a_file_name(ident, tmp_path):
    name = page_name(1, replace(record(1, 1.0), id=ident))
    assert re.fullmatch(r"00001-[0-9a-f]{12}\.html", name)
    index = write_site([FakeRun("run", [replace(record(1, 1.0), id=ident, dataset=ident)])], tmp_path / "site")
    written = {each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*") if each.is_file()}
    assert len(written) == 3 and all(re.fullmatch(r"site/[a-z0-9./-]+", each) for each in written)
    assert all(link.is_file() for link in links(index))


def test_a_question_that_is_there_twice_has_two_pages(tmp_path):
    index = write_site([FakeRun("run", [record(1, 1.0), record(1, 0.0)])], tmp_path)
    assert len(list(tmp_path.glob("run-1/*.html"))) == 2 and len(links(index)) == 2


def test_an_older_report_is_written_over_and_its_pages_go(tmp_path):
    write_site([FakeRun("a", [record(n, 1.0) for n in range(5)]), FakeRun("b", [record(1, 1.0)])], tmp_path)
    (tmp_path / "run-1" / "notes.txt").write_text("mine")
    write_site([FakeRun("a", [record(7, 1.0)])], tmp_path)
    assert len(list(tmp_path.glob("run-*/*.html"))) == 1
    assert (tmp_path / "run-1" / "notes.txt").read_text() == "mine"


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ReportError, match="other files"):
        write_site([FakeRun("a", [record(1, 1.0)])], tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"thesis.tex"}


def test_a_link_in_the_place_of_a_page_is_not_followed(tmp_path):
    run = FakeRun("a", [record(1, 1.0)])
    write_site([run], tmp_path / "site")
    (page,) = (tmp_path / "site" / "run-1").iterdir()
    (tmp_path / "precious").write_text("mine")
    page.unlink()
    page.symlink_to(tmp_path / "precious")
    write_site([run], tmp_path / "site")
    assert (tmp_path / "precious").read_text() == "mine" and not page.is_symlink()


def test_a_file_in_the_way_is_an_error_for_people(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="Choose another"):
        write_site([FakeRun("a", [record(1, 1.0)])], tmp_path / "file")
    with pytest.raises(ReportError, match="1 to 24"):
        write_site([], tmp_path)


def test_a_run_that_goes_on_meanwhile(tmp_path):
    """Records that come after the first reading are left out; others in their place are an error."""

    @dataclass
    class Growing(FakeRun):
        reads: int = 0

        def records(self) -> list[Record]:
            self.reads += 1
            return [record(n, 1.0) for n in range(min(self.reads, 4))]

    run = Growing("a", [])
    index = write_site([run], tmp_path / "grown")
    assert len(list(index.parent.glob("run-1/*.html"))) == 2  # the summary was read before

    @dataclass
    class Changing(FakeRun):
        reads: int = 0

        def records(self) -> list[Record]:
            self.reads += 1
            return [record(self.reads, 1.0)]

    with pytest.raises(ReportError, match="changed while"):
        write_site([Changing("a", [])], tmp_path / "changed")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_pages(offline, tmp_path):
    records = list(offline.records())

    @dataclass
    class Large(FakeRun):
        many: int = 0

        def records(self):
            return (replace(records[n % len(records)], id=f"{n}") for n in range(self.many))

    peaks = []
    for many in (20, 20, 120):  # the first run fills the caches of templates, schemas and names
        tracemalloc.start()
        write_site([Large("a", [], many=many)], tmp_path / f"{many}-{len(peaks)}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 100 more pages of more than 30 kB would be more than 3 MB
    assert peaks[2] - peaks[1] < 1_200_000, peaks


# ---- what is said of an answer ----


def test_where_an_answer_was_lost():
    assert stage_of(record(1, 1.0)) == "right" and stage_of(record(1, 0.0)) == ""
    assert stage_of(record(1, 0.0, loss="prefilter")) == "prefilter"
    assert stage_of(record(1, 0.0, loss="unheard of")) == "unknown"
    for status, stage in (("failed", "failed"), ("unsupported", "unsupported"), ("budget_exhausted", "budget")):
        assert stage_of(replace(record(1, 0.0), answer={"status": status})) == stage


def test_every_loss_has_words():
    from kgqa.evaluation.analysis.losses import LOSSES

    assert set(LOSSES) == set(STAGES) - {"", UNSCORED}


def test_a_question_without_gold_is_neither_right_nor_wrong(tmp_path):
    nobody = replace(record(3, 0.0), answers=(), scores={}, text="Who knows?")
    assert stage_of(nobody) == stage_of(replace(nobody, loss="unknown", answer={"status": "failed"})) == UNSCORED
    run = FakeRun("a", [record(1, 1.0), record(2, 0.0), nobody])
    lost = losses_of([list(index_rows(run, 1))])
    assert [(each.words, each.counts) for each in lost] == [("right", ((1, 0.5),)), (STAGES[""], ((1, 0.5),))]
    site = write_site([run], tmp_path).parent
    page = next(site.glob("run-1/00003-*.html")).read_text()
    assert '<span class="badge unscored">no gold answers</span>' in page and "wrong, not" not in page
    assert (
        '<span class="badge wrong">wrong (cause not analysed; rerun with --losses)</span>'
        in next(site.glob("run-1/00002-*.html")).read_text()
    )


def test_gold_answers_beside_those_given():
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


def test_what_a_model_said_of_itself_is_right_by_its_name():
    gold = (GoldAnswer("m.1", "Ann Li"), GoldAnswer("m.2", "Bob"))
    answer = {"answers": [{"id": None, "name": "ann li", "value": "ann li", "datatype": ""}], "grounding": "model"}
    found = answers_and_gold(Record("i", "d", "t", answer, gold))
    assert [each.right for each in found.given] == [True] and [each.right for each in found.gold] == [True, False]
    assert score_record(answer, [gold])["precision"] == 1
    by_graph = answers_and_gold(Record("i", "d", "t", {**answer, "grounding": "graph"}, gold))
    assert not any(each.right for each in (*by_graph.given, *by_graph.gold))


def test_the_reading_that_is_shown_is_the_one_that_counted():
    """Two answers are in a reading of ten, and one of them is a reading of its own, which has the better F1."""
    given = [{"id": f"m.{n}", "name": f"N{n}", "iri": f"http://x/m.{n}"} for n in range(2)]
    wide = tuple(GoldAnswer(f"m.{n}", f"N{n}") for n in range(10))
    record = Record("i", "d", "t", {"answers": given, "grounding": "graph"}, wide, parses=(wide, wide[:1]))
    assert score_record(record.answer, record.readings)["recall"] == 1
    assert [each.name for each in answers_and_gold(record).gold] == ["N0"]
