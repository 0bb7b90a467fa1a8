"""The functions of a graph that a language model calls: nodes, neighbours, features, degrees, and sets of nodes.

Calls come from `read_action_line`. A text in a call is looked up among the nodes that were seen and in the graph, and
names of relations among the graph's relations; no text becomes part of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from kgqa.errors import PartialResult, QueryRejected, ResultCapped, StoreCrashed, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import FORMS, SETS, Call, call_text, top_level_parts, without_quotes
from kgqa.methods.counselor.names import FoundNodes, Hop, HopNames, NamedHop, Retrieval
from kgqa.methods.counselor.observations import CallResult, CountedNumber, ObservedCall, read_records
from kgqa.methods.counselor.seen import ShownValues
from kgqa.methods.counselor.sets import (
    NodeSet,
    Pairs,
    difference,
    extended,
    in_languages,
    in_list_order,
    intersection,
    most_shared,
    plain_text,
    relation_beside,
    returned,
    topic_set,
    union,
)
from kgqa.methods.counselor.writing import LISTED_CHARS, ValueWriter, list_text, records_text, safe
from kgqa.model import Candidate, Entity, Named, Step
from kgqa.model.conditions import Operation
from kgqa.rank.embedding.encoder import CachedEncoder

MAX_VALUES = 2000
"""Most values of a node that are read."""
MAX_NODES = 1000
"""Most nodes of which something is looked up at once."""
MAX_LISTED = 60
"""Most relations that are listed."""
MAX_CHARS = 3000
"""Most characters of an observation."""
FAILURES = (StoreTimeout, PartialResult, ResultCapped, QueryRejected, StoreCrashed)


class _Refused(Exception):
    """A call that cannot be run. The text says why."""


class GraphFunctions:
    """Runs the calls of one question.

    Args:
        graph: The graph of the question; see `KnowledgeGraph.for_question`.
        encoder: Compares names; None if they are compared by their letters.
        sets: Whether there are functions on sets of nodes.
        retrieve: How `Retrieve` finds a node: names or dense, as in `counselor.retrieve`.
        shown: Most values in an observation.
        ids_only: Whether nodes are shown by their ids only, as published.

    Attributes:
        observed: The observations so far.
        seen: The values that they showed.
        given: Nodes whose ids were given before any observation showed them.
        hops: The names of the graph's relations.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        *,
        encoder: CachedEncoder | None = None,
        sets: bool = True,
        retrieve: str = "names",
        shown: int = 50,
        ids_only: bool = False,
    ) -> None:
        self.graph = graph
        self.observed: list[ObservedCall] = []
        self.given: dict[Entity, Named] = {}
        self.hops = HopNames(graph, encoder)
        self._sets = sets
        self._writer = ValueWriter(graph, shown=shown, ids_only=ids_only)
        self.seen = ShownValues(self._writer.types)
        self._retrieval = Retrieval(graph, encoder, dense=retrieve == "dense")
        self._results: dict[str, tuple[CallResult, list[str]]] = {}
        self._notes: list[str] = []
        functions: Mapping[str, Callable[[Call], CallResult]] = {
            "Retrieve": self._retrieve,
            "Neighbour": self._neighbour,
            "Feature": self._neighbour,
            "Degree": self._degree,
            "Intersect": self._combine,
            "Without": self._combine,
            "Count": self._count,
            "Most": self._most,
        }
        self._functions = {name: run for name, run in functions.items() if sets or name not in SETS}

    def run(self, call: Call) -> ObservedCall:
        """Run a call with the calls inside it, and return what it found.

        Raises:
            BudgetExhausted: The question's budget is used up.
            StoreUnavailable: The graph cannot be reached.
        """
        self._notes = []
        found, problem = CallResult(), ""
        try:
            found = self._result(call)
        except _Refused as refused:
            problem = str(refused)
        except FAILURES as error:
            problem = f"The graph could not answer: {safe(str(error))}"
        result = problem or " ".join([*dict.fromkeys(self._notes), found.text])
        text = f"{safe(call_text(call))}: {result}"
        observed = ObservedCall(call, found, text[:MAX_CHARS], problem)
        self.observed.append(observed)
        self.seen.add(observed)
        return observed

    def _result(self, call: Call) -> CallResult:
        """Return what a call found; the notes on it are added to those of the call around it."""
        if call.name not in self._functions:
            raise _Refused(f"There is no function {call.name}. There are {', '.join(self._functions)}.")
        key, outer = call_text(call), self._notes
        if key not in self._results:
            self._notes = []
            self._results[key] = self._functions[call.name](call), self._notes
        result, notes = self._results[key]
        self._notes = [*outer, *notes]
        return result

    # --- the functions

    def _retrieve(self, call: Call) -> CallResult:
        text = self._text(call, *self._arguments(call, 1, 1))
        seen = self.seen.get(text)
        found = FoundNodes(seen.nodes, "id") if seen and len(seen.nodes) == 1 else self._retrieval.find(text)
        named = self.graph.named(found.nodes)
        self._writer.read_types(named)
        texts = self._writer.texts(named)
        if not found.how:
            nearest = f" The nearest names are {list_text(texts, len(texts))}." if texts else ""
            raise _Refused(f"No node has a name like “{safe(text)}”.{nearest}")
        if found.how == "similar":
            self._notes.append(f"“{safe(text)}” is no name; the most similar is used.")
        sets = [topic_set(node, each.name) for node, each in zip(found.nodes, named)]
        for nodes, each in zip(sets, named):
            self.seen.add_topic(nodes, each)
        others = f". Other nodes: {list_text(texts[1:], len(texts) - 1)}" if texts[1:] else ""
        return CallResult(sets[0], f"{texts[0]}{others}", (named[0],), tuple(named[1:]), total=1)

    def _neighbour(self, call: Call) -> CallResult:
        start, name = self._start_and_name(call)
        if not name:
            return self._relations(start)
        pairs, hop, cut = self._along(start, name)
        pairs, exact = in_languages(self.graph.schema, in_list_order(self.graph, pairs, hop), hop)
        sources = [extended(self.graph, each, hop, pairs, cut=cut, exact=exact) for each in start.sources]
        nodes = union([NodeSet(tuple([source for source in sources if source.values] or sources), cut)])
        total: int | None = len(nodes.values)
        if cut:  # more than were read
            one = start.nodes[0] if len(start.nodes) == 1 else None
            total = self.graph.paths.hop_counts([one], hop, loops=True)[one] if one else None
        nearest = self.hops.reading_at(name, start.nodes).nearest if not nodes.values else ()
        others = f". The nearest are: {'; '.join(map(safe, nearest))}" if nearest else ""
        found = CallResult(nodes, total=total, of=(start, hop), pairs=pairs)
        if self._sets and len(start.nodes) == 1 and len(nodes.values) > 1:  # not as published
            with suppress(*FAILURES):  # the values stand without them
                found = replace(found, records=read_records(self.graph, start.nodes[0], hop))
        found = self._writer.values(found, "", f"has no “{self.hops.name(hop)}”{others}")
        fields = dict.fromkeys(each for record in found.records for own in record.fields.values() for each in own)
        records = records_text(found.records, hop, self.hops.name, LISTED_CHARS - len(found.text))
        return replace(found, text=f"{found.text}{records}", beside=(*found.beside, *fields))

    def _relations(self, start: NodeSet) -> CallResult:
        """Return the relations of a set, with numbers of edges."""
        present = self.hops.present(start.nodes)
        counts = self.graph.paths.relations_at(start.nodes[:MAX_NODES]) if present else {}
        listed = [f"{name} ({counts.get(hop[0], 0)})" for hop, name in present.items()]
        text = list_text(map(safe, listed[:MAX_LISTED]), len(listed), separator="; ")
        named = self.graph.named(start.nodes) if len(start.nodes) == 1 else []
        single = [(each, hop) for each in named for hop in present if len(hop) == 1]
        numbers = (self._number(counts[hop[0]], start, each, hop) for each, hop in single)
        text = text or "nothing: there are no relations."
        return CallResult(start, text, total=len(listed), listed=tuple(numbers))

    def _degree(self, call: Call) -> CallResult:
        start, name = self._start_and_name(call)
        if not name:
            return self._relations(start)
        hop, nodes = next(self._readings(start, name)).hop, start.nodes[:MAX_NODES]
        counts = self.graph.paths.hop_counts(nodes, hop, loops=True)
        relation = relation_beside(self.graph, hop, self.graph.schema.degree)
        values = self.graph.paths.hop(nodes, (Step(relation),)) if relation else {}
        stated = {node: int(text) for node, (value, *_) in values.items() if (text := plain_text(value)).isdecimal()}
        counts |= stated
        named = self.graph.named(nodes)
        numbers = [
            self._number(counts[node], start, each, (Step(relation),) if node in stated else hop, stated=node in stated)
            for node, each in zip(nodes, named)
        ]
        if not numbers:
            raise _Refused("Literals have no neighbours.")
        texts = (f"{text}: {each.number}" for text, each in zip(self._writer.texts(named, typed=False), numbers))
        text = str(numbers[0].number) if len(numbers) == 1 else list_text(texts, len(numbers), separator="; ")
        shown = tuple(named[: self._writer.shown])
        return CallResult(text=text, beside=shown, numbers=tuple(numbers), total=len(numbers), of=(start, hop))

    def _combine(self, call: Call) -> CallResult:
        combine = intersection if call.name == "Intersect" else difference
        first, *others = sets = list(map(self._nodes, self._arguments(call, 2, 9)))
        for other in others:
            first = combine(self.graph, first, other)
        combined = dict.fromkeys(source.candidate.words for each in sets for source in each.sources)
        found = CallResult(first, total=None if first.approximate else len(first.values), combined=tuple(combined))
        return self._writer.values(found, "", "is empty")

    def _count(self, call: Call) -> CallResult:
        nodes = self._nodes(*self._arguments(call, 1, 1))
        path, number = nodes.path, len(nodes.values)
        if nodes.approximate and path is None:
            raise _Refused(f"The set is too large to be counted: more than {number}.")
        counting = [replace(path.candidate, operation=Operation("count"))] if path else []
        for candidate in counting if nodes.approximate else ():  # more than were read
            number = int(plain_text(returned(self.graph, candidate)[0]))
        return CallResult(text=str(number), numbers=(CountedNumber(number, None, tuple(counting)),), total=1)

    def _most(self, call: Call) -> CallResult:
        self._arguments(call, 2, 2)
        start, name = self._start_and_name(call)
        pairs, hop, cut = self._along(start, name, most=len(start.nodes))
        nodes, best = most_shared(self.graph, start, hop, pairs, cut=cut)
        found = CallResult(nodes, total=len(nodes.values))
        shared = f"shared by {best} of {len(start.nodes)}{' (approximate: not all were read)' if cut else ''}: "
        return self._writer.values(found, shared, f"has no “{self.hops.name(hop)}”")

    # --- arguments

    def _arguments(self, call: Call, least: int, most: int) -> tuple[str | Call, ...]:
        if not least <= len(call.arguments) <= most:
            raise _Refused(f"Write {FORMS[call.name]}.")
        return call.arguments

    def _text(self, call: Call, argument: str | Call) -> str:
        if isinstance(argument, Call):
            raise _Refused(f"Write {FORMS[call.name]}.")
        return argument

    def _nodes(self, argument: str | Call) -> NodeSet:
        """Return the set that an argument stands for: the result of a call, ids, or names."""
        if isinstance(argument, Call):
            found = self._result(argument)
            if found.numbers:
                raise _Refused(f"{safe(call_text(argument))} is a number, not a node.")
            return found.nodes
        text, known = argument.strip(), self._known(argument)
        if known is not None:
            return known
        is_list = text.startswith("[") and text.endswith("]")
        parts = [part for each in top_level_parts(text[1:-1] if is_list else text) if (part := without_quotes(each))]
        sets = [self._known(part) for part in parts] if is_list or len(parts) > 1 else [None]
        unknown = next((part for part, nodes in zip(parts, sets) if nodes is None), "" if parts else argument)
        if unknown:
            raise _Refused(f"“{safe(unknown)}” is no node that was seen. Find it first: Retrieve[{safe(unknown)}].")
        return union([nodes for nodes in sets if nodes is not None])

    def _known(self, text: str) -> NodeSet | None:
        """Return the nodes with an id or name that were seen, else the node of the graph with this id or exact name."""
        seen = self.seen.get(text)
        by_id = self._retrieval.by_id(text) if seen is None else None
        node = by_id or next(iter(self._retrieval.by_name(text) if seen is None else ()), None)
        if node is None:
            return seen
        (named,) = self.graph.named([node])
        if by_id:
            self.given[node] = named
            self._notes.append(f"{safe(text)} was not seen before.")
        self.seen.add_topic(nodes := topic_set(node, named.name), named)
        return nodes

    def _start_and_name(self, call: Call) -> tuple[NodeSet, str]:
        """Return the set of a call, and the name of its relation; "" if it names none."""
        first, *names = self._arguments(call, 1, 2)
        name = self._text(call, names[0]) if names else ""
        if name and isinstance(first, str) and self.seen.get(first) is None:
            whole = self.seen.get(f"{first}, {name}")
            if whole is not None:  # a name with a comma
                return whole, ""
        return self._nodes(first), name

    # --- relations

    def _readings(self, start: NodeSet, name: str) -> Iterator[NamedHop]:
        """Yield the hops that a name may mean, best first."""
        for reading in self.hops.readings(name, start.nodes):
            if not reading.hop:
                nearest = "; ".join(map(safe, reading.nearest))
                no_relation = f"is no relation of {self._writer.set_words(start)}." if not reading.several else ""
                more = f"{'may be any of' if reading.several else ' The nearest are'}: {nearest}." if nearest else ""
                raise _Refused(f"“{safe(name)}” {no_relation}{more}")
            yield reading

    def _along(self, start: NodeSet, name: str, most: int = MAX_NODES) -> tuple[Pairs, Hop, bool]:
        """Return what a name leads to by its first reading that leads anywhere, the hop, and whether some is unread."""
        first: Hop = ()
        for reading in self._readings(start, name):
            first = first or reading.hop
            pairs = self.graph.paths.hop(start.nodes[:most], reading.hop, loops=True, limit=MAX_VALUES)
            if pairs:
                self._notes += [reading.note] if reading.note else []
                unread = any(len(values) > MAX_VALUES for values in pairs.values())
                return pairs, reading.hop, unread or start.approximate or len(start.nodes) > most
        return {}, first, start.approximate or len(start.nodes) > most

    def _number(self, number: int, start: NodeSet, node: Named, hop: Hop, *, stated: bool = False) -> CountedNumber:
        """Return the number of values of a node, with the paths that count to it: that of its set, then from the node.

        If the graph states the number, the hop leads to it, and nothing is counted.
        """
        assert isinstance(node.value, Entity)
        candidates: list[Candidate] = []
        for source in (*start.among({node.value}).sources, *topic_set(node.value, node.name).sources):
            counted = extended(self.graph, source, hop, {})
            operation = None if stated else Operation("count")
            candidates += [replace(counted.candidate, operation=operation)] if counted.exact else []
        return CountedNumber(number, node, tuple(dict.fromkeys(candidates)))
