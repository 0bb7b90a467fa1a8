"""A simulated language model for comparing kgqa with Think-on-Graph (Sun et al. 2024) and Plan-on-Graph.

Each decision (relations, entities, sufficiency) is right with the same probability for all programs. By default, the
model remembers no answers, so that right answers come from the graph.

Both programs send one message: instructions, examples, then the question after `Q:` and its fields. Each field follows
a label at the start of a line (`Topic Entity:`, `Relations:`, `Knowledge Triplets:`). The labels and the requested
reply format show which kind of prompt it is.
"""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kgqa.testing.model_oracle import Gold, ModelOracle

Kind = Literal[
    "subobjectives", "relation scores", "relation list", "entity scores", "entity list", "memory", "more entities",
    "sufficient", "sufficient json", "answer", "answer json",
]  # fmt: skip
MOST_RELATIONS = 3
"""Maximum number of relations that the model selects; the programs' prompts ask for the same number."""
UNKNOWN = "nobody"
LISTED = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)
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


@dataclass
class PeerOracle(ModelOracle):
    """Replies for `ScriptedServer`, in the format of each program.

    Unlike in `ModelOracle`, `p` is the probability that a whole reply is right, even if the reply is a list. Otherwise,
    kgqa would get more wrong replies than the other programs, because it asks for longer lists.

    Args:
        memory: probability that the model knows the answers if the prompt contains no evidence.
    """

    memory: float = 0.0

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        asked = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
        prompt = read_peer_prompt(asked, self.table)
        if prompt is None:
            return super().__call__(messages)
        text = "\n".join(m["content"] for m in messages)
        digest = hashlib.blake2b(f"{self.seed}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self._forms()[prompt.kind](self._gold_of(prompt), prompt, random.Random(digest))

    def _gold_of(self, prompt: PeerPrompt) -> Gold:
        by_text = {question.casefold(): gold for question, gold in self.table.items()}
        return by_text.get(prompt.question.casefold()) or self._gold(prompt.question)

    def _forms(self) -> dict[str, Callable[[Gold, PeerPrompt, random.Random], str]]:
        return {
            "subobjectives": lambda gold, prompt, chance: json.dumps([f"Find out: {prompt.question}"]),
            "relation scores": self._relation_scores,
            "relation list": lambda *asked: json.dumps(self._relations_chosen(*asked)),
            "entity scores": self._entity_scores,
            "entity list": self._entity_list,
            "memory": self._memory,
            "more entities": self._more_entities,
            "sufficient": lambda *asked: self._in_braces(*asked, verdict=True),
            "sufficient json": lambda *asked: self._in_json(*asked, key="Sufficient"),
            "answer": lambda *asked: self._in_braces(*asked, verdict=False),
            "answer json": lambda *asked: self._in_json(*asked, key="Known"),
        }

    # ---- decisions ----

    def _relations_chosen(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> list[str]:
        names = prompt.candidates
        right = [name for name in names if name in gold.relations]
        if not right or not self._right(chance):
            right = chance.sample(names, min(MOST_RELATIONS, len(names)))
        return right[:MOST_RELATIONS]

    def _entities_chosen(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> list[bool]:
        right = [name in gold.nodes or name in gold.answers for name in prompt.candidates]
        if not any(right) or not self._right(chance):
            right = [chance.random() < 0.5 for _ in right]
        return right

    def _answers_found(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> list[str]:
        """Return the gold answers that the prompt contains; if the model errs, return none."""
        if not prompt.evidence.strip():
            return list(gold.answers) if chance.random() < self.memory else []
        found = [name for name in gold.answers if stands_in(name, prompt.evidence)]
        return found if self._right(chance) else []

    # ---- reply formats ----

    def _relation_scores(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> str:
        chosen = self._relations_chosen(gold, prompt, chance)
        share = round(1 / (len(chosen) or 1), 2)
        return "\n".join(f"{n}. {{{name} (Score: {share})}}: it leads on." for n, name in enumerate(chosen, 1))

    def _entity_scores(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> str:
        right = self._entities_chosen(gold, prompt, chance)
        share = round(1 / (sum(right) or 1), 2)
        return ", ".join(str(share if good else 0.0) for good in right)

    def _entity_list(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> str:
        right = self._entities_chosen(gold, prompt, chance)
        return json.dumps([name for name, good in zip(prompt.candidates, right) if good], ensure_ascii=False)

    def _memory(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> str:
        known = sorted(name for name in {*gold.nodes, *gold.answers} if stands_in(name, prompt.evidence))
        return json.dumps({"1": "; ".join(known) or "nothing yet"}, ensure_ascii=False)

    def _more_entities(self, gold: Gold, prompt: PeerPrompt, chance: random.Random) -> str:
        ahead = prompt.fields.get("entities to be retrieved", "")
        lost = not any(stands_in(name, ahead) for name in gold.nodes)
        add = lost == self._right(chance)
        return json.dumps({"Add": "Yes" if add else "No", "Reason": "The way on is " + ("lost." if add else "there.")})

    def _in_braces(self, gold: Gold, prompt: PeerPrompt, chance: random.Random, *, verdict: bool) -> str:
        answers = self._answers_found(gold, prompt, chance)
        reply = f"It is {{{'; '.join(answers)}}}." if answers else f"I would say {{{UNKNOWN}}}."
        return f"{{{'Yes' if answers else 'No'}}}. {reply}" if verdict else reply

    def _in_json(self, gold: Gold, prompt: PeerPrompt, chance: random.Random, *, key: str) -> str:
        answers = self._answers_found(gold, prompt, chance)
        found = {key: "Yes" if answers else "No", "Answer": "; ".join(answers) or "null"}
        return json.dumps({"A": found, "R": "By what is known."}, ensure_ascii=False)

    # ---- prompts of kgqa ----

    def _picked(self, ranks: dict[int, int], wanted: int, chance: random.Random) -> list[int]:
        """Pick numbers from a list of any length in one decision."""
        numbers = chance.sample(list(ranks), len(ranks))
        if self._right(chance):
            numbers.sort(key=ranks.__getitem__)
        return numbers[:wanted]

    def _score(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        right = self._right(chance)
        texts = [text.split(" (leads to: ")[0] for text in LISTED.findall(asked)]
        scores = [1 / (1 + gold.rank(text)) if right else chance.random() for text in texts]
        return json.dumps({"scores": [round(score, 3) for score in scores]})

    def _recall(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        return json.dumps({"answers": list(gold.answers) if chance.random() < self.memory else [UNKNOWN]})


def stands_in(name: str, text: str) -> bool:
    """Tell whether a text contains a name as a whole term of a triple, item of a list, or line."""
    whole = rf"(?:^|[,;:\[({{'\"|])\s*{re.escape(name)}\s*(?=$|[,;.\])}}'\"|])"
    return re.search(whole, text, re.MULTILINE) is not None
