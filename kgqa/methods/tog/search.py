"""Think-on-Graph, the baseline: mediators are passed through, and all that a chosen relation leads to is evidence.

Departures from the search as published (`published/tog.py`):

- A relation that leads to mediators, or only to nodes without a name, is read as records: the fields of each node.
- All values of a chosen relation are evidence, up to `MOST_VALUES`; no random sample is drawn.
- The model says whether the evidence is enough before it rates the entities from which the search continues.
- Relations are named after what they lead to; prompts say from which entity a relation starts, and scores may be 0.
- One rule says what is enough, in the prompt that asks for this and in the prompt for the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kgqa.graph.tables.labels import is_blank_node
from kgqa.methods.prompt_view import path_words
from kgqa.methods.resources import Resources
from kgqa.methods.tog.chain_search import LISTED, ChainSearch
from kgqa.methods.tog.chains import Chain
from kgqa.methods.tog.replies import read_entities
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Question, RelationPath, Step, Value
from kgqa.rank.lexical import terms
from kgqa.search.conditions.rows import Row, read_rows
from kgqa.search.tolerance import TOLERATED
from kgqa.text.words import is_unnamed, relation_words
from kgqa.trace import GaveUp, Kept
from kgqa.trace.trace import Trace

MOST_VALUES = 30
"""Most values of a relation, and most records, that are evidence."""
MOST_IN_FIELD = 5
LONGEST_NAME = 200


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer by Think-on-Graph; arguments and errors as in `top.answer`. Names of topics are not masked."""
    return ThinkOnGraph(question, resources, trace).answer(topics)


@dataclass(frozen=True, slots=True)
class Reached:
    """What one relation of an entity leads to.

    Attributes:
        source: The chain that leads to the entity.
        step: The relation with its direction.
        score: The score of the relation.
        values: The values with names, if they are not mediators.
        records: The mediators with their fields.
        more: How many values are left out.
    """

    source: Chain
    step: Step
    score: float
    values: tuple[Named, ...] = ()
    records: tuple[Row, ...] = ()
    more: int = 0

    def chains(self) -> Iterator[tuple[Chain, Named]]:
        """Yield a chain to each value, with the value's name; values of records are two steps away."""
        start, nodes = self.source.path.then(self.step), self.source.nodes
        for value in self.values:
            yield Chain(start, (*nodes, value.value), self.score), value
        for record in self.records:
            for (_, steps), values in record.fields.items():
                for value in values if len(steps) == 1 else ():
                    yield Chain(start.then(*steps), (*nodes, record.end.value, value.value), self.score), value


