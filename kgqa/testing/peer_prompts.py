"""Parses prompts of Think-on-Graph (Sun et al. 2024) and Plan-on-Graph.

Both programs send one message: instructions, examples, then the question after `Q:` and its fields. Each field follows
a label at the start of a line (`Topic Entity:`, `Relations:`, `Knowledge Triplets:`). The labels and the requested
reply format show which kind of prompt it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "subobjectives", "relation scores", "relation list", "entity scores", "entity list", "memory", "more entities",
    "sufficient", "sufficient json", "answer", "answer json",
]  # fmt: skip

_QUESTION = re.compile(r"^[ \t]*Q[ \t]*:[ \t]*", re.MULTILINE)
_LABEL = re.compile(
    r"^[ \t]*(topic entity|relations?|candidate entities|entities to be retrieved|entit(?:i)?es|knowledge tripl\w+"
    r"|tripl\w+|sub-?objectives?|memory|score|output|a)[ \t]*:[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
_NAMES = {"relation": "via", "entites": "entities", "candidate entities": "entities"}
_CUE_AT_END = re.compile(r"(?:A|\bOutput|\bScore)[ \t]*:\s*\Z")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")


@dataclass(frozen=True)
class PeerPrompt:
    """A parsed prompt of Think-on-Graph or Plan-on-Graph.

    Attributes:
        question: the question, worded as in the prompt.
        fields: the labelled fields after the question: `relations`, `entities`, `triples`, `knowledge`, `memory`,
            `subobjectives`.
    """

    kind: Kind
    question: str
    fields: dict[str, str]

    @property
    def candidates(self) -> list[str]:
        """The relations or entities to choose from, in order."""
        if self.kind.startswith("relation"):
            return listed(self.fields["relations"])
        if "entities" in self.fields:
            return listed(self.fields["entities"])
        # each relation has a line, with its entities in brackets
        lists = _BRACKETS.findall(self.fields.get("triples", ""))
        return list(dict.fromkeys(name for text in lists for name in listed(text)))

    @property
    def evidence(self) -> str:
        """The parts of the prompt that can contain the answer."""
        return "\n".join(self.fields.get(name, "") for name in ("knowledge", "memory"))


def read_peer_prompt(text: str, questions: Iterable[str] = ()) -> PeerPrompt | None:
    """Parse a prompt; return None for a prompt without `Q:`, because such a prompt has a different format.

    The question of the prompt is found in this order:

    1. the last data set question that follows a `Q:`
    2. if there is none, the last data set question anywhere in the prompt
    3. if there is none, the text after the last `Q:`

    Args:
        questions: the questions of the data set.
    """
    marks = list(_QUESTION.finditer(text))
    if not marks:
        return None
    start, end = _asked(text, marks[-1].end(), [question for question in questions if question])
    instructions, rest = text[:start], _CUE_AT_END.sub("", text[end:])
    fields = _fields(rest)
    if text.rstrip().endswith("Score:"):
        fields.setdefault("score", "")
    return PeerPrompt(_kind(instructions, fields), text[start:end], fields)


def listed(text: str) -> list[str]:
    """Split a Python or JSON list, or a list with semicolons (or, if it has none, commas) between its items."""
    text = text.strip().removesuffix(".")
    if text.startswith("["):
        try:
            return [str(item) for item in ast.literal_eval(text)]
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            text = text.strip("[]")
    parts = text.split(";") if ";" in text else text.split(",")
    return [item for part in parts if (item := part.strip().strip("'\""))]


def _asked(text: str, last: int, questions: list[str]) -> tuple[int, int]:
    """Return the start and end of the question in the text."""
    found = [(m.start(), m.end()) for q in questions for m in re.finditer(re.escape(q), text, re.IGNORECASE)]
    marked = [place for place in found if _QUESTION.search(text[: place[0]].rpartition("\n")[2])]
    if place := max(marked or found, default=None):
        return place
    line = text[last:].partition("\n")[0]
    return last, last + len(line.rstrip())


def _fields(text: str) -> dict[str, str]:
    labels = list(_LABEL.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    found = {}
    for label, end in zip(labels, ends):
        name = " ".join(label[1].lower().split())
        name = "knowledge" if name.startswith("knowledge") else "triples" if name.startswith("tripl") else name
        name = "subobjectives" if name.startswith("sub") else _NAMES.get(name, name)
        found[name] = text[label.end() : end].strip()
    return found


def _kind(instructions: str, fields: dict[str, str]) -> Kind:
    """Return the kind of a prompt, recognised by its labels and the reply format in its instructions."""

    def shows(pattern: str) -> bool:
        return re.search(pattern, instructions, re.IGNORECASE) is not None

    scores = "score" in fields or shows(r"\bscore\s*:")
    if "relations" in fields:
        return "relation scores" if scores else "relation list"
    if shows(r"[\"']Add[\"']"):
        return "more entities"
    if "entities" in fields:
        return "entity scores" if scores else "entity list"
    if "triples" in fields:
        return "entity list"
    if shows(r"[\"']Sufficient[\"']"):
        return "sufficient json"
    if "knowledge" in fields:
        if "subobjectives" in fields:
            return "memory"
        return "sufficient" if shows(r"\byes or no\b|\{yes\}") else "answer"
    if shows(r"sub-?objective"):
        return "subobjectives"
    return "answer json" if shows(r"[\"']Answer[\"']") else "answer"
