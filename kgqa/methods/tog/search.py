"""Think-on-Graph, the baseline: mediators are passed through, and all that a chosen relation leads to is evidence.

Departures from the search as published (`published/tog.py`):

- A relation that leads to mediators, or only to nodes without a name, is read as records: the fields of each node.
- All values of a chosen relation are evidence, up to `MOST_VALUES`; no random sample is drawn.
- The model says whether the evidence is enough before it rates the entities from which the search continues.
- Relations are named after what they lead to; prompts say from which entity a relation starts, and scores may be 0.
- One rule says what is enough, in the prompt that asks for this and in the prompt for the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgqa.graph.tables.labels import is_blank_node
from kgqa.methods.prompt_view import path_words
from kgqa.methods.resources import Resources
from kgqa.methods.tog.chain_search import LISTED, ChainSearch
from kgqa.methods.tog.chains import NodeChain
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Question, RelationPath, Step, Value
from kgqa.rank.lexical import terms
from kgqa.search.conditions.rows import Row, read_rows
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import is_unnamed, relation_words
from kgqa.trace.trace import Trace

MOST_VALUES = 30
"""Most values of a relation, and most records, that are evidence."""
MOST_IN_FIELD = 5
LONGEST_NAME = 200
_ANY = Entity("")


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
class RelationValues:
    """What one relation of an entity leads to.

    Attributes:
        source: The chain that leads to the entity.
        step: The relation with its direction.
        score: The score of the relation.
        values: The values with names, if they are not mediators.
        records: The mediators with their fields.
        more: How many values are left out.
    """

    source: NodeChain
    step: Step
    score: float
    values: Sequence[Named] = ()
    records: Sequence[Row] = ()
    more: int = 0

    def chains(self) -> Iterator[tuple[NodeChain, Named]]:
        """Yield a chain to each value, with the value's name; values of records are two steps away."""
        for value in self.values:
            yield self.source.then([self.step], [value.value], self.score), value
        for record in self.records:
            for (_, steps), values in record.fields.items():
                for value in values if len(steps) == 1 else ():
                    nodes = (record.end.value, value.value)
                    yield self.source.then([self.step, *steps], nodes, self.score), value


