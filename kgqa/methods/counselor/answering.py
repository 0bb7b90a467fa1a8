"""Graph Counselor: the answer to a question from its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.methods.acting.declarations import CounselorSettings
from kgqa.methods.counselor.trials import Trial, Trials
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import within_budget
from kgqa.model import Answer, Named, Question, Value
from kgqa.text.words import clean, normalise
from kgqa.trace.trace import BudgetExhausted, Trace

METHOD = "counselor"
NO_ANSWER = "No trial ended with an answer."
REJECTED = "This answer is not accepted: the language model that judged it said no."
UNREAD = "This answer is not accepted: the verdict on it could not be read."
UNSEEN = "This answer is not accepted: parts of it were not found in the graph."
NOT_JUDGED = "This answer was not judged, because the budget was used up."


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by Graph Counselor; arguments and errors as in `top.answer`. Topics are ignored."""
    empty = Answer(question, "no_answer", method=METHOD)
    settings = resources.settings
    trials = None
    try:
        with within_budget(trace):
            trials = Trials(empty, resources, trace)
            trials.run()
    except BudgetExhausted as error:
        spent = replace(empty, status="budget_exhausted", reason=error.reason)
        found = _best(trials.trials) if trials is not None else None
        if found is None or found.answer is None or found.answer.grounding != "graph":
            return spent
        result = _with_text(found, _why_not(found) if found.verdict else NOT_JUDGED)
        return replace(result, status=spent.status, reason=spent.reason)
    last = trials.trials[-1]
    if last.verdict == "yes":
        return _with_text(last)
    published = settings.of(CounselorSettings).reading == "published"
    best = last if published else _best(trials.trials)
    if best is None or best.answer is None:
        return replace(empty, reason=" ".join([NO_ANSWER, *([last.ended] if last.ended else [])]))
    why = _why_not(best)
    if settings.ask.on_exhausted == "none" and not published:
        return replace(empty, reason=why)
    return _with_text(best, why)


def _best(trials: Sequence[Trial]) -> Trial | None:
    """Return the latest trial with a grounded answer, else the latest with an answer."""
    answered = [trial for trial in reversed(trials) if trial.answer is not None]
    grounded = (trial for trial in answered if trial.answer is not None and trial.answer.grounding == "graph")
    return next(grounded, next(iter(answered), None))


def _why_not(trial: Trial) -> str:
    if trial.ended:
        return UNSEEN
    return {"unparsed": UNREAD, "": NOT_JUDGED}.get(trial.verdict, REJECTED)


def _with_text(trial: Trial, why_not: str = "") -> Answer:
    """Return the answer of a trial, with the text of `Finish` if it says more than the names of the answers."""
    found = trial.answer
    assert found is not None
    names = normalise(" ".join(dict.fromkeys(each.name for each in found.answers)))  # a date may stand there twice
    response = "" if normalise(trial.text) == names else clean(trial.text)
    if why_not:
        return replace(found, response=response, accepted=False, notes=(*found.notes, why_not))
    return replace(found, response=response)
