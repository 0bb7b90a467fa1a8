"""The page of an answer over text: quotes in their chunks, rounds, sub-questions, pieces, verdicts."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.runs.records import Record
from kgqa.report.site.question_page import question_page
from kgqa.report.site.writing import write_site
from kgqa.report.text.piece_texts import open_texts
from tests.report.conftest import hostile_record
from tests.report.site.test_bracket import json_values
from tests.report.test_comparison import FakeRun
from tests.report.test_pages import ATTACKS, CONTEXT, LINK, ParsedPage
from tests.report.text.traces import MARR, RAG, ROUNDS, STEPS, TOWN, text_record, write_corpus


@pytest.fixture(scope="module")
def corpus_run(tmp_path_factory) -> FakeRun:
    folder = write_corpus(tmp_path_factory.mktemp("corpus") / "towns")
    manifest = {"settings": {"graph.path": folder.name}, "working_folder": str(folder.parent)}
    records = [text_record("rag", RAG), text_record("tog3", ROUNDS), text_record("graphsearch", STEPS)]
    return FakeRun("text", records, folder, manifest)


@pytest.fixture(scope="module")
def pages(corpus_run, tmp_path_factory) -> list[str]:
    """The pages of rag, tog3 and graphsearch."""
    index = write_site([corpus_run], tmp_path_factory.mktemp("site"))
    return [each.read_text() for each in sorted(index.parent.glob("run-1/*.html"))]


def test_quotes_are_marked_in_their_chunks(pages):
    for page in pages:
        assert "<mark>Its architect was Ines Marr</mark><sup>1</sup>, who also drew" in page
        assert "<mark>She was born in Kirkwick on 3 May 1832</mark><sup>2</sup>, and died" in page
        text = ParsedPage(page).text
        assert "cited by 2, 3; 3 not found in it" in text and text.count("✓ verified") == 2
        assert "“She lived in Oban" not in text and "not found in the text" in text
        assert "docs/Skerry Light.txt, 36–63" in text and "urn:kgqa" not in text.split("Steps")[0]


def test_sections_of_paths_are_left_out(pages):
    for page in pages:
        text = ParsedPage(page).text
        assert "There is no path" not in text and "Nothing was masked" not in text
        assert "Statements and quotes" not in text and "Other events" not in text


def test_pieces_are_named_by_their_titles(pages):
    text = ParsedPage(pages[0]).text
    assert "3 pieces found, 2 kept" in text
    assert "Kirkwick is a fishing town." in text and pages[0].count('class="kept-piece"') == 2
    assert "urn:kgqa:statement:x" in ParsedPage(pages[2]).text  # not in the corpus


def test_supporting_passages_are_named(pages):
    assert "upporting" not in ParsedPage(pages[0]).text
    record = replace(text_record("rag", RAG), support=((MARR,), (TOWN,), ()))
    text = ParsedPage("".join(question_page(record, CONTEXT))).text
    assert "Supporting passages of the data set: 2 of 3 retrieved, 1 shown to the model" in text
    assert text.count("chunk supporting") == 3  # one was kept, and both were found


def test_rounds_of_answers_and_verdicts(pages):
    text = ParsedPage(pages[1]).text
    first, second = text.index("Round 1"), text.index("Round 2")
    assert first < text.index("The evidence was judged insufficient.") < text.index("Who was Ines Marr?") < second
    assert "Missing: the birthplace of Ines Marr" in text and "Asked because of" not in text
    assert second < text.index("2 of 2 quotes verified") < text.index("the answer was accepted") < text.index("Stopped")


def test_evidence_graph(pages):
    text = ParsedPage(pages[1]).text
    assert "For sub-question 1: 2 facts added, 1 proposal refused" in text
    assert "1 fact added, 1 pair of names merged" in text and "same: Ines Marr = Marr" in text
    assert "removed: chunk: Kirkwick" in text and "For the question: 2 removed" in text
    assert pages[1].count('class="fact-edge edit0"') == 2 and 'class="fact-edge edit1 removed"' in pages[1]
    assert "Evidence graph" not in ParsedPage(pages[2]).text


def test_tree_of_sub_questions(pages):
    page = pages[2]
    text = ParsedPage(page).text
    assert page.count('<ul class="tree">') == 4  # two plans, and below 1 and 2
    order = ["Who was the architect", "Where was #1 born?", "Who leads the town #2?", "grow up?", "Draft",
             "claim 2 does not hold: She was born in Oban.", "1 new sub-question above", "birthplace of the architect",
             "The draft was accepted."]  # fmt: skip
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "asked as: Where was Ines Marr born?" in text and "(an earlier answer is missing)" in text
    assert "The reply could not be read." in text and "not in the passages" in text
    assert "She was born in Oban. quote not found in the text does not hold" in text


def test_page_without_the_corpus_shows_quotes_and_a_note():
    for manifest in ({}, {"settings": {"graph.path": "/nowhere"}}, {"settings": {"graph.path": "http://host/sparql"}}):
        with open_texts(FakeRun("text", [], manifest=manifest)) as texts:
            text = ParsedPage("".join(question_page(text_record(), CONTEXT, texts))).text
        assert "She was born in Kirkwick on 3 May 1832" in text and "and died in Leith." not in text
        assert "the corpus of the run was not found" in text and "urn:kgqa:chunk:" in text


def test_answer_without_a_verified_quote_names_its_source():
    record = text_record("tog3", ROUNDS)
    text = ParsedPage(
        "".join(question_page(replace(record, answer={**record.answer, "grounding": "model"}), CONTEXT))
    ).text
    assert "no verified quote contains the answer" in text and "own knowledge" not in text


def test_quote_that_moved_in_the_corpus_is_still_marked(corpus_run):
    record = text_record()
    (first, *others) = record.answer["citations"]
    moved = {**first, "span": {**first["span"], "begin": 0, "end": 5}}
    gone = {**first, "quote": "words that the corpus has no more"}
    answer = {**record.answer, "citations": [moved, gone, *others]}
    with open_texts(corpus_run) as texts:
        page = "".join(question_page(replace(record, answer=answer), CONTEXT, texts))
    assert "<mark>Its architect was Ines Marr</mark><sup>1</sup>" in page and "cited by 1, 2; 2 not found in it" in page


def test_damaged_corpus_is_no_error(tmp_path):
    folder = write_corpus(tmp_path / "corpus")
    (folder / "corpus.sqlite").write_bytes(b"no database")
    with open_texts(FakeRun("text", [], manifest={"settings": {"graph.path": str(folder)}})) as texts:
        assert "</html>" in "".join(question_page(text_record(), CONTEXT, texts))
    (folder / "corpus.json").write_text("{")
    with open_texts(FakeRun("text", [], manifest={"settings": {"graph.path": str(folder)}})) as texts:
        assert texts.piece("urn:kgqa:chunk:x") is None


# ---- hostile texts ----


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("trace", [RAG, ROUNDS, STEPS])
def test_attack_changes_no_element(trace, attack):
    record = text_record("text", trace)
    harmless = ParsedPage("".join(question_page(hostile_record(record, lambda: "x" * len(attack)), CONTEXT)))
    attacked = ParsedPage("".join(question_page(hostile_record(record, lambda: attack), CONTEXT)))
    assert attacked.elements == harmless.elements and attacked.comments == 0


class HostileTexts:
    """A corpus whose titles and texts are hostile."""

    def __init__(self, texts) -> None:
        self._texts = cycle(texts)

    def piece(self, iri):
        from kgqa.report.text.piece_texts import PieceText

        return PieceText("chunk", *(next(self._texts) for _ in range(3)))


@given(st.lists(st.text(max_size=30) | st.sampled_from(ATTACKS), min_size=1, max_size=6), st.sampled_from([RAG, ROUNDS, STEPS]))  # fmt: skip
def test_texts_add_no_attribute(texts, trace):
    source = cycle(texts)
    record = hostile_record(text_record("text", trace), lambda: next(source))
    page = "".join(question_page(record, CONTEXT, HostileTexts(texts)))
    parsed = ParsedPage(page)
    assert all(LINK.fullmatch(value) for name, value in parsed.values if name == "href")
    assert not any(name.startswith("on") or name in ("src", "style", "srcdoc") for name, _ in parsed.values)
    assert len(parsed.scripts) == 1 and not set("\x00\x1b\u202e\u2066\u200b") & set(page)


KIND = st.sampled_from(sorted({each.kind for each in (*ROUNDS, *STEPS)}))
NUMBER = st.integers(-2, 6)
SUB_QUESTION = st.fixed_dictionaries({"number": NUMBER, "text": st.text(max_size=5), "needs": st.lists(NUMBER, max_size=4)})  # fmt: skip
EVENT = st.fixed_dictionaries(
    {"kind": KIND},
    optional={
        "step": NUMBER | json_values,
        "round": NUMBER | json_values,
        "sub_questions": st.lists(SUB_QUESTION, max_size=4) | json_values,
        **dict.fromkeys(("pieces", "answers", "added", "merged", "claims", "failed"), json_values),
        **dict.fromkeys(("query", "text", "question", "verdict", "missing", "why", "channel"), st.text(max_size=5)),
    },
)


@given(st.lists(EVENT, max_size=12), st.lists(json_values, max_size=3))
def test_page_of_any_events(trace, citations):
    answer = {"trace": trace, "citations": citations}
    page = "".join(question_page(Record("i", "d", "t", answer, ()), CONTEXT, HostileTexts(["a"])))
    assert "</html>" in page


def test_site_needs_no_corpus(tmp_path):
    index = write_site([FakeRun("text", [text_record()])], tmp_path)
    (page,) = index.parent.glob("run-1/*.html")
    assert "the corpus of the run was not found" in Path(page).read_text()
