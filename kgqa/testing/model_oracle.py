"""A simulated language model that knows the right paths and errs with a known probability.

The model reads only the text of the prompt, and looks up the question in a table of gold paths in words. With a
scripted server that calls the model, a test covers a whole run: prompts, HTTP, replies, parsing and tournaments. Equal
prompts get equal replies.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WORST = 99
SAMPLES = " = "
"""Stands between a path and some entities at its end."""
_ARROW = re.compile(r" (?=(?:->|<-) )")
_AND = re.compile(r" AND (?:in the same record |at hop \d+ )?(.*?)(?=$| AND )")
_NUMBERED_PATH = re.compile(r"^Path \d+: (.*)$", re.MULTILINE)
_NONE_FITS = ("NEITHER", "[] if none is useful", "reply None")
"""What a prompt says if the reply may be that no candidate is useful."""
_ANSWERED = '{"answer": ['
"""What a prompt says if the reply may be that entities answer the question."""
_PARTS = re.compile(r"; | = ")
_LISTED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Gold:
    """The right paths (gold paths) and answers of one question.

    Attributes:
        solutions: sets of paths, worded as in the prompts (`[E1] -> location country -> country capital`). The paths in
            a set together lead to exactly the answers.
        nodes: names of the entities on gold paths.
        answers: names of the entities at the ends of gold paths.
        relations: ids and words of the relations on gold paths, for prompts that show single relations.
        verdicts: map from a solution's path to the conditions and the operation that the judge has to give with it.
    """

    solutions: tuple[frozenset[str], ...] = ()
    nodes: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    relations: frozenset[str] = frozenset()
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def rank(self, text: str) -> int:
        """Return how many hops and joins are missing until a path is a solution; `WORST` if no solution contains it."""
        joins = frozenset(_AND.findall(text))
        main = _AND.sub("", text)
        best = WORST
        for solution in self.solutions:
            if main in solution and {main, *joins} == solution:
                return 0
            if joins:
                # a path with an additional condition still leads to a right answer
                best = min(best, 1 if {main, *joins} >= solution else WORST)
                continue
            for path in solution:
                if path == main or path.startswith((f"{main} -> ", f"{main} <- ")):
                    best = min(best, len(_ARROW.split(path)) - len(_ARROW.split(main)) + (len(solution) > 1))
        return best


@dataclass
class ModelOracle:
    """Replies for `ScriptedServer`.

    Args:
        table: map from each question, worded as in the prompt, to its gold; a single entry is used for all questions.
        p: probability that the better of two candidates is preferred, 0.5 to 1.
    """

    table: Mapping[str, Gold] = field(default_factory=dict)
    p: float = 1.0
    seed: int = 0

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        asked = next(m["content"] for m in messages if m["role"] == "user")
        rules = "".join(m["content"] for m in messages if m["role"] == "system")
        text = "\n".join(m["content"] for m in messages)
        digest = hashlib.blake2b(f"{self.seed}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        chance = random.Random(digest)
        fields = dict(re.findall(r"^([A-Z][A-Za-z ]*): ?(.*)$", asked, re.MULTILINE))
        fields |= {form: form for form in (*_NONE_FITS, _ANSWERED) if form in rules}
        gold = self._gold(fields.get("Question", ""))
        for label, reply in self._kinds().items():
            if label in fields:
                return reply(gold, asked, fields, chance)
        return "I do not know what is asked."

    def _gold(self, question: str) -> Gold:
        if len(self.table) == 1:
            return next(iter(self.table.values()))
        return self.table.get(question, Gold())

    def _kinds(self) -> dict[str, Callable[[Gold, str, dict[str, str], random.Random], str]]:
        """Map each label of a prompt to the function that replies; each label occurs in only one kind of prompt."""
        return {
            "Verdict": self._judge,
            "Candidate A": self._compare,
            "Relevant": self._relevant,
            "Answer found": self._accept,
            "Scores": self._score,
            "Selected": self._select,
            "Relations": self._relations,
            "Clauses": self._clauses,
            "Entities": self._entities,
            "Triples": self._sufficient,
            "Answers": self._answer,
            "Question": self._recall,
        }

    @staticmethod
    def _whole(known: str, rest: str) -> str:
        return rest if known == "(nothing)" else known if rest == "(the same)" else f"{known} {rest}"

    def _right(self, chance: random.Random) -> bool:
        return chance.random() < self.p

    def _none(self, fields: dict[str, str], first: int, second: int, chance: random.Random) -> bool:
        """Return whether to reply that none of two candidates is useful."""
        return "NEITHER" in fields and first == second == WORST and self._right(chance)

    def _compare(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        first, second = (
            gold.rank(self._whole(fields["Known"], fields[name])) for name in ("Candidate A", "Candidate B")
        )
        if self._none(fields, first, second, chance):
            return "[NEITHER]"
        if first == second:
            return f"[{chance.choice('AB')}]"
        return "[A]" if (first < second) == self._right(chance) else "[B]"

    def _relevant(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        shorter, longer = gold.rank(fields["Known"]), gold.rank(self._whole(fields["Known"], fields["Candidate"]))
        if self._none(fields, shorter, longer, chance):
            return "[NEITHER]"
        if shorter == longer:
            return chance.choice(("[RELEVANT]", "[NOT RELEVANT]"))
        return "[RELEVANT]" if (longer < shorter) == self._right(chance) else "[NOT RELEVANT]"

    def _accept(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        path = fields["Path"]
        right = gold.rank(path) == 0 or (gold.rank(path) == 1 and " AND " in path)
        return "[YES]" if right == self._right(chance) else "[NO]"

    def _judge(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        ranks = []
        for path in _NUMBERED_PATH.findall(asked):
            rank = gold.rank(path)
            ranks.append(0 if rank == 1 and " AND " in path else rank)
        best = min(range(len(ranks)), key=lambda number: ranks[number])
        if not self._right(chance):
            best = chance.randrange(len(ranks))
            return json.dumps({"path": best + 1, "verdict": chance.choice(("complete", "missing"))})
        if ranks[best] == WORST:
            return json.dumps({"path": None, "verdict": "wrong"})
        paths = _NUMBERED_PATH.findall(asked)
        demanded = gold.verdicts.get(_AND.sub("", paths[best]), {}) if ranks[best] == 0 else {}
        return json.dumps({"path": best + 1, "verdict": "complete" if ranks[best] == 0 else "missing", **demanded})

    def _select(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        found = re.search(r"^Select at most (\d+)\.$", asked, re.MULTILINE)
        wanted = int(found[1]) if found else 1
        ranks = {}
        answers = []
        for path, number, name in _listed(asked):
            if path:  # the lines below a path list the entities at its end
                rank = gold.rank(path)
                ranks[number] = WORST if rank == WORST else 0 if name in gold.nodes else 1
                answers += [number] if rank == 0 and name in gold.answers else []
            else:
                ranks[number] = gold.rank(name.split(SAMPLES)[0])
        if answers and _ANSWERED in fields and self._right(chance):
            return json.dumps({"answer": answers})
        if any(form in fields for form in _NONE_FITS):
            ranks = {n: rank for n, rank in ranks.items() if rank < WORST or not self._right(chance)}
        return json.dumps(self._picked(ranks, wanted, chance))

    def _picked(self, ranks: dict[int, int], wanted: int, chance: random.Random) -> list[int]:
        """Draw numbers from a list one by one; the better of two numbers is drawn first with probability `p`."""
        picked: list[int] = []
        while ranks and len(picked) < wanted:
            places = {rank: place for place, rank in enumerate(sorted(set(ranks.values())))}
            weights = [(1 / self.p - 1) ** places[rank] for rank in ranks.values()]
            drawn = chance.choices(list(ranks), weights)[0]
            picked.append(drawn)
            del ranks[drawn]
        return picked

    def _score(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        scores = []
        for _, text in _LISTED.findall(asked):
            true = 1 / (1 + gold.rank(text.split(" (leads to: ")[0].split(SAMPLES)[0]))
            scores.append(round(true if self._right(chance) else chance.random(), 3))
        return json.dumps({"scores": scores})

    def _answer(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        if not _LISTED.search(asked):
            return self._recall(gold, asked, fields, chance)
        found: list[int] = []
        others: list[int] = []
        for path, number, name in _listed(asked):
            right = gold.rank(path) == 0 or (name in gold.answers and gold.rank(path) < WORST)
            (found if right else others).append(number)
        if found and self._right(chance):
            return json.dumps({"answers": found})
        return json.dumps({"answers": others[:1] or list(gold.answers)[:1]})

    def _recall(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        return json.dumps({"answers": list(gold.answers) if self._right(chance) else ["something else"]})

    def _clauses(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        # assign the whole question to each entity as its clause
        return json.dumps({"clauses": dict.fromkeys(fields["Entities"].split(", "), fields["Question"])})

    def _relations(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        hops = {part[3:] for solution in gold.solutions for path in solution for part in _ARROW.split(path)[1:]}
        names = fields["Relations"].split("; ")
        lengths: dict[str, int] = {}
        for path in (path for solution in gold.solutions for path in solution):
            for hop in (hops_of := _ARROW.split(path)[1:]):
                name = hop[3:].split(": ")[0]
                lengths[name] = min(len(hops_of), lengths.get(name, WORST))
        right = [name for name in names if name.removesuffix(" (backwards)") in (gold.relations or hops)]
        if not right and "reply None" in fields and self._right(chance):
            return "None"
        right.sort(key=lambda name: lengths.get(name.removesuffix(" (backwards)"), WORST))
        chosen = right if right and self._right(chance) else chance.sample(names, min(3, len(names)))
        share = round(1 / len(chosen), 2)
        return "\n".join(f"{n}. {{{name} (Score: {share})}}: it is." for n, name in enumerate(chosen[:3], 1))

    def _entities(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        names = fields["Entities"].split("; ")
        right = [name in gold.nodes or name in gold.answers for name in names]
        if not any(right) or not self._right(chance):
            right = [chance.random() < 0.5 for _ in names]
        share = round(1 / (sum(right) or 1), 2)
        return "Score: " + ", ".join(str(share if good else 0.0) for good in right)

    def _sufficient(self, gold: Gold, asked: str, fields: dict[str, str], chance: random.Random) -> str:
        seen = {part for line in asked.split("Triples:", 1)[1].splitlines() for part in _PARTS.split(line)}
        answers = [name for name in gold.answers if name in seen]
        if answers and self._right(chance):
            return f"{{Yes}}. It is {{{'; '.join(answers)}}}."
        return "{No}. It is not among the triples; I would say {nobody}."


def _listed(asked: str) -> Iterator[tuple[str, int, str]]:
    """Yield number and text of each line of a list, after the path above the line (empty if there is none)."""
    path = ""
    for line in asked.splitlines():
        if line.startswith("Path: "):
            path = line.removeprefix("Path: ")
        elif item := _LISTED.match(line):
            yield path, int(item[1]), item[2]
