"""A scripted agent for ToG-3: gold sub-questions, and sufficient evidence once all gold passages were shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kgqa.testing.agents.shown_prompt import ShownPrompt
from kgqa.testing.agents.text_agents import GoldStep, TextAgent, TextGold, quotes_of

KINDS: Mapping[str, str] = {
    "Check an answer": "reflect",
    "do not yet answer": "evolve",
    "are enough to answer": "sufficient",
    "Clean and extend": "refine",
    "index of names": "keywords",
    "nothing more will be found": "final",
    "the one word Unknown": "plain_answer",
}
"""Words in the rules of each prompt of ToG-3, except `answer` and `turn`."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "answer": ("answer", "response", "support"),
    "evolve": ("missing", "questions"),
    "reflect": ("verdict", "missing", "questions"),
    "sufficient": ("verdict",),
    "turn": ("answer", "response", "support", "verdict", "missing", "questions"),
}
"""The fields of replies; a final answer has those that its rules name."""


def prompt_kind(prompt: ShownPrompt) -> str:
    """Return which of ToG-3's prompts this is: the name of its file."""
    if '"verdict": "YES", "missing"' in prompt.system:
        return "turn"
    return next((kind for words, kind in KINDS.items() if words in prompt.system), "answer")


@dataclass
class Tog3Agent(TextAgent):
    """Answers the prompts of `tog3` from what they show.

    A step is known once its passages are shown; the sub-questions are the gold ones of all steps that are not known,
    with the gold answers of earlier ones. With `facts_only`, a step is known once a fact names its answer, and passages
    are read only to add facts.
    """

    facts_only: bool = False

    def reply(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        """Return the reply to a prompt."""
        kind = prompt_kind(prompt)
        if kind == "keywords":
            return {"keywords": [step.answer for step in gold.steps[:1]]}
        if kind == "refine":
            return self._edits(prompt, gold)
        known = self._complete(prompt, gold)
        if kind in ("reflect", "sufficient"):
            known = known and any(answer in prompt.fields.get("Answer", "") for answer in gold.answers)
        verdict = {
            "verdict": "YES" if known else "NO",
            "missing": "" if known else "A step is missing.",
            "questions": [] if known else list(self._next(prompt, gold)),
        }
        if kind in ("evolve", "reflect", "sufficient"):
            return {name: verdict[name] for name in FIELDS[kind]}
        if kind == "plain_answer":
            return ", ".join(gold.answers) if known else "Unknown"
        support = [
            {"claim": each["claim"], "piece": each["passage"], "quote": each["quote"]}
            for each in quotes_of(prompt, gold.steps)
        ]
        if self.facts_only:
            support = [{"claim": text, "piece": number, "quote": text} for number, text in self._facts(prompt, gold)]
        answer = list(gold.answers) if known else ["Unknown"]
        words = f"The answer is {', '.join(answer)}." if known else "A step is missing."
        found = {"answer": answer, "response": words, "explanation": words, "support": support}
        fields = FIELDS.get(kind) or [name for name in found if f'"{name}": ' in prompt.system]
        return {name: value for name, value in (found | verdict).items() if name in fields}

    def _complete(self, prompt: ShownPrompt, gold: TextGold) -> bool:
        return bool(gold.steps) and all(self._is_known(prompt, step) for step in gold.steps)

    def _is_known(self, prompt: ShownPrompt, step: GoldStep) -> bool:
        if self.facts_only:
            return any(step.answer in text for text in prompt.listed.values())
        return prompt.shows(step.passages)

    def _facts(self, prompt: ShownPrompt, gold: TextGold) -> Iterator[tuple[int, str]]:
        """Yield the number and words of a fact for each step that one names the answer of."""
        for step in gold.steps:
            yield from [(number, text) for number, text in prompt.listed.items() if step.answer in text][:1]

    def _next(self, prompt: ShownPrompt, gold: TextGold) -> Iterator[str]:
        """Yield the gold sub-questions that were not asked yet and whose answers are not known."""
        asked = {gold.step_of(text) for text in prompt.sub_questions.values()}
        for number, step in enumerate(gold.steps, 1):
            if number not in asked and not self._is_known(prompt, step):
                yield gold.grounded(number)

    def _edits(self, prompt: ShownPrompt, gold: TextGold) -> dict[str, Any]:
        """Keep all facts, and add the answer of each step that a passage states."""
        added = []
        for step in gold.steps:
            passage = prompt.passage_with(step.answer)
            if passage is not None and any(prompt.passage_with(text) is passage for text in step.passages):
                quote = passage.quote(step.answer)
                subject = passage.title or quote.split(" ")[0]
                fact = {"subject": subject, "relation": step.question, "object": step.answer}
                added.append({**fact, "passage": passage.number, "quote": quote})
        return {"keep": sorted(prompt.listed), "same": [], "add": added}
