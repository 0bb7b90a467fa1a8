"""Example questions for the page."""

from __future__ import annotations

import json
from importlib.resources import files

DEMO_EXAMPLES = ("demo-001", "demo-002", "demo-004", "demo-006", "demo-012", "demo-020")
"""Ids of questions about the demo graph."""


def demo_examples() -> list[str]:
    """Return questions about the demo graph."""
    lines = files("kgqa.demo").joinpath("questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = {each["id"]: str(each["question"]) for each in map(json.loads, lines)}
    return [questions[id] for id in DEMO_EXAMPLES if id in questions]
