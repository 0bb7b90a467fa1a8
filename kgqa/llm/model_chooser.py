"""A chooser that asks a language model: one prompt per decision, and one batch of prompts per batch of decisions.

The caller supplies functions that describe a path and the entities at its end in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Literal, TypeVar

import numpy as np

from kgqa.llm.asking import ask
from kgqa.llm.client import TypedPrompt
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import choice
from kgqa.llm.replies.indices import answering, indices
from kgqa.llm.replies.reply import Reply
from kgqa.llm.replies.scores import scores
from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import NEITHER, Acceptance, AnsweringPick, EntityGroup

T = TypeVar("T")
Elements = tuple[str, ...]
"""A path in words: the topic, then one string per hop."""
Compare = Literal["choice", "mark", "reasons"]
LETTERS = ("A", "B")
RELEVANCE = ("RELEVANT", "NOT RELEVANT")
NO_OPTION = "NEITHER"
VERDICTS = ("YES", "NO")
SCORES_PER_PROMPT = 5


class ModelChooser:
    """A chooser whose decisions are made by a language model.

    Args:
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

    def __init__(
        self,
        models: QuestionModels,
        prompts: Prompts,
        *,
        elements: Callable[[Candidate], Elements],
        ends: Callable[[Candidate], str],
        show_ends: bool = False,
        samples: Callable[[Candidate], str] = lambda candidate: "",
        compare: Compare = "choice",
        reask: int = 1,
        abstain: bool = False,
        answer: bool = False,
    ) -> None:
        self.name = models.name
        self._models = models
        self._prompts = prompts
        self._elements = elements
        self._ends = ends
        self._show_ends = show_ends
        self._samples = samples
        self._compare = compare
        self._reask = reask
        self._abstain = abstain
        self._answer = answer

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        return [each or 0 for each in self._ask([self._pair(question, first, second) for first, second in pairs])]

    def _pair(self, question: str, first: Candidate, second: Candidate) -> TypedPrompt[int]:
        """Return the prompt, whose value is the preference: 1 for `first`, -1 for `second`."""
        one, other = self._elements(first), self._elements(second)
        common = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(one, other)))
        rest, other_rest = one[common:], other[common:]
        reasons = self._compare == "reasons"
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
            known_ends = self._ends(shorter) if self._abstain and shorter.path.steps else self._shown_ends(shorter)
            values = {
                "candidate": " ".join(rest or other_rest),
                "ends": self._shown_ends(longer),
                "ends_known": known_ends,
            }
            name, meaning = "top/relevant", dict(zip(RELEVANCE, (sign, -sign)))
        if self._abstain:
            meaning[NO_OPTION] = NEITHER
        values |= {"question": question, "known": " ".join(one[:common]) or "(nothing)", "abstain": self._abstain}
        reply = self._choice(tuple(meaning)).then(meaning.__getitem__)
        return self._prompts.prompt(name, "tournament", reply, reasons=reasons, **values)

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        values: dict[str, Any] = {"question": question, "k": k, "abstain": self._abstain}
        asked = [
            self._prompts.prompt(
                "top/pick", "tournament", indices(len(chunk), k), candidates=self._sampled_texts(chunk), **values
            )
            for chunk in chunks
        ]
        lists = self._ask(asked)
        return self._picked(lists)

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int] | None]:
        def prompt(form: Callable[[int, int], Reply[T]], chunk: Sequence[EntityGroup]) -> TypedPrompt[T]:
            return self._prompts.prompt(
                "top/entities",
                "entity",
                form(sum(len(group.entities) for group in chunk), k),
                question=question,
                groups=[{"path": group.prefix, "entities": list(group.entities)} for group in chunk],
                k=k,
                abstain=self._abstain,
                answer=self._answer,
            )

        if not self._answer:
            lists = self._ask([prompt(indices, chunk) for chunk in chunks])
            return self._picked(lists)
        replies = self._ask([prompt(answering, chunk) for chunk in chunks])
        picked = self._picked([None if reply is None else reply[0] for reply in replies])
        return [
            AnsweringPick(pick) if pick and reply is not None and reply[1] else pick
            for pick, reply in zip(picked, replies)
        ]

    def _picked(self, read: Sequence[tuple[int, ...] | None]) -> list[list[int] | None]:
        """Return picks; an empty one is unusable unless the model may abstain."""
        return [None if each is None or not (each or self._abstain) else list(each) for each in read]

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        size = batch_size or SCORES_PER_PROMPT
        batches = [candidates[start : start + size] for start in range(0, len(candidates), size)]
        asked = [
            self._prompts.prompt(
                "top/score", "tournament", scores(len(batch)), question=question, candidates=self._scored_texts(batch)
            )
            for batch in batches
        ]
        replies = self._ask(asked)
        read = [reply or (None,) * len(batch) for reply, batch in zip(replies, batches)]
        return np.array([score for several in read for score in several], dtype=np.float64)  # None becomes NaN

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        """Decide on each batch from its first candidate and the entities at its end; an empty batch gets "no"."""
        asked = [
            self._prompts.prompt(
                "top/accept",
                "decide",
                self._choice(VERDICTS),
                question=question,
                path=" ".join(self._elements(batch[0])),
                ends=self._ends(batch[0]) or "nothing",
                reasons=self._compare == "reasons",
            )
            for batch in filter(None, batches)
        ]
        replies = self._ask(asked)
        read = iter(replies)
        verdicts: dict[str | None, Acceptance] = {"YES": "yes", "NO": "no", None: "unparsed"}
        return [verdicts[next(read)] if batch else "no" for batch in batches]

    def _scored_texts(self, candidates: Sequence[Candidate]) -> list[str]:
        if not self._show_ends:
            return self._sampled_texts(candidates)
        ends = [self._ends(candidate) for candidate in candidates]
        return [f"{text} (leads to: {end})" if end else text for text, end in zip(self._texts(candidates), ends)]

    def _texts(self, candidates: Sequence[Candidate]) -> list[str]:
        return [" ".join(self._elements(candidate)) for candidate in candidates]

    def _sampled_texts(self, candidates: Sequence[Candidate]) -> list[str]:
        samples = [self._samples(candidate) for candidate in candidates]
        return [f"{text} = {some}" if some else text for text, some in zip(self._texts(candidates), samples)]

    def _shown_ends(self, candidate: Candidate) -> str:
        return self._ends(candidate) if self._show_ends else self._samples(candidate)

    def _choice(self, options: Sequence[str]) -> Reply[str]:
        return choice(options, enforced=self._compare == "choice")

    def _ask(self, asked: Sequence[TypedPrompt[T]]) -> list[T | None]:
        return ask(self._models, self._prompts, asked, reask=self._reask)