class ThinkOnGraph(ChainSearch):
    """The search for one question."""

    def __init__(self, question: Question, resources: Resources, trace: Trace) -> None:
        super().__init__(question, resources, trace)
        self._asked = set(terms(question.text))
        self._facts: dict[str, None] = {}
        self._reached: list[RelationValues] = []
        self._passed: set[Value] = set()

    def hop(self, frontier: Sequence[NodeChain]) -> list[NodeChain]:
        """Select the entities from which to continue, and read all that their relations lead to."""
        if self._reached:
            frontier = self._selected()
        self._reached = self._read(self.relations(frontier))
        self._passed |= {record.end.value for reached in self._reached for record in reached.records}
        self._facts |= dict.fromkeys(line for reached in self._reached for line in self._lines(reached))
        found = [chain for reached in self._reached for chain, _ in reached.chains()]
        return self.keep(found, len(found))

    def paths_to(self, wanted: Collection[Value]) -> Iterator[Candidate]:
        """Yield the paths to wanted nodes; first those through records that need no restriction of the records."""
        along: dict[RelationPath, list[NodeChain]] = {}
        for chain in self.chains:
            along.setdefault(chain.path, []).append(chain)
        for path, chains in along.items():
            inner = [at for at, node in enumerate(chains[0].nodes[:-1]) if node not in self._passed]
            chosen = [chain for chain in chains if chain.end in wanted]
            allowed = {at: dict.fromkeys(chain.nodes[at] for chain in chosen) for at in inner}
            same = (chain for chain in chains if all(chain.nodes[at] in nodes for at, nodes in allowed.items()))
            if chosen and len(inner) < len(path) - 1 and all(chain.end in wanted for chain in same):
                yield self.restricted(path, {at + 1: nodes for at, nodes in allowed.items()})
        yield from super().paths_to(wanted)

    def _read(self, steps: Sequence[tuple[NodeChain, Step, float]]) -> list[RelationValues]:
        graph = self._graph
        every = [Candidate(chain.onward(step), self.step_name(step)) for chain, step, _ in steps]
        direct = [each for each in every if not graph.tables.leads_to_mediator(each.path.steps[-1])]
        ends_of = graph.paths.ends(direct, limit=LISTED, tolerated=TOLERATED)
        reached = without_failures(direct, ends_of, self._trace, worded=lambda each: each.words)
        ends = {each.path: [v for v in there.values if not is_blank_node(v)] for each, there in reached}
        names = {each.value: each for each in graph.named(v for values in ends.values() for v in values)}
        named = {
            path: [names[value] for value in values if not is_unnamed(names[value], graph.schema)]
            for path, values in ends.items()
        }
        # nodes without a name are passed through like mediators
        unnamed = [path for path, values in ends.items() if values and not named[path]]
        passed = [each for each in every if each not in direct or each.path in unnamed]
        rows = {each.candidate.path: each.rows for each in read_rows(graph, passed, self._trace, limit=MOST_VALUES)}
        found = []
        for (chain, step, score), each in zip(steps, every):
            known = {chain.path.topic, *chain.nodes}
            # values that share words with the question come first
            values = [value for value in named.get(each.path, ()) if value.value not in known]
            values.sort(key=lambda value: -len(self._asked & set(terms(value.name))))
            if values or rows.get(each.path):
                more = max(len(values) - MOST_VALUES, 0)
                records = rows.get(each.path, ())
                found.append(RelationValues(chain, step, score, values[:MOST_VALUES], records, more))
        return found

    def _lines(self, reached: RelationValues) -> Iterator[str]:
        """Yield the facts as lines: one for all values, and one for each record with more than one field."""
        start = f"{self.name(reached.source.end)}; {self.step_name(reached.step)}"
        if reached.values:
            more = [f"and {reached.more} more"] if reached.more else []
            yield "; ".join([start, *map(_text, reached.values), *more])
        alone: dict[str, list[str]] = {}
        for record in reached.records:
            every = sorted(record.fields.items(), key=lambda field: isinstance(field[1][0].value, Literal))
            fields = [
                (self._field_name(reached, steps), list(dict.fromkeys(map(_text, values[:MOST_IN_FIELD]))))
                for (_, steps), values in every
                if steps[0].relation not in self._graph.schema.types
            ]
            if len(fields) == 1:
                alone.setdefault(fields[0][0], []).extend(fields[0][1])
            elif fields:
                yield "; ".join([start, *(f"{name} = {', '.join(texts)}" for name, texts in fields)])
        for name, texts in alone.items():
            yield "; ".join([f"{start}: {name}", *dict.fromkeys(texts)])

    def _field_name(self, reached: RelationValues, steps: Sequence[Step]) -> str:
        return path_words(self._graph, reached.source.onward(reached.step, *steps))[-1].rsplit(": ", 1)[-1]

    def triples(self) -> list[str]:
        return list(self._facts)

    def _selected(self) -> list[NodeChain]:
        """Let the model rate the entities that each relation leads to; return the chains to the best ones."""
        found: list[NodeChain] = []
        several = []
        for reached in self._reached:
            chains: dict[Value, tuple[NodeChain, str]] = {}
            for chain, value in reached.chains():
                if isinstance(value.value, Entity) and value.value not in chain.nodes[:-1]:
                    chains.setdefault(value.value, (chain, _text(value)))
            offered = list(chains.values())[:MOST_VALUES]
            if len(offered) > 1:
                values = {"source": self.name(reached.source.end), "relation": self.step_name(reached.step)}
                several.append((values | {"entities": [text for _, text in offered]}, [chain for chain, _ in offered]))
            else:
                found += [chain for chain, _ in offered]
        rated = [chain for chain in [*found, *self.rated(several)] if chain.score > 0]
        best: dict[Value, NodeChain] = {}
        for chain in sorted(rated, key=lambda chain: -chain.score):
            best.setdefault(chain.end, chain)
        return list(best.values())[: self._width]

    def step_name(self, step: Step, taken: Collection[str] = ()) -> str:
        (name,) = path_words(self._graph, RelationPath(_ANY, (step,)))
        if name not in taken:
            return name
        words = relation_words(step.relation, self._graph.schema, self._graph.tables.relation_labels)
        return words if step.direction == "out" else f"{words} (backwards)"


def _text(value: Named) -> str:
    return value.name[:LONGEST_NAME].replace(";", ",")
