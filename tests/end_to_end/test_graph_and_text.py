"""A question whose first hop is in Freebase, and whose second is in a document beside it."""

from __future__ import annotations

import gzip
import json

import pytest

from kgqa.testing.agents.text_agents import GoldStep, TextGold
from kgqa.testing.agents.tog3_agent import Tog3Agent
from kgqa.testing.server import ScriptedServer
from tests.cli_runner import run_cli
from tests.conftest import SOAK

OFF = ("--embeddings", "off")
QUESTION = "Who is the caretaker of the arena stadium of the New England Patriots?"
CARETAKER = "Orrin Dale Vetch"
DOCUMENTS = {
    "Gillette Stadium": f"Caretaker: {CARETAKER}\nOpened by: Ann Li Moe\n\n{CARETAKER} has been the caretaker of Gillette Stadium since 2019.",
    "Halden Arena": "Caretaker: Ann Li Moe\nColour: red\n\nAnn Li Moe has been the caretaker of Halden Arena since 2004.",
    "Seals": "Seals rest on sands, far from every stadium.",
}


@pytest.fixture(scope="module")
def folder(data_folder, tmp_path_factory, session_cache):
    """A folder with `corpus`, which is linked to a slice of Freebase."""
    path = tmp_path_factory.mktemp("beside")
    with gzip.open(data_folder / "freebase_fast" / "kg.nt.gz", "rt", encoding="utf-8") as lines:
        kept = [line for line in lines if SOAK or "sports.sports_team" in line or "type.object.name" in line]
    (path / "kg.nt").write_text("".join(kept), encoding="utf-8")
    (path / "docs").mkdir()
    for title, text in DOCUMENTS.items():
        (path / "docs" / f"{title}.md").write_text(f"# {title}\n\n{text}\n")
    environment = {"KGQA_CACHE_FOLDER": str(session_cache)}
    assert run_cli("graph", "load", "kg.nt", "--into", "fb", "--schema", "freebase", cwd=path, **environment)
    command = ("corpus", "build", "docs", "--into", "corpus", "--beside", "fb", "--json", *OFF)
    done = run_cli(*command, cwd=path, **environment)
    assert done.returncode == 0 and json.loads(done.out)["links"] == 1, done.out + done.err
    return path


def asked(folder, *options):
    done = run_cli("ask", QUESTION, "--graph", "corpus", "--json", *OFF, *options, cwd=folder)
    assert done.returncode == 0, done.out + done.err
    return json.loads(done.out)


@pytest.mark.soak
def test_answered_by_paths(folder):
    answer = asked(folder)
    assert [each["name"] for each in answer["answers"]] == [CARETAKER] and answer["grounding"] == "graph"
    assert "sports.sports_team.arena_stadium" in answer["sparql"] and answer["query_class"] in ("exact", "superset")


@pytest.mark.soak
def test_answered_by_tog3(folder):
    """The prompts of tog3 show the path from the team over its stadium to the person in the document."""
    steps = (
        GoldStep("What is the arena stadium of the New England Patriots?", "Gillette Stadium"),
        GoldStep("Who is the caretaker of #1?", CARETAKER, (f"Caretaker: {CARETAKER}",)),
    )
    agent = Tog3Agent({QUESTION: TextGold(steps, (CARETAKER,))}, facts_only=True)
    with ScriptedServer(agent) as server:
        answer = asked(folder, "--method", "tog3", "--llm", f"{server.url}#m", "--trace")
        prompts = [request.messages[1]["content"] for request in server.requests]
        assert not server.errors
    walk = "New England Patriots sports team arena stadium Gillette Stadium; Gillette Stadium caretaker"
    assert walk in prompts[0] and len(prompts) == 2
    assert [each["name"] for each in answer["answers"]] == [CARETAKER] and answer["grounding"] == "graph"
    assert "sports.sports_team.arena_stadium" in answer["sparql"] and answer["query_class"] in ("exact", "restricted")
    assert CARETAKER not in answer["sparql"] and answer["evidence_class"] == "exact" and not answer["defects"]
    cited = [each for each in answer["citations"] if f"Caretaker: {CARETAKER}" in each["quote"]]
    assert cited and all(each["verified"] and each["span"]["source"] == "docs/Gillette Stadium.md" for each in cited)
