"""Turns the text of `Finish` into an answer with a query, if it follows from what was observed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import call_text, read_action_line
from kgqa.llm.replies.answers import is_no_answer
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.methods.counselor.observations import Found, Number, Observation
from kgqa.methods.counselor.selection import selections
from kgqa.methods.counselor.sets import extended, returned, topic_set
from kgqa.methods.counselor.writing import MAX_NAMED, Chosen, plain_value
from kgqa.methods.tournament.path_answers import answer_of_entities, answer_of_path
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Value
from kgqa.model.conditions import Operation
from kgqa.rank.lexical import terms
from kgqa.text.words import display_name, normalise
from kgqa.trace import GaveUp
from kgqa.trace.trace import Trace

MAX_TEXT = 20_000
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
    if not re.search(r"\w", text):
        return None
    answer = _answer(text, functions, empty, trace)
    if answer is None:
        return None
    given = [functions.given[each.value] for each in answer.topics if each.value in functions.given]
    notes = [f"{GIVEN}{', '.join(map(display_name, given))}."] if given else []
    return replace(answer, notes=(*answer.notes, *notes))


def _answer(text: str, functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer | None:
    repeated = _repeated(text, functions.observed)
    counted = _number(text, functions.observed, empty.question.text) if repeated is None else None
    if repeated is not None and len(repeated.numbers) == 1 and not repeated.values:
        counted = repeated, [repeated.numbers[0]]
    elif repeated is not None and repeated.values:
        return _of_values(repeated.values[:MAX_NAMED], functions, empty, trace)
    found, numbers = counted or (Found(), [])
    tried = ((number, candidate) for number in numbers for candidate in _counting(found, number))
    for number, candidate in islice(tried, MOST_READ):
        answer = _exact(functions.graph, candidate, partial(_is_number, number.number), empty, trace)
        if answer is not None:
            return answer
    chosen = functions.seen.chosen(text)
    if chosen.values and not chosen.others:
        return _of_values(chosen.values, functions, empty, trace)
    return None if is_no_answer(text) and not chosen.values else _of_model(chosen, empty)


def _is_number(number: int, values: Sequence[Value]) -> bool:
    return [each.value if isinstance(each, Literal) else each.iri for each in values] == [str(number)]


def _repeated(text: str, observed: Sequence[Observation]) -> Found | None:
    """Return what the call found that the text repeats."""
    read = read_action_line(text)
    if read.value is None or len(read.value) != 1 or read.repaired or not re.match(r"\w+ ?\[", text):
        return None
    key = call_text(read.value[0])
    return next((each.found for each in reversed(observed) if call_text(each.call) == key), None)


def _number(text: str, observed: Sequence[Observation], question: str) -> tuple[Found, list[Number]] | None:
    """Return the counted numbers that a text may be, unless a later observation shows it as a value.

    Of several, those come first of which the question has most words.
    """
    digits = _NUMBER.fullmatch(text)
    word = plain_value(text.split()[0].strip(".")) if len(text.split()) < MAX_NUMBER_WORDS else ""
    value = digits[1] if digits else word.removeprefix("=")
    if not value.replace(",", "").removeprefix("-").isdigit():
        return None
    asked = set(terms(question))
    for each in reversed(observed):
        numbers = (*each.found.numbers, *each.found.listed) if each.found is not None else ()
        equal = [number for number in numbers if number.number == int(value.replace(",", ""))]
        if equal and each.found is not None:
            return each.found, sorted(equal, key=lambda number: -len(asked & set(terms(number.words))))
        if any(isinstance(named.value, Literal) and named.name == value for named in each.shown):
            return None
    return None


def _counting(found: Found, number: Number) -> Collection[Candidate]:
    """Return candidates that count to a number: along the path of the set that has the node, then from the node.

    If the graph states the number, the hop leads to it, and nothing is counted.
    """
    if number.node is None or not isinstance(number.node.value, Entity):
        return (number.candidate,) if number.candidate else ()
    start, node = found.of[0] if found.of is not None else found.nodes, number.node
    hop = (number.stated,) if number.stated is not None else number.hop
    candidates: dict[object, Candidate] = {}
    for source in (*start.among({node.value}).sources, *topic_set(number.node.value, node.name).sources):
        each = extended(source, hop, {}, words="", cut=False)
        candidate = (
            each.candidate if number.stated is not None else replace(each.candidate, operation=Operation("count"))
        )
        if each.exact:
            candidates[candidate.identity] = candidate
    return candidates.values()


def _of_values(chosen: Sequence[Named], functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer:
    """Return the answer that consists of values that were seen, in their order, with the query that fits best."""
    graph, names, question = functions.graph, functions.seen.names, empty.question.text
    wanted, place = {each.value for each in chosen}, {each.value: number for number, each in enumerate(chosen)}
    candidates = _candidates(wanted, functions.observed, f" {normalise(question)} ", names)
    tried = islice(chain(candidates[:1], selections(wanted, question, functions.observed, names)), MOST_READ)
    exact = (_exact(graph, each, lambda values: set(values) == wanted, empty, trace) for each in tried)
    answer = next(filter(None, exact), None)
    if answer is None and not candidates:
        return replace(_of_model(Chosen(tuple(chosen)), empty), notes=(*empty.notes, ONLY_LOOKED_UP))
    if answer is None:
        topics = _topics(graph, candidates[0])
        if any(topic.value in wanted for topic in topics):
            graph = graph.with_walks("free")
        answer = answer_of_entities(graph, replace(empty, topics=topics), chosen, candidates, trace)
    return replace(answer, answers=tuple(sorted(answer.answers, key=lambda each: place[each.value])))


def _candidates(
    wanted: set[Value], observed: Sequence[Observation], question: str, names: Mapping[Value, str]
) -> list[Candidate]:
    """Return the paths that lead to some of the values: those to only them first, then to all of them.

    Among these, those come first whose conditions name what the question names, then the latest.
    """
    ranked: dict[object, tuple[tuple[bool, bool, bool, int, int, int], Candidate]] = {}
    for place, observation in enumerate(observed):
        for source in observation.sources:
            there = wanted & source.every
            if not there or not source.candidate.path.steps:
                continue
            only = wanted == source.every and source.exact
            tests = [each.test for each in source.candidate.conditions if isinstance(each.test, Entity)]
            fit = sum(f" {normalise(names[test])} " in question for test in tests if test in names)
            rank = (not only, there != wanted, not source.exact, -len(there), -fit, -place)
            known = ranked.get(source.candidate.identity)
            if known is None or rank < known[0]:
                ranked[source.candidate.identity] = rank, source.candidate
    return [candidate for _, candidate in sorted(ranked.values(), key=lambda each: each[0])][:MAX_PATHS]


def _exact(
    graph: KnowledgeGraph, candidate: Candidate, fits: Callable[[Sequence[Value]], bool], empty: Answer, trace: Trace
) -> Answer | None:
    """Return the answer of a candidate if its query returns what was observed; None if it does not.

    Observed neighbours include the topic of a path. Where this matters, the path has the walk rule `free`.
    """
    ways = [graph] if graph.paths.walk_rule == "free" else [graph, graph.with_walks("free")]
    try:
        for way in ways:
            if fits(returned(way, candidate)):
                return answer_of_path(way, candidate, None, replace(empty, topics=_topics(way, candidate)), trace)
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
