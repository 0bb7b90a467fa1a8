"""A scripted agent that plays GraphSearch with the right sub-questions (see `kgqa.testing.text_agents`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kgqa.testing.text_agents import ShownPrompt, TextAgent, TextGold, answer_from, quotes_of

_ASKED = re.compile(r"(.+?) Answer: (.*)")


@dataclass
class GraphSearchAgent(TextAgent):
    """Replies to the prompts of `graphsearch`.

    Args:
        table: as in `TextAgent`.
        decomposes: whether it cuts a question into its right sub-questions; if not, the question is the only one.
        verdict: the verdict on drafts; empty to accept what contains the right answer.
    """

    decomposes: bool = True
    verdict: str = ""

    def reply(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        """Return the reply to a prompt, which is known by the form that its rules ask for."""
        form = prompt.system
        if '"verdict"' in form:
            return {"failed": [], "verdict": self.verdict or self._judged(prompt, gold)}
        if "Draft of the answer" in prompt.fields:
            return {"sub_questions": list(self._missing(prompt, gold))}
        if '"sub_questions"' in form:
            return {"sub_questions": self._plan(prompt, gold)}
        if '"claims"' in form:
            return self._draft(prompt, gold)
        return self._step(prompt, gold)

    def _plan(self, prompt: ShownPrompt, gold: TextGold) -> list[dict[str, Any]]:
        if not self.decomposes or not gold.steps:
            return [_asked(prompt.question, 1)]
        return [_asked(step.question, number) for number, step in enumerate(gold.steps, 1)]

    def _step(self, prompt: ShownPrompt, gold: TextGold) -> dict[str, Any]:
        steps = [gold.steps[number - 1] for text in prompt.sub_questions.values() if (number := gold.step_of(text))]
        read = answer_from(prompt, steps, [step.answer for step in steps])
        if not steps:
            read = answer_from(prompt, gold.steps, gold.answers)
        return {"answers": read["answers"], "support": [_piece(each) for each in read["support"]]}

    def _draft(self, prompt: ShownPrompt, gold: TextGold) -> dict[str, Any]:
        read = answer_from(prompt, gold.steps, gold.answers)
        claims = [_piece(each) for each in quotes_of(prompt, gold.steps)]
        return {"claims": claims, "answers": read["answers"], "response": read["response"]}

    def _judged(self, prompt: ShownPrompt, gold: TextGold) -> str:
        return "yes" if prompt.fields.get("Answer") in gold.answers else "no"

    def _missing(self, prompt: ShownPrompt, gold: TextGold) -> Iterator[dict[str, Any]]:
        """Yield the sub-questions that are still unknown, with the right answers in place of the references."""
        for text in prompt.sub_questions.values():
            asked = _ASKED.fullmatch(text)
            if asked and asked[2] == "unknown" and (number := gold.step_of(asked[1])):
                yield _asked(gold.grounded(number), number)


def _asked(question: str, number: int) -> dict[str, Any]:
    """Return a sub-question of a plan; one of the form `subject >> relation` has a triple."""
    subject, arrow, relation = question.partition(" >> ")
    return {"question": question, "triples": [[subject, relation, f"#{number}"]] if arrow else []}


def _piece(support: dict[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in support.items() if key != "passage"}, "piece": support["passage"]}
