"""Writes the run of the demo that ships with the docs, with the replies of its language model.

    python -m scripts.demo_run            write docs/demo-run/ (after a change of prompts, exploration or ranking)

The model is simulated: `kgqa.testing.model_oracle.ModelOracle` knows the right paths and errs in one of five decisions.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from kgqa import open_graph, open_resources
from kgqa.evaluation import RunPlan, run
from kgqa.evaluation.datasets.questions import read_questions
from kgqa.methods.resources import Resources
from kgqa.model import Entity
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.gold_table import gold_for, view_of
from kgqa.testing.model_oracle import Gold, ModelOracle
from kgqa.testing.server import ScriptedServer
from scripts.demo_graph import DEMO_FOLDER

FOLDER = Path(__file__).parents[1] / "docs" / "demo-run"
MODEL = "simulated-oracle"
SAMPLE = 16
RIGHT = 0.8
"""Probability that the simulated model prefers the better of two candidates."""
SETTINGS = {"rank.embeddings": "off"}


def gold_table(resources: Resources) -> dict[str, Gold]:
    """Return the right paths of every demo question, by the question as the prompts show it."""
    table = {}
    for question in read_questions(DEMO_FOLDER / "questions.jsonl"):
        topics = [Entity(resources.graph.schema.iri(topic)) for topic in question.topics]
        table[view_of(question.text, topics, resources).question] = gold_for(question, resources)
    return table


def write(folder: Path) -> None:
    """Ask the questions in an empty folder, and move the run to `folder` without the paths of this machine."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        settings = {**SETTINGS, "cache.folder": str(scratch / "cache")}
        with open_graph(cache=Cache(scratch / "cache")) as graph:
            table = gold_table(open_resources(graph, settings=resolve(SETTINGS)))
        with ScriptedServer(ModelOracle(table, p=RIGHT), models=[MODEL]) as server:
            settings |= {"llm.model": f"{server.url}#{MODEL}", "llm.replay": str(scratch / "replies.jsonl")}
            run(RunPlan(dataset="demo", sample=SAMPLE, concurrency=1, losses=True), scratch / "run", settings)
            url = server.url
        folder.mkdir(parents=True, exist_ok=True)
        for file in ("run.json", "predictions.jsonl", "metrics.json"):
            text = (scratch / "run" / file).read_text(encoding="utf-8")
            for machine, neutral in ((str(Path.cwd()), "."), (str(scratch), "."), (url, "http://simulated.invalid/v1")):
                text = text.replace(machine, neutral)
            (folder / file).write_text(text, encoding="utf-8")
        shutil.copyfile(scratch / "replies.jsonl", folder / "replies.jsonl")


if __name__ == "__main__":
    write(FOLDER)
    sys.exit(0)
