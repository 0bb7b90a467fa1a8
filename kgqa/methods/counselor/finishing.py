"""Turns the text of `Finish` into an answer with a query, if it follows from what was observed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import call_text, read_action_line
from kgqa.llm.replies.answers import is_no_answer
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.methods.counselor.observations import CallResult, CountedNumber, ObservedCall
from kgqa.methods.counselor.seen import Chosen, plain_value
from kgqa.methods.counselor.selection import selections
from kgqa.methods.counselor.sets import SetPath, plain_text, returned
from kgqa.methods.tournament.path_answers import answer_of_entities, answer_of_path
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Value
from kgqa.rank.lexical import terms
from kgqa.text.words import display_name, local_words, normalise
from kgqa.trace import GaveUp
from kgqa.trace.trace import Trace

MAX_TEXT = 20_000
MAX_NAMED = 1000
"""Most values of an answer."""
MOST_READ = 4
"""Most queries that are tried for the values that a language model chose."""
MAX_NUMBER_WORDS = 4
"""From how many words on a text is no number with a unit."""
MAX_PATHS = 10
"""Most paths that lead to some of the values."""
NOT_OBSERVED = "Not found in the graph, but named by the language model: "
GIVEN = "No call found these nodes; the language model gave their ids: "
ONLY_LOOKED_UP = "No path of the graph leads to the answer: it was only looked up by its name."
_NUMBER = re.compile(r"\D{0,2}?(-?[0-9]{1,3}(?:,[0-9]{3})+|-?[0-9]{1,15})(?:\.0+)?(?:\s+[^\W\d]\w{0,30}){0,2}[.\s]*")


def grounded_answer(text: str, functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer | None:
    """Return the answer that the text of `Finish` gives.

    Its grounding is `graph` if all of the text was observed and a query that was run again returns it, else `model`.

    Args:
        text: The text.
        functions: The functions of the question, with what was observed.
        empty: An answer without results, which provides the question, the method and the notes.
        trace: Records the answer.

    Returns:
        The answer; None if the text is empty, or says that there is none.

    Raises:
        StoreError: The graph failed.
        BudgetExhausted: The question's budget is used up.
    """
    text = text[:MAX_TEXT].strip()
    answer = _answer(text, functions, empty, trace) if re.search(r"\w", text) else None
    given = [functions.given[each.value] for each in answer.topics if each.value in functions.given] if answer else []
    if answer is None or not given:
        return answer
    return replace(answer, notes=(*answer.notes, f"{GIVEN}{', '.join(map(display_name, given))}."))


def _answer(text: str, functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer | None:
    repeated = _repeated(text, functions.observed)
    if repeated is not None and repeated.values:
        every = functions.graph.named(repeated.every[:MAX_NAMED])
        return _of_values(every, functions, empty, trace)
    if repeated is not None and len(repeated.numbers) == 1:
        numbers: Sequence[CountedNumber] = repeated.numbers
    else:
        numbers = _counted(text, functions.observed, empty.question.text)
    counting = ((number, candidate) for number in numbers for candidate in number.candidates)
    for number, candidate in islice(counting, MOST_READ):
        if answer := _exact(functions.graph, candidate, {str(number.number)}, empty, trace):
            return answer
    chosen = functions.seen.chosen(text)
    if chosen.values and not chosen.others:
        return _of_values(chosen.values[:MAX_NAMED], functions, empty, trace)
    return None if is_no_answer(text) and not chosen.values else _of_model(chosen, empty)


def _repeated(text: str, observed: Sequence[ObservedCall]) -> CallResult | None:
    """Return what the call found that the text repeats."""
    read = read_action_line(text)
    if read.value is None or len(read.value) != 1 or read.repaired or not re.match(r"\w+ ?\[", text):
        return None
    key = call_text(read.value[0])
    return next((each.found for each in reversed(observed) if call_text(each.call) == key), None)


def _counted(text: str, observed: Sequence[ObservedCall], question: str) -> Sequence[CountedNumber]:
    """Return the counted numbers that a text may be, unless a later observation shows it as a value.

    Of several, those come first of which the question has most words.
    """
    digits, words = _NUMBER.fullmatch(text), text.split()
    word = plain_value(words[0].strip(".")) if len(words) < MAX_NUMBER_WORDS else ""
    value = digits[1].replace(",", "") if digits else word.removeprefix("=")
    if not value.removeprefix("-").isdigit():
        return ()

    def common(number: CountedNumber) -> int:
        steps = (step for each in number.candidates for step in each.path.steps)
        words = [*(each.words for each in number.candidates), *(local_words(step.relation) for step in steps)]
        return len(set(terms(question)) & set(terms(" ".join(words))))

    for each in reversed(observed):
        numbers = (*each.found.numbers, *each.found.listed)
        if equal := [number for number in numbers if number.number == int(value)]:
            return sorted(equal, key=common, reverse=True)
        if any(isinstance(named.value, Literal) and named.name == value for named in each.found.shown):
            return ()
    return ()


def _of_values(chosen: Sequence[Named], functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer:
    """Return the answer that consists of values that were seen, in their order, with the query that fits best."""
    graph, names, question = functions.graph, functions.seen.names, empty.question.text
    wanted = {each.value for each in chosen}
    paths = _paths(wanted, functions.observed, f" {normalise(question)} ", names)
    tried = islice(chain(paths[:1], selections(wanted, question, functions.observed, names)), MOST_READ)
    texts = set(map(plain_text, wanted))
    answer = next(filter(None, (_exact(graph, each, texts, empty, trace) for each in tried)), None)
    if answer is None and not paths:
        return _of_model(Chosen(tuple(chosen)), replace(empty, notes=(*empty.notes, ONLY_LOOKED_UP)))
    if answer is None:
        topics = _topics(graph, paths[0])
        walked = graph.with_walks("free") if any(topic.value in wanted for topic in topics) else graph
        answer = answer_of_entities(walked, replace(empty, topics=topics), chosen, paths, trace)
    place = {plain_text(each.value): number for number, each in enumerate(chosen)}
    return replace(answer, answers=tuple(sorted(answer.answers, key=lambda each: place[plain_text(each.value)])))


def _paths(
    wanted: set[Value], observed: Sequence[ObservedCall], question: str, names: Mapping[Value, str]
) -> list[Candidate]:
    """Return the paths that lead to some of the values: those to only them first, then to all of them.

    Among these, those come first whose conditions name what the question names, then the latest.
    """

    def rank(source: SetPath) -> tuple[bool, bool, bool, int, int]:
        there = wanted & source.every
        tests = [each.test for each in source.candidate.conditions if isinstance(each.test, Entity)]
        fit = sum(f" {normalise(names[test])} " in question for test in tests if test in names)
        is_only = wanted == source.every and source.exact
        return not is_only, there != wanted, not source.exact, -len(there), -fit

    sources = [source for each in reversed(observed) for source in each.found.sources]
    leading = [each for each in sources if each.candidate.path.steps and wanted & each.every]
    ranked: dict[object, Candidate] = {}
    for source in sorted(leading, key=rank):
        ranked.setdefault(source.candidate.identity, source.candidate)
    return list(ranked.values())[:MAX_PATHS]


def _exact(graph: KnowledgeGraph, candidate: Candidate, texts: set[str], empty: Answer, trace: Trace) -> Answer | None:
    """Return the answer of a candidate if its query returns what was observed; None if it does not.

    Observed neighbours include the topic of a path. Where this matters, the path has the walk rule `free`.
    """
    try:
        for walked in (graph, graph.with_walks("free")):
            if set(map(plain_text, returned(walked, candidate))) == texts:
                topics = _topics(walked, candidate)
                return answer_of_path(walked, candidate, None, replace(empty, topics=topics), trace)
    except (StoreTimeout, PartialResult, QueryRejected) as error:
        trace.record(GaveUp(path=candidate.words, error=str(error)))
    return None


def _topics(graph: KnowledgeGraph, candidate: Candidate) -> tuple[Named, ...]:
    """Return the topics of a path and of those that it meets."""
    compared = candidate.operation.topics if candidate.operation else ()
    joined = (join.path.topic for join in candidate.joins)
    return tuple(graph.named(dict.fromkeys([*(compared or [candidate.path.topic]), *joined])))


def _of_model(chosen: Chosen, empty: Answer) -> Answer:
    """Return the answer that the language model gives, without a query."""
    named = (*chosen.values, *(Named(Literal(text), "", text) for text in chosen.others[:MAX_NAMED]))
    notes = (f"{NOT_OBSERVED}{', '.join(chosen.others[:5])[:300]}.",) if chosen.others else ()
    return replace(empty, status="answered", answers=named, grounding="model", notes=(*empty.notes, *notes))
