"""A question whose first hop is in Freebase, and whose second is in a document beside it."""

from __future__ import annotations

import gzip
import json

import pytest

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


def test_answered_by_paths(folder):
    answer = asked(folder)
    assert [each["name"] for each in answer["answers"]] == [CARETAKER] and answer["grounding"] == "graph"
    assert "sports.sports_team.arena_stadium" in answer["sparql"] and answer["query_class"] in ("exact", "superset")
