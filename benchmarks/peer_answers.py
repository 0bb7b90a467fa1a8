"""Writes question files for other programs, and evaluates the answers of these programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.text.words import normalise

ANSWER_KEYS = ("answers", "answer", "results", "result", "predictions", "prediction")
_BRACES = re.compile(r"\{([^{}]*)\}")
_VERDICTS = {"yes", "no"}


def write_questions(questions: Sequence[GoldQuestion], folder: Path) -> dict[str, str]:
    """Write the questions without answers in two formats, and return the paths of the files.

    The file `questions` has one JSON object per line. `questions_json` is a list with the fields that public programs
    read (`question`, `RawQuestion`, and `topic_entity` from id to name).
    """
    rows = []
    for question in questions:
        names = dict(zip(question.topics, question.topic_names))
        topics = {topic: names.get(topic) or topic for topic in question.topics}
        rows.append({"id": question.id, "question": question.text, "topics": topics})
    lines, listed = folder / "questions.jsonl", folder / "questions.json"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    public = [
        {"ID": row["id"], "question": row["question"], "RawQuestion": row["question"], "topic_entity": row["topics"]}
        for row in rows
    ]
    listed.write_text(json.dumps(public, indent=1))
    return {"questions": str(lines), "questions_json": str(listed)}


def read_answers(file: Path, questions: Sequence[GoldQuestion]) -> dict[str, str]:
    """Read a program's answers: a JSON object with an id or the question per line; a question's last line counts."""
    by_text = {question.text: question.id for question in questions}
    found = {}
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(row, dict):
            continue
        key = next((key for key in ANSWER_KEYS if key in row), None)
        ident = str(row.get("id") or by_text.get(str(row.get("question") or row.get("RawQuestion"))) or "")
        if key and ident:
            found[ident] = answer_text(row[key])
    return found


def answer_text(value: Any) -> str:
    """Return the answer in a reply.

    It is the value of the JSON key `Answer`. Without this key it is the text in braces, except yes and no; without
    such text it is the whole reply.
    """
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            inside = [text for text in _BRACES.findall(value) if text.strip().casefold() not in _VERDICTS]
            return "; ".join(inside) or value
        return value if isinstance(read, str) else answer_text(read)
    if isinstance(value, Mapping):
        inner = value.get("A", value)
        return answer_text(inner.get("Answer", inner.get("answers", ""))) if isinstance(inner, Mapping) else str(inner)
    if isinstance(value, (list, tuple)):
        return "; ".join(answer_text(item) for item in value)
    return "" if value is None else str(value)


def holds_gold(answer: str, question: GoldQuestion) -> bool:
    """Check whether an answer contains a name, alias or id of a gold answer as whole words."""
    gold = (text for each in question.answers for text in (each.name, each.id, *each.aliases))
    said = f" {normalise(answer)} "
    return any(f" {words} " in said for words in map(normalise, gold) if words)
