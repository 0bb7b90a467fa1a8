"""A scripted agent that plays GraphSearch with the right sub-questions (see `kgqa.testing.agents.text_agents`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kgqa.llm.prompts import Prompts
from kgqa.testing.agents.shown_prompt import ShownPrompt
from kgqa.testing.agents.text_agents import GoldStep, TextAgent, TextGold, answer_from, quotes_of

METHOD = "graphsearch"
_ASKED = re.compile(r"(.+?) Answer: (.*)")


@lru_cache(1)
def _names() -> Mapping[str, str]:
    """Return the names of the method's prompts by the first line of their rules."""
    prompts = Prompts()
    names = [name.partition("/")[2] for name in prompts.names() if name.startswith(f"{METHOD}/")]
    examples = {name: prompts.get(f"{METHOD}/{name}").example for name in names}
    rules = {name: prompts.render(f"{METHOD}/{name}", **examples[name])[0].text for name in names}
    return {text.partition("\n")[0]: name for name, text in rules.items()}


def prompt_name(system: str) -> str:
    """Return the name of the prompt of GraphSearch with these rules, such as `step`; "" if it is none of them."""
    return _names().get(system.partition("\n")[0], "")


@dataclass
class GraphSearchAgent(TextAgent):
    """Replies to the prompts of `graphsearch`, ours and those as published.

    Args:
        table: as in `TextAgent`.
        decomposes: whether it cuts a question into its right sub-questions; if not, the question is the only one.
        verdict: the verdict on drafts; empty to accept what contains the right answer.
    """

    decomposes: bool = True
    verdict: str = ""

    def reply(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        """Return the reply to a prompt, which is known by its rules."""
        name = prompt_name(prompt.system)
        return getattr(self, f"_{name}")(prompt, gold)

    # ---- ours ----

    def _decompose(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        steps = gold.steps if self.decomposes else ()
        asked = [_asked(step.question, number) for number, step in enumerate(steps, 1)]
        return {"sub_questions": asked or [_asked(prompt.question, 1)]}

    def _step(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        steps, answers = _gold_of(prompt, gold)
        read = answer_from(prompt, steps, answers)
        return {"answers": read["answers"], "support": [_piece(each) for each in read["support"]]}

    def _draft(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        read = answer_from(prompt, gold.steps, gold.answers)
        claims = [_piece(each) for each in quotes_of(prompt, gold.steps)]
        return {"claims": claims, "answers": read["answers"], "response": read["response"]}

    def _verify(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        right = set(prompt.fields.get("Answer", "").split("; ")) <= set(gold.answers)
        return {"failed": [], "verdict": self.verdict or ("yes" if right else "no")}

    def _expand(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        return {"sub_questions": [_asked(gold.grounded(number), number) for number in _unknown(prompt, gold)]}

    # ---- as published ----

    def _decompose_text(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        steps = [step.question for step in gold.steps] if self.decomposes else []
        return {str(number): text for number, text in enumerate(steps or [prompt.question], 1)}

    def _decompose_graph(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        steps = self._decompose_text(prompt, gold)
        return {number: [[text.replace("#", "Entity#"), "is", f"Entity#{number}"]] for number, text in steps.items()}

    def _ground_text(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        number = next((gold.step_of(text) for text in prompt.sub_questions.values()), 0)
        return {"question": gold.grounded(number) if number else ""}

    def _ground_graph(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        number = self._graph_step(prompt, gold)
        return {"triples": [[gold.grounded(number), "is", f"Entity#{number}"]] if number else []}

    def _refine_text(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        return " ".join(each.quote(text) for each in prompt.passages for text in self._wanted(prompt)) or "Nothing."

    def _refine_graph(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        wanted = self._wanted(prompt)
        return {"facts": [fact for fact in prompt.listed.values() if any(text in fact for text in wanted)]}

    def _answer(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        return {"answers": [text for text in self._wanted(prompt) if text in prompt.user][:1]}

    def _published_draft(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        known = [text for text in gold.answers if text in prompt.user.replace(prompt.question, "")]
        return f"Step by step.\nAnswer: {'; '.join(known) or 'Unknown'}"

    _published_answer = _published_draft

    def _published_verify(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        right = any(f"Answer: {text}" in prompt.user for text in gold.answers)
        return f"This was checked.\n{self.verdict or ('Yes' if right else 'No')}"

    def _published_expand(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        return [gold.grounded(number) for number in range(1, len(gold.steps) + 1)]

    def _wanted(self, prompt: ShownPrompt) -> list[str]:
        """Return the right answer of the prompt's sub-question; these prompts do not name the question."""
        for gold in self.table.values():
            for text in prompt.sub_questions.values():
                number = gold.step_of(text) or self._graph_step(prompt, gold)
                if number:
                    return [gold.steps[number - 1].answer]
        return []

    @staticmethod
    def _graph_step(prompt: ShownPrompt, gold: TextGold) -> int:
        """Return the step of triples such as `Where was Entity#1 born?, is, Entity#2`."""
        for text in prompt.sub_questions.values():
            words = text.partition(", is, ")[0].replace("Entity#", "#")
            if number := gold.step_of(words):
                return number
        return 0


def _gold_of(prompt: ShownPrompt, gold: TextGold) -> tuple[list[GoldStep], tuple[str, ...]]:
    """Return the steps and answers that a prompt asks for: those of a sub-question, or all."""
    numbers = [number for text in prompt.sub_questions.values() if (number := gold.step_of(text))]
    steps = [gold.steps[number - 1] for number in numbers]
    return (steps, tuple(step.answer for step in steps)) if steps else (list(gold.steps), gold.answers)


def _unknown(prompt: ShownPrompt, gold: TextGold) -> Iterator[int]:
    """Yield the numbers of the steps whose sub-question has no answer."""
    for text in prompt.sub_questions.values():
        asked = _ASKED.fullmatch(text)
        if asked and asked[2] == "unknown" and (number := gold.step_of(asked[1])):
            yield number


def _asked(question: str, number: int) -> dict[str, Any]:
    """Return a sub-question of a plan; one of the form `subject >> relation` has a triple."""
    subject, arrow, relation = question.partition(" >> ")
    return {"question": question, "triples": [[subject, relation, f"#{number}"]] if arrow else []}


def _piece(support: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in support.items() if key != "passage"}, "piece": support["passage"]}