class ThinkOnGraph(ChainSearch):
    """The search for one question. Replies are read in any form."""

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        super().__init__(question, resources, trace)
        self._asked = set(terms(question.text))
        self._facts: dict[str, None] = {}
        self._reached: list[Reached] = []
        self._passed: set[Value] = set()

    def hop(self, frontier: Sequence[Chain]) -> list[Chain]:
        """Select the entities from which to continue, and read all that their relations lead to."""
        if self._reached:
            frontier = self._selected()
        steps = self.relations(frontier)
        self._reached = self._read(steps)
        self._passed |= {record.end.value for reached in self._reached for record in reached.records}
        self._facts |= dict.fromkeys(line for reached in self._reached for line in self._lines(reached))
        found = [chain for reached in self._reached for chain, _ in reached.chains()]
        self.record(found, len(found))
        paths = tuple(dict.fromkeys(self.hops(chain.path) for chain in found))
        self._trace.record(Kept(hop=len(found[0].nodes) if found else 0, paths=paths))
        return found

    def whole_paths(self, wanted: Collection[Value]) -> Iterator[Candidate]:
        """Yield the paths through records all of whose values are wanted; the records need no restriction."""
        along: dict[RelationPath, list[Chain]] = {}
        for chain in self.chains:
            along.setdefault(chain.path, []).append(chain)
        for path, chains in along.items():
            inner = [at for at, node in enumerate(chains[0].nodes[:-1]) if node not in self._passed]
            chosen = [chain for chain in chains if chain.end in wanted]
            allowed = {at: dict.fromkeys(chain.nodes[at] for chain in chosen) for at in inner}
            same = (chain for chain in chains if all(chain.nodes[at] in nodes for at, nodes in allowed.items()))
            if chosen and len(inner) < len(path) - 1 and all(chain.end in wanted for chain in same):
                restricted = tuple(
                    (at + 1, tuple(each for each in nodes if isinstance(each, Entity))) for at, nodes in allowed.items()
                )
                yield Candidate(path, self.hops(path), restricted=restricted)

    def _read(self, steps: Sequence[tuple[Chain, Step, float]]) -> list[Reached]:
        graph = self._graph
        every = [Candidate(chain.from_end().then(step), self.step_name(step)) for chain, step, _ in steps]
        direct = [each for each in every if not graph.tables.leads_to_mediator(each.path.steps[-1])]
        ends: dict[RelationPath, list[Value]] = {}
        for each, found in zip(direct, graph.paths.ends(direct, limit=LISTED, tolerated=TOLERATED)):
            if isinstance(found, Exception):
                self._trace.record(GaveUp(path=each.words, error=str(found)))
                ends[each.path] = []
            else:
                ends[each.path] = [value for value in found.values if not is_blank_node(value)]
        names = {each.value: each for each in graph.named(v for values in ends.values() for v in values)}
        named = {
            path: [names[value] for value in values if not is_unnamed(names[value], graph.schema)]
            for path, values in ends.items()
        }
        # nodes without a name are passed through like mediators
        passed = [each for each in every if not named.get(each.path) and ends.get(each.path) != []]
        rows = {each.candidate.path: each for each in read_rows(graph, passed, self._trace, limit=MOST_VALUES)}
        result = []
        for (chain, step, score), each in zip(steps, every):
            known = {chain.path.topic, *chain.nodes}
            values = sorted((v for v in named.get(each.path, ()) if v.value not in known), key=self._worth)
            records = rows[each.path].rows if each.path in rows else ()
            more = len(values) - MOST_VALUES
            if values or records:
                result.append(Reached(chain, step, score, tuple(values[:MOST_VALUES]), tuple(records), max(more, 0)))
        return result

    def _worth(self, value: Named) -> int:
        """Return a sort key that puts values first that share words with the question."""
        return -len(self._asked & set(terms(value.name)))

    def _lines(self, reached: Reached) -> Iterator[str]:
        """Yield the facts as lines: one for all values, and one for each record with more than one field."""
        start = f"{self.name(reached.source.end)}; {self.step_name(reached.step)}"
        if reached.values:
            more = [f"and {reached.more} more"] if reached.more else []
            yield "; ".join([start, *map(_text, reached.values), *more])
        alone: dict[str, list[str]] = {}
        for record in reached.records:
            fields = [
                (self._field_name(reached, steps), list(dict.fromkeys(map(_text, values[:MOST_IN_FIELD]))))
                for (_, steps), values in sorted(
                    record.fields.items(), key=lambda field: isinstance(field[1][0].value, Literal)
                )
                if steps[0].relation not in self._graph.schema.types
            ]
            if len(fields) == 1:
                alone.setdefault(fields[0][0], []).extend(fields[0][1])
            elif fields:
                yield "; ".join([start, *(f"{name} = {', '.join(texts)}" for name, texts in fields)])
        for name, texts in alone.items():
            yield "; ".join([f"{start}: {name}", *dict.fromkeys(texts)])

    def _field_name(self, reached: Reached, steps: Sequence[Step]) -> str:
        path = reached.source.from_end().then(reached.step, *steps)
        return path_words(self._graph, path)[-1].rsplit(": ", 1)[-1]

    def triples(self) -> list[str]:
        return list(self._facts)

    def _selected(self) -> list[Chain]:
        """Let the model rate the entities that each relation leads to; return the chains to the best ones."""
        found: list[Chain] = []
        several: list[tuple[Reached, dict[Value, tuple[Chain, str]]]] = []
        for reached in self._reached:
            entities: dict[Value, tuple[Chain, str]] = {}
            for chain, value in reached.chains():
                if isinstance(value.value, Entity) and value.value not in chain.nodes[:-1]:
                    entities.setdefault(value.value, (chain, _text(value)))
            if len(entities) > 1:
                several.append((reached, dict(list(entities.items())[:MOST_VALUES])))
            else:
                found += [chain for chain, _ in entities.values()]
        values = [
            {
                "source": self.name(reached.source.end),
                "relation": self.step_name(reached.step),
                "entities": [text for _, text in entities.values()],
            }
            for reached, entities in several
        ]
        readers = [partial(read_entities, size=len(entities)) for _, entities in several]
        for (_, entities), scores in zip(several, self.ask("entities", "entity", values, readers)):
            shares = scores or (1 / len(entities),) * len(entities)
            for (chain, _), share in zip(entities.values(), shares):
                found.append(replace(chain, score=chain.score * (share or 0.0)))
        best = sorted((chain for chain in found if chain.score > 0), key=lambda chain: -chain.score)
        return list({chain.end: chain for chain in reversed(best)}.values())[::-1][: self._width]

    def step_name(self, step: Step) -> str:
        return path_words(self._graph, RelationPath(_ANY, (step,)))[0]

    def name_steps(self, steps: Iterable[Step]) -> dict[str, Step]:
        named: dict[str, Step] = {}
        for step in steps:
            name = self.step_name(step)
            if name in named:
                words = relation_words(step.relation, self._graph.schema, self._graph.tables.relation_labels)
                name = words if step.direction == "out" else f"{words} (backwards)"
            named.setdefault(name, step)
        return named


_ANY = Entity("")


def _text(value: Named) -> str:
    return value.name[:LONGEST_NAME].replace(";", ",")
