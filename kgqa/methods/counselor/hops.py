"""Names of logical hops: which steps a language model means by a relation's name.

A logical hop is one step, or a step to mediators and a step from them. Names are compared without case and punctuation.
A relation is named by its label, its words, its short id or the last part of it; followed backwards, by the same names
of its declared inverse. `<- name` follows a relation backwards, `name: name` goes through a mediator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Expansion
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.methods.counselor.retrieval import similarities
from kgqa.methods.prompt_view import ambiguous_in
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.text.words import clean, local_name, normalise, prompt_words, property_words, relation_words, short_words

MIN_SIMILARITY = 0.8
"""Least cosine at which a name is read as another name."""
NEAREST = 10
"""How many names are shown if a name is not known."""
SAMPLED = 20
"""From how many nodes of a set the hops are listed."""
SAMPLED_AT_MEDIATORS = 3
"""From how many of these nodes the hops through mediators are listed."""
Hop = tuple[Step, ...]
_BACKWARDS = re.compile(r"^\s*(?:<-+|\u2190|\^|inverse of\s)\s*|\s*\(inverse\)\s*$", re.IGNORECASE)
_THROUGH = re.compile(r"\s*(?:: |\.\.|/)\s*")
_ANY = Entity("urn:kgqa:any")
_Tables = tuple[dict[str, int], dict[str, str], dict[str, tuple[Step, ...]]]
_TABLES: WeakKeyDictionary[GraphTables, _Tables] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class NamedHop:
    """A hop, its name, and a note if the name is not the one that was given.

    `may_turn`: whether the hop may be meant backwards where it leads nowhere, because the given name is no id, the
    relation has no declared inverse, and its subjects and objects are not declared to have the same type.
    """

    hop: Hop
    name: str
    note: str = ""
    may_turn: bool = False


@dataclass(frozen=True, slots=True)
class UnknownHop:
    """A name that no hop has. `nearest`: names of hops; `several`: whether the given name fits all of them."""

    nearest: tuple[str, ...] = ()
    several: bool = False


class HopNames:
    """Reads and writes the names of hops of one graph.

    Args:
        graph: The graph of a question.
        encoder: Compares names; None if names are compared by their words only.
    """

    def __init__(self, graph: KnowledgeGraph, encoder: CachedEncoder | None) -> None:
        self._graph = graph
        self._encoder = encoder
        self._present: dict[tuple[Entity, ...], dict[Hop, str]] = {}

    def name(self, hop: Sequence[Step]) -> str:
        """Return the name of a hop that `find` reads as this hop."""
        return self._named(hop, self._tables()[1])

    def _named(self, hop: Sequence[Step], labels: dict[str, str]) -> str:
        graph = self._graph
        return clean(
            prompt_words(
                RelationPath(_ANY, tuple(hop)),
                graph.schema,
                labels,
                is_mediator=graph.tables.leads_to_mediator,
                inverse=graph.tables.inverses.get,
                target_type=graph.tables.target_type,
                ambiguous=ambiguous_in(graph),
            )[-1]
        )

    def find(self, text: str, nodes: Sequence[Entity], types: Collection[str] = ()) -> NamedHop | UnknownHop:
        """Return the hop with a name; where several hops have it, the one that leads from the nodes.

        Args:
            text: The name.
            nodes: The nodes from which the hop is to lead.
            types: Types of the nodes, as far as they are known; they may make a query for the nodes' hops needless.
        """
        certain = self._certain(text, types)
        if certain is not None:
            return NamedHop(certain, self.name(certain), may_turn=self._may_turn(text, certain))
        return self.find_present(text, nodes)

    def find_present(self, text: str, nodes: Sequence[Entity]) -> NamedHop | UnknownHop:
        """Return the hop with a name among those that lead from the nodes."""
        present = self.present(nodes)
        if _BACKWARDS.search(text):
            back: list[Hop] = [(step,) for step in self._steps(text) if (step,) in present]
            return NamedHop(back[0], present[back[0]]) if len(back) == 1 else self._nearest(text, present)
        key, words = normalise(text), _words(text)
        for same in (
            [hop for hop in present if self._full_name(hop) == text.strip()],
            [hop for hop, name in present.items() if normalise(name) == key],
            [hop for hop, name in present.items() if words and ' whose "' not in name and _words(name) == words],
            [hop for hop in present if key in self._keys(hop)],
        ):
            direct = [hop for hop in same if len(hop) == 1]
            if len(same) == 1 or len(direct) == 1:
                hop = (direct or same)[0]
                return NamedHop(hop, present[hop])
            if same:
                return UnknownHop(tuple(present[hop] for hop in same)[:NEAREST], several=True)
        return self._nearest(text, present)

    def _may_turn(self, text: str, hop: Hop) -> bool:
        step, graph = hop[0], self._graph
        if len(hop) > 1 or graph.tables.inverses.get(step.relation) is not None or _BACKWARDS.search(text):
            return False
        types = graph.tables.target_type(step), graph.tables.target_type(step.reversed())
        is_id = text.strip() in (step.relation, graph.schema.short_id(step.relation))
        return not is_id and (None in types or types[0] != types[1])

    def present(self, nodes: Sequence[Entity]) -> dict[Hop, str]:
        """Return the hops that lead from some of the first nodes, with their names, in the order of the names."""
        sample = tuple(nodes[:SAMPLED])
        if sample not in self._present:
            hops = self._hops_from(sample)
            named = sorted(((self.name(hop), hop) for hop in hops), key=str)
            used = Counter(name for name, _ in named)
            self._present[sample] = {hop: name if used[name] == 1 else self._full_name(hop) for name, hop in named}
        return self._present[sample]

    def _full_name(self, hop: Hop) -> str:
        """Return the name of a hop by the short ids of its relations."""
        ids = (f"{'<- ' if step.direction == 'in' else ''}{self._graph.schema.short_id(step.relation)}" for step in hop)
        return ": ".join(ids)

    def _hops_from(self, nodes: Sequence[Entity]) -> list[Hop]:
        graph = self._graph
        found = graph.paths.steps([Candidate(RelationPath(node), "") for node in nodes])
        from_node = {node: each.steps if isinstance(each, Expansion) else () for node, each in zip(nodes, found)}
        steps = dict.fromkeys(step for each in from_node.values() for step in each)
        hops: dict[Hop, None] = {}
        into = [step for step in steps if graph.tables.mediators.extent(step) != "none"]
        paths = []
        for step in into:
            starts = [node for node in nodes if step in from_node[node]][:SAMPLED_AT_MEDIATORS]
            paths += [RelationPath(node, (step,)) for node in starts]
        for path, onward in zip(paths, graph.paths.steps([Candidate(path, "") for path in paths])):
            hops |= {(*path.steps, step): None for step in onward.steps if not graph.tables.leads_to_mediator(step)}
        direct = [(step,) for step in steps if not graph.tables.leads_to_mediator(step)]
        return [*direct, *hops]

    def _certain(self, text: str, types: Collection[str]) -> Hop | None:
        """Return the only hop of the graph with this name, or the only one from nodes of a type, without a query."""
        tables = self._graph.tables
        known: list[Hop] = [  # those that neither enter nor leave mediators
            (step,)
            for step in self._steps(text)
            if not tables.leads_to_mediator(step) and not tables.leads_to_mediator(step.reversed())
        ]
        if len(known) != 1 and normalise(text) in ("name", "label"):
            labels: list[Hop] = [(Step(each),) for each in self._graph.schema.label if each in tables.relations]
            known = labels[:1] or known
        if len(known) > 1 and len(types) == 1:
            known = [hop for hop in known if tables.target_type(hop[0].reversed()) in types]
        elif not known and len(parts := _THROUGH.split(text.strip(), maxsplit=1)) == 2:
            into, onward = map(self._steps, parts)
            known = [
                (first, second)
                for first in into
                for second in onward
                if tables.mediators.extent(first) != "none" and tables.mediators.extent(second.reversed()) != "none"
                if first.reversed() != second
            ]
        return known[0] if len(known) == 1 else None

    def _steps(self, text: str) -> tuple[Step, ...]:
        table = self._tables()[2]
        backwards = _BACKWARDS.search(text)
        if backwards:
            rest = (text[: backwards.start()] + text[backwards.end() :]).strip()
            return tuple(step.reversed() for step in table.get(normalise(rest), ()))
        return table.get(normalise(text), ())

    def _keys(self, hop: Hop) -> set[str]:
        """Return all names of a hop as they are compared; a hop through a mediator has those of both its steps."""
        _, labels, _ = self._tables()
        return {key for step in hop for key in self._step_keys(step, labels)}

    def _step_keys(self, step: Step, labels: dict[str, str]) -> set[str]:
        graph = self._graph
        relation = step.relation if step.direction == "out" else graph.tables.inverses.get(step.relation)
        names = [self._named((step,), labels)]
        if relation:
            short = graph.schema.short_id(relation)
            names += [labels.get(relation, ""), short, short.rsplit(".", 1)[-1], local_name(relation)]
            names += [relation_words(relation, graph.schema, labels), short_words(relation, graph.schema, labels)]
        else:
            short = graph.schema.short_id(step.relation).rsplit(".", 1)[-1]
            names += [f"{relation_words(step.relation, graph.schema, labels)} of", f"{property_words(short)} of"]
        return {key for name in names if (key := normalise(name))}

    def _tables(self) -> _Tables:
        """Return the graph's relations, the labels of them and their inverses, and the steps by name."""
        graph = self._graph
        relations = graph.tables.relations
        known = _TABLES.get(graph.tables)
        if known is None or known[0] is not relations:
            labels = dict(graph.tables.relation_labels)
            unnamed = sorted({name for name in graph.tables.inverses if name not in labels})
            named = graph.labels(map(Entity, unnamed)) if graph.schema.wording == "label" else {}
            if graph.schema.wording == "label":
                labels |= {name: named.get(Entity(name)) or relation_words(name, graph.schema) for name in unnamed}
            steps: dict[str, dict[Step, None]] = {}
            for relation in relations:
                # if the inverse has edges, it leads there itself
                back = () if graph.tables.inverses.get(relation) in relations else (Step(relation, "in"),)
                for step in (Step(relation), *back):
                    for key in self._step_keys(step, labels):
                        steps.setdefault(key, {})[step] = None
            known = _TABLES[graph.tables] = relations, labels, {key: tuple(own) for key, own in steps.items()}
        return known

    def _nearest(self, text: str, present: dict[Hop, str]) -> NamedHop | UnknownHop:
        hops, names = list(present), list(present.values())
        if not names:
            return UnknownHop()
        scores = similarities(self._encoder, text, names)
        order = sorted(range(len(names)), key=lambda at: (-scores[at], names[at]))
        if self._encoder is not None and scores[order[0]] > MIN_SIMILARITY:
            best = order[0]
            return NamedHop(hops[best], names[best], f"“{clean(text)[:60]}” was read as “{names[best]}”.")
        return UnknownHop(tuple(names[at] for at in order[:NEAREST]))


def _words(text: str) -> list[str]:
    """Return the words of a name without articles and plurals, in any order: `birth date` is `date of birth`."""
    return sorted(word.removesuffix("s") for word in normalise(text).split() if word not in ("the", "a", "an", "of"))
