"""A chooser that asks a language model: one prompt per decision, and one batch of prompts per batch of decisions.

The caller supplies functions that describe a path and the entities at its end in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, TypeVar, cast

import numpy as np

from kgqa.llm.asking import ask
from kgqa.llm.client import TypedPrompt
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import choice
from kgqa.llm.replies.indices import indices
from kgqa.llm.replies.reply import Reply
from kgqa.llm.replies.scores import scores
from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import NEITHER, Acceptance, EntityGroup

T = TypeVar("T")
Elements = tuple[str, ...]
"""A path in words: the topic, then one string per hop."""
Compare = Literal["choice", "mark", "reasons"]
LETTERS = ("A", "B")
RELEVANCE = ("RELEVANT", "NOT RELEVANT")
NO_OPTION = "NEITHER"
SCORES_PER_PROMPT = 5


@dataclass(kw_only=True)
class ModelChooser:
    """A chooser whose decisions are made by a language model.

    Attributes:
        models: The language models of the question.
        prompts: The prompt files.
        elements: Maps a candidate to the words of its path. A prompt for a pair shows the common beginning of both
            paths once, and then the two different endings (diff prompting, thesis section 3.3.2); other prompts show
            whole paths.
        ends: Maps a candidate to the names of some entities at the end of its path, for `accept` and `show_ends`.
        show_ends: Whether prompts that compare or score paths show the entities at their ends.
        samples: Maps a candidate to the names of a few entities at its end, for prompts that do not show `ends`; ""
            for none.
        compare: Form in which the reply is requested; see the setting `llm.compare`.
        reask: How often to repeat a prompt after an unusable reply.
        abstain: Whether the model may reply that no candidate is useful; if not, such a reply is unusable.
        answer: Whether the model may reply that entities answer the question when it selects entities.
    """

    models: QuestionModels
    prompts: Prompts
    elements: Callable[[Candidate], Elements]
    ends: Callable[[Candidate], str]
    show_ends: bool = False
    samples: Callable[[Candidate], str] = lambda candidate: ""
    compare: Compare = "choice"
    reask: int = 1
    abstain: bool = False
    answer: bool = False

    def __post_init__(self) -> None:
        self.name = self.models.name

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        return [each or 0 for each in self._ask([self._pair(question, first, second) for first, second in pairs])]

    def _pair(self, question: str, first: Candidate, second: Candidate) -> TypedPrompt[int]:
        """Return the prompt, whose value is the preference: 1 for `first`, -1 for `second`."""
        one, other = self.elements(first), self.elements(second)
        common = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(one, other)))
        rest, other_rest = one[common:], other[common:]
        reasons = self.compare == "reasons"
        if (rest and other_rest) or not (rest or other_rest):
            # if both endings are empty, the two candidates differ only in the entities at their ends
            values: dict[str, Any] = {
                "a": " ".join(rest) or "(the same)",
                "b": " ".join(other_rest) or "(the same)",
                "ends_a": self._shown_ends(first),
                "ends_b": self._shown_ends(second),
            }
            name, meaning = "top/compare", dict(zip(LETTERS, (1, -1)))
        else:
            longer, shorter = (first, second) if rest else (second, first)
            sign = 1 if rest else -1
            # the model has to know what the shorter path reaches to tell whether the question asks for more
            known_ends = self.ends(shorter) if self.abstain and shorter.path.steps else self._shown_ends(shorter)
            values = {
                "candidate": " ".join(rest or other_rest),
                "ends": self._shown_ends(longer),
                "ends_known": known_ends,
            }
            name, meaning = "top/relevant", dict(zip(RELEVANCE, (sign, -sign)))
        if self.abstain:
            meaning[NO_OPTION] = NEITHER
        values |= {"question": question, "known": " ".join(one[:common]) or "(nothing)", "abstain": self.abstain}
        reply = self._choice(tuple(meaning)).then(meaning.__getitem__)
        return self.prompts.prompt(name, "tournament", reply, reasons=reasons, **values)

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        asked = [
            self.prompts.prompt(
                "top/pick",
                "tournament",
                indices(len(chunk), k),
                candidates=[self._text(each) for each in chunk],
                question=question,
                k=k,
                abstain=self.abstain,
            )
            for chunk in chunks
        ]
        return self._picked(asked)

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int] | None]:
        asked = [
            self.prompts.prompt(
                "top/entities",
                "entity",
                indices(sum(len(group.entities) for group in chunk), k, answering=self.answer),
                question=question,
                groups=[{"path": group.prefix, "entities": list(group.entities)} for group in chunk],
                k=k,
                abstain=self.abstain,
                answer=self.answer,
            )
            for chunk in chunks
        ]
        return self._picked(asked)

    def _picked(self, asked: Sequence[TypedPrompt[list[int]]]) -> list[list[int] | None]:
        """Ask for picks; an empty one is unusable unless the model may abstain."""
        return [pick if pick or self.abstain else None for pick in self._ask(asked)]

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        size = batch_size or SCORES_PER_PROMPT
        batches = [candidates[start : start + size] for start in range(0, len(candidates), size)]
        asked = [
            self.prompts.prompt(
                "top/score",
                "tournament",
                scores(len(batch)),
                question=question,
                candidates=[self._text(each, with_ends=self.show_ends) for each in batch],
            )
            for batch in batches
        ]
        replies = self._ask(asked)
        read = (reply or (None,) * len(batch) for reply, batch in zip(replies, batches))
        return np.array([score for several in read for score in several], dtype=np.float64)  # None becomes NaN

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        """Decide on each batch from its first candidate and the entities at its end."""
        asked = [
            self.prompts.prompt(
                "top/accept",
                "decide",
                self._choice(("YES", "NO")).then(lambda verdict: cast(Acceptance, verdict.lower())),
                question=question,
                path=" ".join(self.elements(batch[0])),
                ends=self.ends(batch[0]) or "nothing",
                reasons=self.compare == "reasons",
            )
            for batch in batches
        ]
        return [verdict or "unparsed" for verdict in self._ask(asked)]

    def _text(self, candidate: Candidate, *, with_ends: bool = False) -> str:
        """Return a path in words, with some of the entities at its end."""
        text, some = " ".join(self.elements(candidate)), "" if with_ends else self.samples(candidate)
        end = self.ends(candidate) if with_ends else ""
        return f"{text} (leads to: {end})" if end else f"{text} = {some}" if some else text

    def _shown_ends(self, candidate: Candidate) -> str:
        return self.ends(candidate) if self.show_ends else self.samples(candidate)

    def _choice(self, options: Sequence[str]) -> Reply[str]:
        return choice(options, enforced=self.compare == "choice")

    def _ask(self, asked: Sequence[TypedPrompt[T]]) -> list[T | None]:
        return ask(self.models, self.prompts, asked, reask=self.reask)
