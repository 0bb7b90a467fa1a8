"""Turns the text of `Finish` into an answer with a query, if it follows from what was observed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import call_text, read_action_line, top_level_parts, without_quotes
from kgqa.methods.counselor.calls.observations import Found, Number, Observation
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.methods.counselor.selection import selections
from kgqa.methods.tournament.path_answers import answer_of_entities, answer_of_path
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Value
from kgqa.text.words import clean, display_name, normalise
from kgqa.trace import GaveUp
from kgqa.trace.trace import Trace

MAX_TEXT = 20_000
MAX_ANSWERS = 1000
MOST_READ = 4
"""Most queries that are tried for the values that a language model chose."""
NOT_OBSERVED = "Not found in the graph, but named by the language model: "
GIVEN = "No call found these nodes; the language model gave their ids: "
ONLY_LOOKED_UP = "No path of the graph leads to the answer: it was only looked up by its name."
_NUMBER = re.compile(r"\D{0,2}?(-?[0-9]{1,3}(?:,[0-9]{3})+|-?[0-9]{1,15})(?:\.0+)?(?:\s+[^\W\d]\w{0,30}){0,2}[.\s]*")
_WORD = re.compile(r"\w+")
_BEFORE = re.compile(
    r"(?:^|[,;:/|(\[{\"'\u201c\u2018`\n]|(?<!\w)(?:and|or)\s)[\s\"'\u201c\u2018`(\[{*-]*"
    r"(?:(?:the|an?)\s)?$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\s\"'\u201d\u2019`)\]}*.]*(?:$|[,;/|()\n]|(?:and|or)(?!\w))", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(?:[\W_]|(?<!\w)(?:and|or|the|an?)(?!\w))*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the text of `Finish` names.

    Attributes:
        values: the values that were seen, in the order of the text.
        others: the rest of the text, cut at commas.
    """

    values: tuple[Named, ...]
    others: tuple[str, ...] = ()


