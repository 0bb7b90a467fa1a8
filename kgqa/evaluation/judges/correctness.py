"""Verdicts of a language model on whether responses are right."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.evaluation.judges.responses import MAX_SHOWN, NO_RESPONSE, JudgedResponse
from kgqa.llm.model_chooser import ask_and_read
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import read_verdict
from kgqa.llm.replies.json_values import Reading


def judge_correct(
    responses: Sequence[JudgedResponse], *, models: QuestionModels, prompts: Prompts, reask: int = 1
) -> list[bool | None]:
    """Ask a language model whether each response is right.

    Returns:
        A verdict per response; None if the reply is unreadable or the response has no gold answers.

    Raises:
        BudgetExhausted, ModelUnavailable: see `QuestionModels.complete`.
    """
    indices = [index for index, each in enumerate(responses) if each.gold]
    asked = [
        prompts.prompt(
            "judge/correct",
            "judge",
            choices=("YES", "NO"),
            question=responses[index].question,
            answers=list(responses[index].gold[:MAX_SHOWN]),
            response=responses[index].response.strip() or NO_RESPONSE,
        )
        for index in indices
    ]
    verdicts = ask_and_read(models, prompts, asked, [_read_yes] * len(asked), reask=reask) if asked else []
    found = dict(zip(indices, verdicts))
    return [found.get(index) for index in range(len(responses))]


def _read_yes(text: str) -> Reading[bool]:
    verdict = read_verdict(text)
    if verdict == "unparsed":
        return Reading(None, problem="The reply is neither YES nor NO; give one of the two and nothing else.")
    return Reading(verdict == "yes")
