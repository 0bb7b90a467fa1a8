"""Question templates: text, a program of calls, and the answers that the program has in a graph's JSON."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from kgqa.testing.grbench.json_graph import JsonGraph

Call = tuple[Any, ...]
"""A call as a tuple: its name, then arguments that are calls, texts, or the number of a topic."""
MAX_ANSWERS = 8
_TRIES = 4_000


@dataclass(frozen=True)
class Picked:
    """Which nodes of a list are the answer, by a feature that is a number.

    `how`: `least`, `most`, or `below` or `above` the number `limit`.
    """

    key: str
    how: str
    limit: float = 0


@dataclass(frozen=True)
class Template:
    """A template of questions.

    `text`: with {0} and {1} for the names of topics. `topics`: their types. `call`: the program. `picked`: which of the
    nodes that it finds are the answer; all if None. `calls`: further calls that the program makes first. `compared`: a
    feature of the topics, of which the topic with the least value is the answer.
    """

    text: str
    topics: tuple[str, ...]
    call: Call
    level: str
    picked: Picked | None = None
    compared: str = ""


@dataclass(frozen=True)
class TemplateQuestion:
    """A question with its answers, and a program of lines of calls, of which the last is `Finish[...]`."""

    text: str
    answers: tuple[str | int, ...]
    program: tuple[str, ...]
    level: str


def questions_of(template: Template, graph: JsonGraph, rng: random.Random, count: int) -> list[TemplateQuestion]:
    """Return questions of a template, about different topics.

    Raises:
        ValueError: the graph has too few topics with an answer.
    """
    found = list(islice(_questions(template, graph, rng), count))
    if len(found) < count:
        raise ValueError(f"only {len(found)} questions: {template.text}")
    return found


def _questions(template: Template, graph: JsonGraph, rng: random.Random) -> Iterator[TemplateQuestion]:
    pools = [[each for each in graph.of_type(type_) if graph.name(each)] for type_ in template.topics]
    for pool in pools:
        rng.shuffle(pool)
    used: set[str] = set()
    for topics in islice(_spread(pools, rng), _TRIES):
        if len(set(topics)) < len(topics) or topics[0] in used:
            continue
        names = [graph.name(each) for each in topics]
        lines = [_text(template.call, names)]
        answers = evaluate(template.call, graph, topics)
        if template.picked:
            lines.append(f"Feature[{lines[0]},{template.picked.key}]")
            answers = _pick(template.picked, answers, graph)
        if template.compared:
            lines = [", ".join(f"Feature[Retrieve[{name}],{template.compared}]" for name in names)]
            values = [graph.values(each, template.compared) for each in topics]
            answers = [topics[values.index(min(values))]] if all(values) and len(set(map(tuple, values))) > 1 else []
        shown = _shown(answers, graph)
        if not template.compared and set(topics) & set(answers):
            continue  # a walk that comes back to its topic: people do not mean it, nor does GRBench
        if 1 <= len(shown) <= MAX_ANSWERS and all(each not in ("", 0) for each in shown):
            used.add(topics[0])
            finish = f"Finish[{', '.join(map(str, shown))}]"
            yield TemplateQuestion(template.text.format(*names), shown, (*lines, finish), template.level)


def _spread(pools: Sequence[list[str]], rng: random.Random) -> Iterator[tuple[str, ...]]:
    """Yield combinations of topics: all of them for one topic, random ones first for two."""
    if len(pools) == 1:
        yield from ((each,) for each in pools[0])
        return
    seconds = {first: rng.sample(pools[1], len(pools[1])) for first in pools[0]}
    for place, first in product(range(len(pools[1])), pools[0]):
        yield first, seconds[first][place]


def evaluate(call: Call, graph: JsonGraph, topics: Sequence[str]) -> list[Any]:
    """Return the nodes, values or the number that a call has as its result."""
    name, *arguments = call
    if name == "Retrieve":
        return [topics[arguments[0]]]
    first = evaluate(arguments[0], graph, topics)
    if name == "Neighbour":
        return list(dict.fromkeys(each for node in first for each in graph.neighbours(node, arguments[1])))
    if name == "Feature":
        return [_Value(value) for node in first for value in graph.values(node, arguments[1])]
    if name == "Degree":
        return [graph.degree(node, arguments[1]) for node in first]
    if name == "Count":
        return [len(set(first))]
    if name == "Most":
        counts = Counter(each for node in first for each in graph.neighbours(node, arguments[1]))
        best = max(counts.values(), default=0)
        return [each for each, count in counts.items() if count == best] if best > 1 else []
    second = evaluate(arguments[1], graph, topics)
    return [each for each in first if (each in second) == (name == "Intersect")]


class _Value(str):
    """A value of a feature, which is no id of a node."""


def _pick(picked: Picked, nodes: list[str], graph: JsonGraph) -> list[str]:
    """Return the nodes with the wanted values; none if all have them, a value is missing, or the best is a tie."""
    values = [[float(value) for value in graph.values(node, picked.key)] for node in nodes]
    if len(nodes) < 2 or not all(len(each) == 1 for each in values):
        return []
    numbers = [each[0] for each in values]
    if picked.how in ("least", "most"):
        best = min(numbers) if picked.how == "least" else max(numbers)
        return [nodes[numbers.index(best)]] if numbers.count(best) == 1 else []
    wanted = [(number < picked.limit) == (picked.how == "below") and number != picked.limit for number in numbers]
    return [node for node, is_wanted in zip(nodes, wanted, strict=True) if is_wanted] if not all(wanted) else []


def _shown(answers: Sequence[Any], graph: JsonGraph) -> tuple[str | int, ...]:
    shown = [each if isinstance(each, (int, _Value)) else graph.name(each) for each in answers]
    return tuple(dict.fromkeys(str(each) if isinstance(each, _Value) else each for each in shown))


def _text(argument: Any, names: Sequence[str]) -> str:
    if isinstance(argument, str):
        return argument
    name, *arguments = argument
    if name == "Retrieve":
        return f"Retrieve[{names[arguments[0]]}]"
    return f"{name}[{','.join(_text(each, names) for each in arguments)}]"


def retrieve(number: int = 0) -> Call:
    """Return the call that finds a topic."""
    return "Retrieve", number


def along(*links: str, start: Call | None = None) -> Call:
    """Return calls that follow links one after the other, from the first topic unless `start` is given."""
    call = start or retrieve()
    for link in links:
        call = "Neighbour", call, link
    return call
