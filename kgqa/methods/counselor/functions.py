"""The functions of a graph that a language model calls: nodes, neighbours, features, degrees, and sets of nodes.

Calls come from `read_action_line`. A text in a call is looked up among the nodes that were seen and in the graph, and
names of relations among the graph's relations; no text becomes part of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kgqa.errors import PartialResult, QueryRejected, ResultCapped, StoreCrashed, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.action_lines import FORMS, SETS, Call, call_text, top_level_parts, without_quotes
from kgqa.methods.counselor.hops import Hop, HopNames, NamedHop
from kgqa.methods.counselor.observations import Found, Number, Observation, Record, read_records
from kgqa.methods.counselor.retrieval import Retrieval, Retrieved
from kgqa.methods.counselor.sets import (
    NodeSet,
    Pairs,
    difference,
    extended,
    in_languages,
    in_list_order,
    intersection,
    most_shared,
    relation_beside,
    returned,
    topic_set,
    union,
)
from kgqa.methods.counselor.writing import (
    LISTED_CHARS,
    MAX_CHARS,
    MAX_NODES,
    ShownValues,
    ValueWriter,
    list_text,
    records_text,
    safe,
)
from kgqa.model import Candidate, Entity, Literal, Named, RelationPath, Step
from kgqa.model.conditions import Operation
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.text.words import arrow_words

MAX_VALUES = 2000
"""Most values of a node that are read."""
MAX_LISTED = 60
"""Most relations that are listed."""
FAILURES = (StoreTimeout, PartialResult, ResultCapped, QueryRejected, StoreCrashed)


class _Refused(Exception):
    """A call that cannot be run. The text says why."""


_Result = tuple[Found, str, tuple[Named, ...]]
"""What a call found, its text without the call, and the values that the text names."""


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
        self.observed: list[Observation] = []
        self.given: dict[Entity, Named] = {}
        self.hops = HopNames(graph, encoder)
        self._sets = sets
        self._writer = ValueWriter(graph, shown=shown, ids_only=ids_only)
        self.seen = ShownValues(self._writer.words)
        self._retrieval = Retrieval(graph, encoder, dense=retrieve == "dense")
        self._results: dict[str, tuple[_Result, list[str]]] = {}
        self._notes: list[str] = []
        functions: Mapping[str, Callable[[Call], _Result]] = {
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

    def run(self, call: Call) -> Observation:
        """Run a call with the calls inside it, and return what it found.

        Raises:
            BudgetExhausted: The question's budget is used up.
            StoreUnavailable: The graph cannot be reached.
        """
        self._notes = []
        name = safe(call_text(call))
        try:
            found, text, shown = self._result(call)
            text = " ".join([f"{name}:", *dict.fromkeys(self._notes), text])
            observed = Observation(call, found, text[:MAX_CHARS], shown=shown)
        except _Refused as refused:
            observed = Observation(call, None, f"{name}: {refused}"[:MAX_CHARS], str(refused))
        except FAILURES as error:
            problem = f"The graph could not answer: {safe(str(error))}"
            observed = Observation(call, None, f"{name}: {problem}", problem)
        self.observed.append(observed)
        self.seen.add(observed)
        return observed

    def _result(self, call: Call) -> _Result:
        if call.name not in self._functions:
            raise _Refused(f"There is no function {call.name}. There are {', '.join(self._functions)}.")
        key = call_text(call)
        if key not in self._results:
            outer, self._notes = self._notes, []
            try:
                self._results[key] = self._functions[call.name](call), self._notes
            finally:
                self._notes = outer
        result, notes = self._results[key]
        self._notes += notes
        return result

    # --- the functions

    def _retrieve(self, call: Call) -> _Result:
        (text,) = self._arguments(call, 1, 1)
        if not isinstance(text, str):
            raise _Refused(f"Write {FORMS[call.name]}.")
        seen = self.seen.get(text)
        found = Retrieved(seen.nodes[0], (), "id") if seen and len(seen.nodes) == 1 else self._retrieval.find(text)
        named = self.graph.named([*([found.node] if found.node else ()), *found.others])
        texts = [self._writer.node(each) for each in named]
        if found.node is None:
            nearest = f" The nearest names are {list_text(texts, len(texts))}." if texts else ""
            raise _Refused(f"No node has a name like “{safe(text)}”.{nearest}")
        others = f". Other nodes: {list_text(texts[1:], len(texts) - 1)}" if texts[1:] else ""
        if found.how == "similar":
            self._notes.append(f"“{safe(text)}” is no name; the most similar is used.")
        sets = [topic_set(each.value, each.name) for each in named if isinstance(each.value, Entity)]
        for nodes, each in zip(sets, named):
            self.seen.add_topic(nodes, each)
        return Found((named[0],), sets[0], total=1), f"{texts[0]}{others}", tuple(named)

    def _neighbour(self, call: Call) -> _Result:
        start, named = self._start_and_hop(call)
        if named is None:
            return self._relations(start)
        pairs, hop = self._along(start, named, str(call.arguments[1]))
        pairs, exact = in_languages(self.graph.schema, in_list_order(self.graph, pairs, hop), hop)
        cut = len(start.nodes) > MAX_NODES or _is_cut(start, pairs)
        sources = [
            extended(source, hop, pairs, words=self._words(source.candidate.path, hop), cut=cut, exact=exact)
            for source in start.sources
        ]
        nodes = union([NodeSet(tuple([source for source in sources if source.values] or sources), cut)])
        total: int | None = len(nodes.values)
        if cut:  # more than were read
            one = start.nodes[0] if len(start.nodes) == 1 else None
            total = self.graph.paths.hop_counts([one], hop, loops=True)[one] if one else None
        found = Found(nodes=nodes, total=total, of=(start, hop), pairs=pairs)
        nothing = "" if nodes.values else f"has no “{self.hops.name(hop)}”{self._nearest(call, start)}"
        # before the values are named, so that one query finds the names of both
        found = replace(found, records=self._records(start, hop) if len(nodes.values) > 1 else ())
        found, text, shown = self._writer.values(found, "", nothing)
        fields = dict.fromkeys(named for each in found.records for own in each.fields.values() for named in own)
        records = records_text(found.records, hop, self.hops.name, LISTED_CHARS - len(text))
        return found, f"{text}{records}", (*shown, *fields)

    def _records(self, start: NodeSet, hop: Hop) -> tuple[Record, ...]:
        """Return the records through which a hop leads from a single node; none as published, or if the graph fails."""
        if not self._sets or len(start.nodes) != 1:
            return ()
        try:
            return read_records(self.graph, start.nodes[0], hop)
        except FAILURES:  # the values stand without them
            return ()

    def _nearest(self, call: Call, start: NodeSet) -> str:
        """Return names of relations of nodes that are nearest to the second argument of a call."""
        other = self.hops.find_present(str(call.arguments[1]), start.nodes)
        if isinstance(other, NamedHop) or not other.nearest:
            return ""
        return f". The nearest are: {'; '.join(map(safe, other.nearest))}"

    def _relations(self, start: NodeSet) -> _Result:
        """Return the relations of a set, with numbers of edges."""
        present = self.hops.present(start.nodes)
        counts = self.graph.paths.relations_at(start.nodes[:MAX_NODES]) if present else {}
        listed = [f"{name} ({counts.get(hop[0], 0)})" for hop, name in present.items()]
        text = list_text(map(safe, listed[:MAX_LISTED]), len(listed), separator="; ")
        named = self.graph.named(start.nodes) if len(start.nodes) == 1 else []
        numbers = (Number(counts[hop[0]], each, hop=hop) for each in named for hop in present if len(hop) == 1)
        found = Found(nodes=start, total=len(listed), listed=tuple(numbers))
        return found, text or "nothing: there are no relations.", ()

    def _degree(self, call: Call) -> _Result:
        start, named_hop = self._start_and_hop(call)
        if named_hop is None:
            return self._relations(start)
        hop, nodes = named_hop.hop, start.nodes[:MAX_NODES]
        counts = self.graph.paths.hop_counts(nodes, hop, loops=True)
        stated: dict[Entity, Step] = {}
        if relation := relation_beside(self.graph, hop, self.graph.schema.degree):
            for node, (value, *_) in self.graph.paths.hop(nodes, (Step(relation),)).items():
                if isinstance(value, Literal) and value.value.isdigit():
                    counts[node], stated[node] = int(value.value), Step(relation)
        nodes_named = self._writer.named(nodes)
        numbers = [
            Number(counts[node], named, hop=hop, stated=stated.get(node)) for node, named in zip(nodes, nodes_named)
        ]
        if not numbers:
            raise _Refused("Literals have no neighbours.")
        texts = (f"{self._writer.node(each, typed=False)}: {n.number}" for n, each in zip(numbers, nodes_named))
        text = str(numbers[0].number) if len(numbers) == 1 else list_text(texts, len(numbers), separator="; ")
        found = Found(numbers=tuple(numbers), total=len(numbers), of=(start, hop))
        return found, text, tuple(nodes_named[: self._writer.shown])

    def _combine(self, call: Call) -> _Result:
        combine = intersection if call.name == "Intersect" else difference
        first, *others = sets = list(map(self._nodes, self._arguments(call, 2, 9)))
        for other in others:
            first = combine(self.graph, first, other)
        combined = dict.fromkeys(source.candidate.words for each in sets for source in each.sources)
        found = Found(nodes=first, total=None if first.approximate else len(first.values), combined=tuple(combined))
        return self._writer.values(found, "", "is empty")

    def _count(self, call: Call) -> _Result:
        nodes = self._nodes(self._arguments(call, 1, 1)[0])
        source = nodes.described
        candidate: Candidate | None = None
        number = len(nodes.values)
        if source is not None and source.candidate.path.steps and source.candidate.operation is None:
            candidate = replace(source.candidate, operation=Operation("count"))
            if nodes.approximate:  # more than were read
                (counted,) = returned(self.graph, candidate)
                number = int(counted.value) if isinstance(counted, Literal) else number
        elif nodes.approximate:
            raise _Refused(f"The set is too large to be counted: more than {number}.")
        return Found(numbers=(Number(number, None, candidate),), total=1), str(number), ()

    def _most(self, call: Call) -> _Result:
        self._arguments(call, 2, 2)
        start, named = self._start_and_hop(call)
        assert named is not None
        pairs, hop = self._along(start, named, str(call.arguments[1]), most=len(start.nodes))
        words = self._words(start.sources[0].candidate.path, hop) if start.sources else ""
        cut = _is_cut(start, pairs)
        nodes, best = most_shared(start, hop, pairs, words=words, cut=cut)
        found = Found(nodes=nodes, total=len(nodes.values))
        shared = f"shared by {best} of {len(start.nodes)}{' (approximate: not all were read)' if cut else ''}: "
        return self._writer.values(found, shared, f"has no “{self.hops.name(hop)}”")

    # --- arguments

    def _arguments(self, call: Call, least: int, most: int) -> tuple[str | Call, ...]:
        if not least <= len(call.arguments) <= most:
            raise _Refused(f"Write {FORMS[call.name]}.")
        return call.arguments

    def _nodes(self, argument: str | Call) -> NodeSet:
        """Return the set that an argument stands for: the result of a call, ids, or names."""
        if isinstance(argument, Call):
            found, *_ = self._result(argument)
            if found.numbers and not found.nodes.sources:
                raise _Refused(f"{safe(call_text(argument))} is a number, not a node.")
            return found.nodes
        if (known := self._known(argument)) is not None:
            return known
        text = argument.strip()
        is_list = text.startswith("[") and text.endswith("]")
        parts = [part for each in top_level_parts(text[1:-1] if is_list else text) if (part := without_quotes(each))]
        sets: list[NodeSet] = []
        for part in parts if is_list or len(parts) > 1 else ():
            if (nodes := self._known(part)) is None:
                break
            sets.append(nodes)
        if not sets or len(sets) < len(parts):
            unknown = safe(parts[len(sets)] if len(sets) < len(parts) else argument)
            raise _Refused(f"“{unknown}” is no node that was seen. Find it first: Retrieve[{unknown}].")
        return union(sets)

    def _known(self, text: str) -> NodeSet | None:
        """Return the nodes with an id or name that were seen, else the node of the graph with this id or exact name."""
        seen = self.seen.get(text)
        if seen is not None:
            return seen
        by_id = self._retrieval.by_id(text)
        node = by_id or next(iter(self._retrieval.by_name(text)), None)
        if node is None:
            return None
        (named,) = self.graph.named([node])
        nodes = topic_set(node, named.name)
        if by_id:
            self.given[node] = named
            self._notes.append(f"{safe(text)} was not seen before.")
        self.seen.add_topic(nodes, named)
        return nodes

    def _start_and_hop(self, call: Call) -> tuple[NodeSet, NamedHop | None]:
        """Return the set and the hop of a call; no hop if the call names none."""
        first, *rest = self._arguments(call, 1, 2)
        if not rest:
            return self._nodes(first), None
        (name,) = rest
        if not isinstance(name, str):
            raise _Refused(f"Write {FORMS[call.name]}.")
        if isinstance(first, str) and self.seen.get(first) is None:
            whole = self.seen.get(f"{first}, {name}")
            if whole is not None:  # a name with a comma
                return whole, None
        start = self._nodes(first)
        hop = self.hops.find(name, start.nodes, self._writer.types_of(start))
        if isinstance(hop, NamedHop):
            self._notes += [hop.note] if hop.note else []
            return start, hop
        if hop.several:
            raise _Refused(f"“{safe(name)}” may be any of: {'; '.join(map(safe, hop.nearest))}.")
        nearest = f" The nearest are: {'; '.join(map(safe, hop.nearest))}." if hop.nearest else ""
        raise _Refused(f"“{safe(name)}” is no relation of {self._writer.set_words(start)}.{nearest}")

    def _along(self, start: NodeSet, named: NamedHop, text: str, most: int = MAX_NODES) -> tuple[Pairs, Hop]:
        """Return what a hop leads to from each node, and the hop: the reverse where only this leads anywhere."""
        nodes, hop = start.nodes[:most], named.hop
        pairs = self.graph.paths.hop(nodes, hop, loops=True, limit=MAX_VALUES)
        if pairs:
            return pairs, hop
        other = self.hops.find_present(text, nodes)
        if isinstance(other, NamedHop) and other.hop != hop and not other.note:
            return self.graph.paths.hop(nodes, other.hop, loops=True, limit=MAX_VALUES), other.hop
        turned = (hop[0].reversed(),)
        if named.may_turn and (pairs := self.graph.paths.hop(nodes, turned, loops=True, limit=MAX_VALUES)):
            self._notes.append(f"“{safe(named.name)}” was followed backwards: {self.hops.name(turned)}.")
            return pairs, turned
        return {}, hop

    def _words(self, path: RelationPath, hop: Hop) -> str:
        graph = self.graph
        (topic,) = graph.named([path.topic])
        labels, is_mediator = graph.tables.relation_labels, graph.tables.leads_to_mediator
        return arrow_words(topic.name, path.then(*hop), graph.schema, labels, is_mediator=is_mediator)


def _is_cut(start: NodeSet, pairs: Pairs) -> bool:
    """Return whether some nodes of a set, or some values of its nodes, were not read."""
    return start.approximate or any(len(values) > MAX_VALUES for values in pairs.values())
