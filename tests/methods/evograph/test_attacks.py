"""Hostile texts, obeyed by the agent: what becomes of them by default, and if edits are committed at once."""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager

import pytest

from kgqa import ask, open_resources
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.graph.opening import open_graph
from kgqa.model import Question
from kgqa.settings.values import resolve
from kgqa.testing.agents.evograph_agent import shown_results
from kgqa.testing.server import ScriptedServer
from kgqa.text.words import safe_text
from kgqa.trace import EditDecided, Seen
from tests.methods.evograph.attacks import (
    ALL_NOTES,
    ATTACKS,
    MARKS,
    TRUSTED_HOST,
    call,
    obey,
    write_hostile_web,
)
from tests.methods.evograph.hyper_corpus import write_hyper_corpus

PNG = b"\x89PNG\r\n\x1a\n"
MARK = re.compile(
    r"</?(?:tool_call|tool_response|think|answer|script)>|<\|im_|[\u200b-\u200f\u202a-\u202e\U000e0000-\U000e007f]"
)
"""What no result that is shown to a model contains."""
PLAIN_LIE = ATTACKS["a plain lie"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacks")
    (folder / "shown.png").write_bytes(PNG)
    return write_hyper_corpus(folder / "corpus", ALL_NOTES), write_hostile_web(folder / "web.jsonl")


@contextmanager
def attacked(corpus, web, commit):
    """Yield a function that plays an attack on a corpus and returns the trace of the question."""
    with ScriptedServer(obey) as server:
        settings = {
            "ask.method": "evograph",
            "rank.embeddings": "off",
            "llm.model": f"{server.url}#m",
            "llm.reask": 0,
            "evograph.web": f"replay:{web}",
            "evograph.commit": commit,
            "evograph.results": 25,
            "evograph.domains": TRUSTED_HOST,
        }
        with open_resources(corpus, settings=resolve(settings)) as resources:

            def play(attack):
                images = (str(web.with_name("shown.png")),) if attack.where == "image" else ()
                answer = ask(Question(attack.question, id=attack.name, images=images), resources=resources)
                assert answer.status in ("no_answer", "answered"), answer.reason
                return answer.trace

            yield play
        assert not server.errors, server.errors


def outcomes(trace):
    """Return what became of each proposed edit: the rule of a gate, accepted, or disputed."""
    found = {}
    for event in trace:
        if isinstance(event, EditDecided) and event.state == "rejected":
            found[event.proposal] = event.rule
        elif isinstance(event, EditDecided) and event.state == "overlay":
            found[event.proposal], last = "accepted", event.proposal
        elif isinstance(event, Seen) and event.text.startswith("Both stand"):
            found[last] = "disputed"
    return tuple(found[number] for number in sorted(found))


def states(trace):
    return {event.state for event in trace if isinstance(event, EditDecided)} - {"overlay", "rejected"}


@pytest.fixture(scope="module")
def by_default(written):
    corpus, web = written
    with Corpus.open(corpus) as before, attacked(corpus, web, "proposed") as play:
        yield play, before.fingerprint, before.database.seq


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_is_committed_by_default(by_default, written, attack):
    play, fingerprint, seq = by_default
    trace = play(attack)
    assert outcomes(trace) == attack.outcomes
    assert states(trace) == ({"proposed"} if attack.passes_gates else set())
    with Corpus.open(written[0]) as corpus:
        assert (corpus.fingerprint, corpus.database.seq) == (fingerprint, seq)
    shown = [line for event in trace if isinstance(event, Seen) for line in event.text.splitlines()]
    assert not [line for line in shown if line.startswith('{"number"') and MARK.search(line)]


@pytest.fixture(scope="module")
def obeyed(written, tmp_path_factory):
    """A corpus on which attacks that pass the gates were played with commit=auto, and the states of their edits."""
    corpus = shutil.copytree(written[0], tmp_path_factory.mktemp("auto") / "corpus")
    with attacked(corpus, written[1], "auto") as play:
        return corpus, {attack.name: states(play(attack)) for attack in ATTACKS.values() if attack.passes_gates}


def test_committed_edits_hide_nothing_that_is_trusted(obeyed):
    corpus, states_of = obeyed
    for each in ATTACKS.values():
        if each.is_document and each.passes_gates and "insert" not in each.does[0]:
            assert states_of[each.name] == {"proposed"}, each.name
    with Corpus.open(corpus) as opened:
        overlay = Overlay(opened, agent="nobody")
        trusts = {record.segment: overlay.trust_of(record.iri) for record in opened.reader.hyperedges()}
    facts = {note.segment for note in ALL_NOTES}
    assert facts <= trusts.keys() and {trusts[fact] for fact in facts} == {"corpus"}
    from_web = {text for each in ATTACKS.values() if not each.is_document for text in committed(each)} - facts
    assert from_web <= trusts.keys() and {trusts[text] for text in from_web} == {"web"}


def committed(attack):
    """Return the texts of an attack that the graph contains if edits are committed at once."""
    deeds = [deed for deed, outcome in zip(attack.does, attack.outcomes) if outcome in ("accepted", "disputed")]
    return [safe_text(deed.get("content") or deed["insert"]) for deed in deeds if "insert" in deed or "update" in deed]


LIES = [
    text for each in ATTACKS.values() if "page" in str(each.does) for text in committed(each) if "lighthouse" in text
]


@pytest.mark.parametrize("lie", LIES)
def test_a_trusted_text_comes_before_what_contradicts_it(run, obeyed, lie):
    asked = run(call("graph_search", query=lie), "<answer>unknown</answer>", folder=obeyed[0])
    shown = shown_results(asked.requests[-1])
    (place,) = [place for place, each in enumerate(shown) if each["text"] == lie]
    (fact,) = [place for place, each in enumerate(shown) if each["text"] == MARKS["light"]]
    assert fact < place and shown[place]["trust"] == "web" and shown[fact]["trust"] == "corpus"
    assert shown[fact]["number"] in shown[place]["contradicts"]


def texts_and_graph(folder):
    """Return the texts of the live hyperedges, and a hash of the triples about hyperedges and facts."""
    with Corpus.open(folder) as corpus, open_graph(folder) as graph:
        views = [iri for view in ("hyper", "facts") for iri in corpus.views[view]]
        return {record.segment for record in corpus.reader.hyperedges()}, graph.store.fingerprint_of(views)


def test_undoing_a_source_removes_a_plain_lie(written, kgqa, tmp_path):
    corpus = shutil.copytree(written[0], tmp_path / "corpus")
    before = texts_and_graph(corpus)
    with attacked(corpus, written[1], "auto") as play:
        assert states(play(PLAIN_LIE)) == {"committed"}
    texts, graph = texts_and_graph(corpus)
    assert texts == before[0] | {PLAIN_LIE.text} and graph != before[1]
    assert kgqa("edits", "undo", corpus, "--source", PLAIN_LIE.address).returncode == 0
    assert texts_and_graph(corpus) == before