def grounded_answer(text: str, functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer | None:
    """Return the answer that the text of `Finish` gives.

    Its grounding is `graph` if all of the text was observed and a query that was run again returns it, else `model`.

    Args:
        text: The text.
        functions: The functions of the question, with what was observed.
        empty: An answer without results, which provides the question, the method and the notes.
        trace: Records the answer.

    Returns:
        The answer; None if the text is empty.

    Raises:
        StoreError: The graph failed.
        BudgetExhausted: The question's budget is used up.
    """
    text = text[:MAX_TEXT].strip()
    if not _WORD.search(text):
        return None
    found = _answer(text, functions, empty, trace)
    given = [functions.given[each.value] for each in found.topics if each.value in functions.given]
    if given:
        found = replace(found, notes=(*found.notes, f"{GIVEN}{', '.join(map(display_name, given))}."))
    return found


def _answer(text: str, functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer:
    graph = functions.graph
    called = _called(text, functions.observed)
    number = _number(text, functions.observed) if called is None else None
    if called is not None and called.found is not None:
        if called.found.number is not None and not called.found.values:
            number = called.found, called.found.numbers[0]
        elif called.found.values:
            return _of_values(called.found.values[:MAX_ANSWERS], functions, empty, trace)
    if number is not None:
        counted = _of_number(*number, graph, empty, trace)
        if counted is not None:
            return counted
    chosen = chosen_values(text, functions)
    if not chosen.others and chosen.values:
        return _of_values(chosen.values, functions, empty, trace)
    return _of_model(chosen, empty)


def chosen_values(text: str, functions: GraphFunctions) -> Chosen:
    """Return the observed values that a text names, longest names first, and what is left, cut at commas."""
    names = functions.seen.named
    words = [(found.start(), found.end()) for found in _WORD.finditer(text)][:4000]
    longest = max((name.count(" ") + 1 for name in names), default=0)
    spans: list[tuple[int, int, dict[Value, Named]]] = []
    for first, (begin, _) in enumerate(words):
        if not _BEFORE.search(text[max(0, begin - 40) : begin]):
            continue
        for _, end in words[first : first + longest + 4]:
            found = names.get(text[begin:end]) or names.get(normalise(text[begin:end]))
            if found and _AFTER.match(text[end : end + 40]):
                spans.append((begin, end, found))
    taken: list[tuple[int, int, dict[Value, Named]]] = []
    for begin, end, found in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(end <= other[0] or begin >= other[1] for other in taken):
            taken.append((begin, end, found))
    taken.sort(key=lambda span: span[0])
    values: dict[Value, Named] = {}
    others: list[str] = []
    at = 0
    before: dict[Value, Named] = {}
    for begin, end, found in taken:
        others += _left_over(text[at:begin])
        common = {value: named for value, named in found.items() if value in before}
        if common and re.fullmatch(r"[\s\"'\u201d\u2019`]*[(\[]\s*", text[at:begin]):  # the id after a name
            for value in before:
                if value not in common:
                    values.pop(value, None)
        else:
            values |= {value: named for value, named in found.items() if value not in values}
        at, before = end, found
    others += _left_over(text[at:])
    return Chosen(tuple(values.values())[:MAX_ANSWERS], tuple(others))


def _left_over(text: str) -> list[str]:
    """Return the parts of a text that have words, cut at semicolons, else at commas."""
    if _LEFT_OVER.fullmatch(text):
        return []
    cut = text.split(";") if ";" in text else top_level_parts(text)
    parts = (without_quotes(clean(part)).strip(" .;,") for part in cut)
    return [part for part in parts if not _LEFT_OVER.fullmatch(part)]


def _called(text: str, observed: Sequence[Observation]) -> Observation | None:
    """Return the observation of the call that the text repeats."""
    read = read_action_line(text)
    if read.value is None or len(read.value) != 1 or read.repaired or not re.match(r"\w+ ?\[", text):
        return None
    key = call_text(read.value[0])
    return next((each for each in reversed(observed) if call_text(each.call) == key), None)


def _number(text: str, observed: Sequence[Observation]) -> tuple[Found, Number] | None:
    """Return the number that a text is, if it was counted and no later observation shows it as a value."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    wanted = int(found[1].replace(",", ""))
    for each in reversed(observed):
        if each.found is None:
            continue
        for number in each.found.numbers:
            if number.number == wanted:
                return each.found, number
        if any(isinstance(named.value, Literal) and named.name == found[1] for named in each.shown):
            return None
    return None


def _of_number(within: Found, number: Number, graph: KnowledgeGraph, empty: Answer, trace: Trace) -> Answer | None:
    """Return the answer whose query counts to the number; None if no query does."""
    for candidate in within.counting(number):
        found = _exact(
            graph, candidate, lambda values: [_text(value) for value in values] == [str(number.number)], trace
        )
        if found is not None:
            return _completed(found, empty)
    return None


def _of_values(chosen: Sequence[Named], functions: GraphFunctions, empty: Answer, trace: Trace) -> Answer:
    """Return the answer that consists of values that were seen, in their order, with the query that fits best."""
    wanted = {each.value for each in chosen}
    graph = functions.graph
    names = {value: named.name for each in functions.seen.named.values() for value, named in each.items()}
    candidates = _candidates(wanted, functions.observed, lambda each: _named_tests(each, empty.question.text, names))
    selected = selections(wanted, empty.question.text, functions.observed, names)
    for candidate in islice(chain(candidates[:1], selected), MOST_READ):
        found = _exact(graph, candidate, lambda values: set(values) == wanted, trace)
        if found is not None:
            return _in_order(_completed(found, empty), chosen)
    if not candidates:
        return replace(_of_model(Chosen(tuple(chosen)), empty), notes=(*empty.notes, ONLY_LOOKED_UP))
    topics = _topics(graph, candidates[0])
    if any(topic.value in wanted for topic in topics):
        graph = graph.with_walks("free")
    found = answer_of_entities(graph, replace(empty, topics=topics), chosen, candidates, trace)
    return _in_order(found, chosen)


def _named_tests(candidate: Candidate, question: str, names: Mapping[Value, str]) -> int:
    """Return how many conditions of a candidate test for an entity that the question names."""
    text = f" {normalise(question)} "
    tests = [each.test for each in candidate.conditions if isinstance(each.test, Entity)]
    return sum(f" {normalise(names[test])} " in text for test in tests if test in names)


def _candidates(
    wanted: set[Value], observed: Sequence[Observation], named_tests: Callable[[Candidate], int]
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
            fit = named_tests(source.candidate) if source.candidate.conditions else 0
            rank = (not only, there != wanted, not source.exact, -len(there), -fit, -place)
            known = ranked.get(source.candidate.identity)
            if known is None or rank < known[0]:
                ranked[source.candidate.identity] = rank, source.candidate
    return [candidate for _, candidate in sorted(ranked.values(), key=lambda each: each[0])][:10]


def _exact(
    graph: KnowledgeGraph, candidate: Candidate, fits: Callable[[Sequence[Value]], bool], trace: Trace
) -> Answer | None:
    """Return the answer of a candidate if its query returns what was observed; None if it does not.

    Observed neighbours include the topic of a path. Where this matters, the path has the walk rule `free`.
    """
    ways = [graph] if graph.paths.walk_rule == "free" else [graph, graph.with_walks("free")]
    options = {**candidate.limits, "restricted": dict(candidate.restricted), "operation": candidate.operation}
    try:
        for way in ways:
            if fits(way.run_exported(way.answer_query(candidate.path, **options))):
                found = answer_of_path(way, candidate, None, _topics(way, candidate), trace)
                return replace(found, topics=_topics(way, candidate)) if found else None
    except (StoreTimeout, PartialResult, QueryRejected) as error:
        trace.record(GaveUp(path=candidate.words, error=str(error)))
    return None


def _topics(graph: KnowledgeGraph, candidate: Candidate) -> tuple[Named, ...]:
    """Return the topics of a path and of those that it meets."""
    compared = candidate.operation.topics if candidate.operation else ()
    joined = (join.path.topic for join in candidate.joins)
    return tuple(graph.named(dict.fromkeys([*(compared or [candidate.path.topic]), *joined])))


def _completed(found: Answer, empty: Answer) -> Answer:
    return replace(found, question=empty.question, method=empty.method, notes=(*empty.notes, *found.notes))


def _text(value: Value) -> str:
    return value.value if isinstance(value, Literal) else value.iri


def _in_order(answer: Answer, chosen: Iterable[Named]) -> Answer:
    """Return the answer with its values in the order in which the language model named them."""
    place = {each.value: number for number, each in enumerate(chosen)}
    return replace(answer, answers=tuple(sorted(answer.answers, key=lambda each: place[each.value])))


def _of_model(chosen: Chosen, empty: Answer) -> Answer:
    """Return the answer that the language model gives, without a query."""
    named = (*chosen.values, *(Named(Literal(text), "", text) for text in chosen.others[:MAX_ANSWERS]))
    notes = (f"{NOT_OBSERVED}{', '.join(chosen.others[:5])[:300]}.",) if chosen.others else ()
    return replace(empty, status="answered", answers=named, grounding="model", notes=(*empty.notes, *notes))
