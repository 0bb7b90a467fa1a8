"""HTML in notebooks: what IPython shows of an answer and of a run, hostile names, themes, progress bars."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import kgqa
from kgqa.evaluation import RunPlan, open_run, run
from kgqa.model import Answer, Citation, Entity, Literal, Named, PathEvidence, Question, RelationPath, Span, Step
from kgqa.report.comparison import compare
from kgqa.storage.answer_json import answer_data, answer_from

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e{{ 7*7 }}</style></svg>'
VOID = {"circle", "line", "path", "br", "img"}


class Elements(HTMLParser):
    """Collects tags, attributes and text; fails on unbalanced elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data if self._open[-1:] != ["style"] else ""


@pytest.fixture(scope="module")
def answer():
    return kgqa.ask("Which prizes did Marie Curie win?")


@pytest.fixture
def display():
    """What a notebook shows of the value of a cell."""
    from IPython.core.formatters import DisplayFormatter

    return lambda value: DisplayFormatter().format(value)[0]["text/html"]


def test_a_cell_shows_path_score_and_query(answer, display):
    html = display(answer)
    shown = Elements(html)
    assert {"svg", "details", "pre", "style"} <= set(shown.tags) and not {"script", "link"} & set(shown.tags)
    for part in ("Nobel Prize in Physics", "m.demo_nobel_prize_in_physics", "award winner awards won", "SELECT DISTINCT",
                 "returns exactly these answers", "the share of right answers"):  # fmt: skip
        assert part in shown.text
    nodes = [value for name, value in shown.attributes if name == "class" and value.startswith("node ")]
    assert sorted(nodes) == ["node answer", "node answer", "node mediator", "node mediator", "node topic"]
    again = answer_from(json.loads(json.dumps(answer_data(answer))))
    assert display(again) == html


def test_what_is_uncertain_is_said(display, answer):
    weak = Elements(display(replace(answer, confidence=0.3)))
    assert "Weak match (score 30%)" in weak.text
    declined = Elements(
        display(Answer(Question("?"), "unsupported", reason="Counts are not read.", notes=("A note.",)))
    )
    assert "Not supported: Counts are not read." in declined.text and "A note." in declined.text
    invented = Elements(
        display(
            Answer(
                Question("?"),
                "answered",
                (Named(Literal("x"), "", "x"),),
                response="It is x.",
                grounding="model",
                citations=(
                    Citation("It is x", "urn:c", Span("urn:d", "urn:c", 3, 9, "a.md"), "quoted", True),
                    Citation("It is y", "urn:c", None, "invented", False),
                ),
            )
        )
    )
    assert "It is x quoted a.md, 3–9" in " ".join(invented.text.split())
    assert invented.text.count("not found in the text") == 1 and "no verified quote contains" in invented.text


def test_hostile_names_are_text(display):
    evil = Named(Entity("http://e/" + EVIL), EVIL, EVIL)
    path = RelationPath(evil.value, (Step("http://e/" + EVIL), Step(EVIL, "in")))
    evidence = PathEvidence(
        path, EVIL, ((evil, evil, evil),), (1,), condition_words=(EVIL,), operation_words=EVIL, step_words=(EVIL, EVIL)
    )
    answer = Answer(
        Question(EVIL), "answered", (evil,), (evidence,), sparql=EVIL, response=EVIL, notes=(EVIL,), hints=(EVIL,),
        citations=(Citation(EVIL, EVIL, Span(EVIL, EVIL, 0, 1, EVIL), EVIL),), reason=EVIL, defects=(EVIL,),
    )  # fmt: skip
    for value in (answer, replace(answer, answers=(), status="failed"), replace(answer, evidence=())):
        html = display(value)
        shown = Elements(html)
        assert not {"script", "img"} & set(shown.tags) and not [
            name for name, _ in shown.attributes if name[:2] == "on"
        ]
        assert "\x1b" not in html and "\u202e" not in html and "{{ 7*7 }}" in shown.text


def test_a_run_is_a_table_with_intervals(tmp_path, display, monkeypatch):
    written: list[str] = []
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))  # as in a notebook
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(write=written.append, flush=lambda: None))
    result = run(RunPlan("demo", sample=6), tmp_path / "run", {"rank.embeddings": "off"})
    bars = "".join(written)
    monkeypatch.undo()
    assert "6/6" in bars and "hit@1" in bars
    opened = open_run(tmp_path / "run")
    assert display(result) == display(opened)
    shown = Elements(display(opened))
    rows = " ".join(shown.text.split())
    assert (
        "Hit@1" in rows and "95%" not in rows and "[" in rows.split("Hit@1")[1][:20] and "seconds per question" in rows
    )
    assert shown.tags.count("table") == len(compare([opened]).groups) + 1
    two = Elements(display(compare([opened, opened])))
    assert "p=1" in two.text or "p=" in two.text


def test_bars_of_a_load_and_of_many_questions(tmp_path, capsys, monkeypatch):
    file = tmp_path / "a.nt"
    file.write_text('<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ada" .\n')
    report = kgqa.load_into_folder([file], tmp_path / "quiet")
    assert report.added == 1 and capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    kgqa.load_into_folder([file], str(tmp_path / "graph"))
    assert "loading: 100%" in capsys.readouterr().err
    with kgqa.open_resources(tmp_path / "graph", embeddings="off") as resources:
        asked = ["Who is Ada?", Question("Who is Ada?", id="2")]
        answers = list(kgqa.ask_all(asked, resources=resources))
    assert [each.question.id for each in answers] == ["", "2"] and "2/2" in capsys.readouterr().err
