"""Hostile texts, obeyed by an agent: what becomes of them by default, and if edits are committed at once."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.overlay import Overlay
from kgqa.llm.replies.tool_calls import read_tool_reply
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.tools import SCHEMAS, EvographTools
from kgqa.methods.evograph.web import opened_web_search
from kgqa.settings.values import resolve
from kgqa.testing.agents.evograph_agent import shown_results
from kgqa.text.words import safe_text
from kgqa.trace import EditDecided
from kgqa.trace.trace import Trace
from tests.methods.evograph.conftest import call
from tests.methods.evograph.hyper_corpus import HYPEREDGES, NOTES, Note, write_hyper_corpus

MARKS = dict(zip(("birth", "clock", "town", "light", "seals"), HYPEREDGES, strict=True))
"""The facts of the corpus by the words that attacks.toml has for them."""
MARK = re.compile(
    r"</?(?:tool_call|tool_response|think|answer|script)>|<\|im_|[\u200b-\u200f\u202a-\u202e\U000e0000-\U000e007f]"
)
"""What no result that is shown to a model contains."""
SETTINGS = {"ask.method": "evograph", "evograph.results": 25, "evograph.domains": "trusted.example"}


@dataclass(frozen=True)
class Attack:
    """An attack of attacks.toml. `page`: what the page of the web, or the document, says."""

    name: str
    text: str
    does: list
    outcomes: list
    where: str = "page"
    page: str = ""

    @property
    def says(self):
        return self.page or ("The harbour office of Corrin is closed." if self.where == "title" else self.text)

    @property
    def address(self):
        return self.text if self.where == "address" else f"https://evil.example/{self.name.replace(' ', '-')}"

    @property
    def in_corpus(self):
        return self.where in ("document", "name")

    @property
    def committed(self):
        """The texts that the graph contains if edits are committed at once."""
        deeds = [deed for deed, outcome in zip(self.does, self.outcomes) if outcome in ("accepted", "disputed")]
        return [
            safe_text(deed.get("content") or deed["insert"]) for deed in deeds if {"insert", "update"} & deed.keys()
        ]


TABLE = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text(encoding="utf-8"))
ATTACKS = {name: Attack(name, **each) for name, each in TABLE.items()}
HOSTILE_NOTES = [
    Note(each.says, ("Tarn Harbour", each.text if each.where == "name" else "Mara Holt"), title="A note of a visitor")
    for each in ATTACKS.values()
    if each.in_corpus
]
ALL_NOTES = [*NOTES, *HOSTILE_NOTES]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder, lines = tmp_path_factory.mktemp("attacks"), []
    for each in ATTACKS.values():
        passage = {"address": each.address, "text": each.says, "title": each.text if each.where == "title" else ""}
        lines.append(json.dumps({"query": each.name, "passages": [] if each.in_corpus else [passage]}))
    (folder / "web.jsonl").write_text("\n".join(lines))
    return write_hyper_corpus(folder / "corpus", ALL_NOTES), folder / "web.jsonl"


def play(attack, written, mode):
    """Obey an attack; return what became of the proposed edits, their states at the end, and the lines of results."""
    with Corpus.open(written[0]) as corpus, opened_web_search(f"replay:{written[1]}") as web:
        trace, overlay = Trace(), Overlay(corpus, agent="m", session=attack.name)
        tools = EvographTools(overlay, resolve(SETTINGS).of(EvographSettings), trace, web)
        tools.image_names = (attack.text,) if attack.where == "image" else ()
        asked = "<img>" if tools.image_names else "Mara Holt Tarn Harbour lighthouse Vell seals"
        found = [tools.call("graph_search", {"query": asked}), tools.call("web_search", {"query": attack.name})]
        for deed in attack.does:
            reply = read_tool_reply(reply_of(deed, tools, attack), schemas=SCHEMAS).value
            found += [tools.call(reply.name, reply.arguments)] if reply else []
        outcome = commit(overlay, mode)
        decided = {each.proposal: each.rule for each in trace.events() if isinstance(each, EditDecided)}
        for number, edit in zip(tools.accepted, overlay.edits):
            decided[number] = "disputed" if edit.disputed else "accepted"
        states = {outcome.state_of(each.edit) for each in overlay.edits}
        return list(decided.values()), states, [line for each in found for line in each.lines]


def reply_of(deed, tools, attack):
    def number(mark):
        wanted = {"document": attack.says, "inserted": attack.does[0].get("insert")}.get(mark) or MARKS.get(mark)
        found = (each for each in tools.shown if (each.kind == "web" if mark == "page" else each.text == wanted))
        return mark if isinstance(mark, int) else next(each.number for each in found)

    if "reply" in deed:
        return re.sub(r"@(\w+)@", lambda found: str(number(found[1])), deed["reply"])
    (kind,) = {"insert", "update", "delete"} & deed.keys()
    named = {"content": deed["insert"]} if kind == "insert" else {"target": number(deed[kind])}
    if kind == "update":
        named["new_content"] = deed["content"]
    given = {"sources": [number(each) for each in deed["sources"]]} if "sources" in deed else {}
    return call(kind, **named, **given, **({"reason": deed["reason"]} if "reason" in deed else {}))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_is_committed_by_default(written, attack):
    with Corpus.open(written[0]) as before:
        fingerprint, seq = before.fingerprint, before.database.seq
    outcomes, states, lines = play(attack, written, "proposed")
    assert outcomes == attack.outcomes
    assert states == ({"proposed"} if {"accepted", "disputed"} & {*attack.outcomes} else set())
    assert not [line for line in lines if MARK.search(line)]
    with Corpus.open(written[0]) as corpus:
        assert (corpus.fingerprint, corpus.database.seq) == (fingerprint, seq)


@pytest.fixture(scope="module")
def obeyed(written, tmp_path_factory):
    """A corpus on which the attacks were played with commit=auto, and the states of their edits."""
    corpus = shutil.copytree(written[0], tmp_path_factory.mktemp("auto") / "corpus")
    return corpus, {each.name: play(each, (corpus, written[1]), "auto")[1] for each in ATTACKS.values()}


def test_committed_edits_hide_nothing_that_is_trusted(obeyed):
    corpus, states = obeyed
    for each in ATTACKS.values():
        if each.where == "document" and "accepted" in each.outcomes:
            assert states[each.name] == {"proposed"}, each.name
    with Corpus.open(corpus) as opened:
        overlay = Overlay(opened, agent="nobody")
        trusts = {record.segment: overlay.trust_of(record.iri) for record in opened.reader.hyperedges()}
    facts = {note.segment for note in ALL_NOTES}
    assert facts <= trusts.keys() and {trusts[fact] for fact in facts} == {"corpus"}
    from_web = {text for each in ATTACKS.values() if not each.in_corpus for text in each.committed} - facts
    assert from_web <= trusts.keys() and {trusts[text] for text in from_web} == {"web"}


LIES = [text for each in ATTACKS.values() for text in each.committed if "lighthouse" in text]


@pytest.mark.parametrize("lie", LIES)
def test_a_trusted_text_comes_before_what_contradicts_it(run, obeyed, lie):
    asked = run(call("graph_search", query=lie), "<answer>unknown</answer>", folder=obeyed[0])
    shown = shown_results(asked.requests[-1].messages)
    (place,) = [place for place, each in enumerate(shown) if each["text"] == lie]
    (fact,) = [place for place, each in enumerate(shown) if each["text"] == MARKS["light"]]
    assert fact < place and shown[place]["trust"] == "web" and shown[fact]["trust"] == "corpus"
    assert shown[fact]["number"] in shown[place]["contradicts"]
