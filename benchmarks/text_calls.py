"""How many calls a question takes by the formulas of the methods over text, with the scripted agents."""

from __future__ import annotations

from kgqa.model import Answer
from kgqa.trace import Drafted, DraftVerified, EvidenceEdited, PiecesKept, Planned, Stopped


def expected_calls(answer: Answer) -> int:
    """Return the number of calls that the rounds, sub-questions and drafts of an answer take."""
    return {"rag": _rag, "tog3": _tog3, "graphsearch": _graphsearch}[answer.method](answer)


def _rag(answer: Answer) -> int:
    return int(any(isinstance(event, PiecesKept) and event.pieces for event in answer.trace))


def _tog3(answer: Answer) -> int:
    """2r + s for an answer that is accepted in round r after s refinements.

    One less where no judgement follows the last answer: in the last round, and where the same answer came twice. One
    more where the search ends early with a final answer. Without evolving sub-questions, nothing is judged before an
    answer has a verified quote.
    """
    (stopped,) = (event for event in answer.trace if isinstance(event, Stopped))
    refined = sum(isinstance(event, EvidenceEdited) for event in answer.trace)
    plans = [event for event in answer.trace if isinstance(event, Planned)]
    calls = 2 * stopped.round + refined
    if {each.text for plan in plans for each in plan.sub_questions} == {answer.question.text}:
        calls -= len(plans)
    if stopped.why in ("the last round", "the same answer with verified quotes again"):
        return calls - 1
    return calls if stopped.why == "the answer was judged sufficient" else calls + 1


def _graphsearch(answer: Answer) -> int:
    """M + 3 for an accepted draft on m sub-questions; 3 + e more for each rejection that asks e more.

    A draft that is rejected because it has no answer, or a claim without a quote, needs no verdict: one less.
    """
    asked = sum(isinstance(event, PiecesKept) and event.step > 0 for event in answer.trace)
    drafts = sum(isinstance(event, Drafted) for event in answer.trace)
    verdicts = [event.verdict for event in answer.trace if isinstance(event, DraftVerified)]
    expansions = sum(isinstance(event, Planned) and event.round > 0 for event in answer.trace)
    expansions += any(isinstance(event, Stopped) and event.why == "no new sub-question" for event in answer.trace)
    return 1 + asked + drafts + verdicts.count("yes") + expansions
