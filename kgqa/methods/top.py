"""Tournament on Path (Xiang & Wu 2026, chapter 4): one search, which scores decide or a language model.

System 1 and System 2 of the thesis differ in settings (table 4.1); as published, they are methods of their own
(`published.top`). With `explore.shape` "path", the exported query returns exactly the
answers, and no answer can come from a language model's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.methods.resources import Resources
from kgqa.methods.tournament.asked import read_by_rules, read_for_model
from kgqa.methods.tournament.composition import compose
from kgqa.methods.tournament.judge import Judge
from kgqa.methods.tournament.ranking import Ranked, Ranking, with_confidence
from kgqa.methods.tournament.search import PathSearch
from kgqa.model import WEAK, Answer, Candidate, Named, Question, Value
from kgqa.search.conditions.applying import NOT_APPLIED, Wording, apply_conditions
from kgqa.search.conditions.beside import Beside
from kgqa.search.topics import declined
from kgqa.trace.trace import Trace

METHOD = "top"
COMPLETED = 10
"""Most paths per hop that get one more edge at a mediator if a language model compares paths."""


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer a question whose topics are known.

    Args:
        question: The question.
        resources: The resources of the run.
        trace: Records the search and keeps account of the question's budget.
        topics: The topic entities with their names.
        names: Map from a topic to the strings that may name it in the question (labels, aliases, mentions).

    Raises:
        StoreError: The graph failed.
        ModelUnavailable: A language model failed.
    """
    by = answer_by_model if resources.by_model else answer_by_scores
    return by(question, resources, trace, topics, names)


def answer_by_scores(
    question: Question,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer by scores of paths, or by a chooser of another package; arguments and errors as in `answer`."""
    asked = read_by_rules(question, resources, trace, topics, names)
    if asked is None:
        return replace(declined(question, "a negation"), method=METHOD, topics=tuple(topics))
    settings, ranking = resources.settings, Ranking(asked)
    why = "no language model configured" if resources.models is None else "rank.chooser excludes the language model"
    # what the question names may be one hop further than its wording suggests
    announced = max(settings.explore.depth, asked.cues.hops) + asked.kind.may_be_further
    depth = max(settings.explore.depth, min(announced, settings.explore.wording_depth))
    notes = [f"Ranked by {ranking.name}: {why}.", *asked.notes]
    search = PathSearch(ranking, notes, depth=depth, kinds=ranking.scores.uses_kinds)

    def enough() -> bool:
        ranked, stop = search.ranked(), settings.explore.stop
        if search.meets_all_topics(ranked):
            return True
        if stop == "converged":
            return search.converges([each for each, _ in ranked])
        # the path must also have at least as many hops as the question's wording suggests
        far = stop == "accepted" and bool(ranked) and len(ranked[0][0].hops) >= asked.cues.hops
        return (
            far
            and ranking.accepts(*ranked[0])
            and search.accept(ranked[0][0], "its score is high enough", ranked[0][1])
        )

    def found() -> Answer:
        are_answers = asked.cues.asks_topic and any(each.path.steps for each in asked.start)
        ranked: Ranked = [(each, 1.0) for each in asked.start]
        if not are_answers:
            search.explore(enough, search.select)
            ranked = search.ranked()
        search.record_ranked(ranked)
        wording = Wording(asked.text, asked.spans, asked.excluded, asked.cues)
        beside = Beside(asked.graph, resources.encoder)
        ranked, more = apply_conditions(beside, wording, asked.request, asked.entities, ranked, trace)
        search.empty = replace(search.empty, notes=(*notes, *more))
        if asked.unsupported and not ranked:
            return replace(declined(question, asked.unsupported), method=METHOD, topics=search.empty.topics)
        if are_answers and (left := wording.left(ranked[0][0])):
            return replace(search.empty, reason=f"No relation or value was found for “{' '.join(left)}”.")
        read, path = search.answer(ranked, ranking.accepts, ranking.accepted_by)
        if path is None:
            return read
        # a time or an amount that is not applied makes the answer uncertain
        left_out = tuple(f"{NOT_APPLIED.format(each)}: " for each in ("time", "amount"))
        most = WEAK - 0.01 if any(note.startswith(left_out) for note in more) else 1.0
        return with_confidence(read, path, ranked, ranking, most=most)

    return search.within_budget(found)


def answer_by_model(
    question: Question,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer with a language model, which compares paths and judges or composes; as in `answer`."""
    asked = read_for_model(question, resources, trace, topics, names)
    ranking = Ranking(asked)
    search = PathSearch(ranking, [f"Compared by {ranking.name}."], kinds=False, completed=COMPLETED)
    composed, stop = resources.settings.ask.compose == "composed", resources.settings.explore.stop
    judge = Judge(asked) if not composed or stop == "accepted" else None

    def enough() -> bool:
        if stop == "converged":
            return search.converges(search.finalists())
        return judge is not None and judge.judge(search.finalists()) == "complete"

    def select(frontier: Sequence[Candidate]) -> list[Candidate]:
        focus = judge.focus.path if judge and judge.focus else None
        return search.select([each for each in frontier if each.path == focus] or frontier)

    def found() -> Answer:
        search.explore(enough, select)
        if judge is None or (composed and judge.accepted is None):
            return compose(asked, search.empty, search.retained())
        paths = [judge.accepted] if judge.accepted else judge.finish(search.finalists(), search.extend)
        accepted = judge.accepted
        ranked: Ranked = [(each, None) for each in ([accepted] if accepted else paths)]
        search.record_ranked(ranked)
        return search.answer(ranked, lambda each, score: each is accepted, "the language model")[0]

    return search.within_budget(found)
