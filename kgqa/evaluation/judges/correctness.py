"""Verdicts of a language model on whether responses are right."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.evaluation.judges.responses import MAX_SHOWN, NO_RESPONSE, JudgedResponse
from kgqa.llm.asking import ask
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import choice


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
            choice(("YES", "NO")).then("YES".__eq__),
            question=responses[index].question,
            answers=list(responses[index].gold[:MAX_SHOWN]),
            response=responses[index].response.strip() or NO_RESPONSE,
        )
        for index in indices
    ]
    verdicts = ask(models, prompts, asked, reask=reask)
    found = dict(zip(indices, verdicts))
    return [found.get(index) for index in range(len(responses))]
