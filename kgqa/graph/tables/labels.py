"""Labels and aliases of entities and relations, looked up for many nodes in one query.

If a node has several labels, one is chosen by the schema's order of predicates, then by language, then by text. Every
engine therefore gives the same label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any

from kgqa.errors import StoreError
from kgqa.graph.query.templates import Variable
from kgqa.graph.store import Row
from kgqa.graph.tables.declarations import Select
from kgqa.model import Entity, Literal, Named, Step, Value
from kgqa.schema import Schema
from kgqa.text.words import is_anonymous, local_words, relation_words, split_words

BATCH = 50
"""Number of nodes per query. Servers are slow with longer VALUES lists, or refuse them."""
SAMPLED_NAMES = 5000
MAX_DESCRIBED, EDGES_READ = 20, 50
"""Most opaque ids that are described, as no page shows more, and most edges that are read of each node."""
UNKNOWN, UNNAMED = "unknown value", "unnamed"
"""What stands for a blank node of which nothing is known, and before what is known of another one."""


def values_of(
    nodes: Sequence[Entity],
    predicates: Iterable[str],
    *,
    select: Select,
    languages: Sequence[Literal] = (),
    remote: bool = False,
) -> list[tuple[Entity, Entity, Value]]:
    """Return node, predicate and value for all values that nodes have by some predicates.

    Args:
        languages: if a node has values in one of these languages, its values in other languages are left out.
        remote: see `Capabilities.remote`.
    """
    iris = [Entity(predicate) for predicate in dict.fromkeys(predicates)]
    predicate = Variable("predicate") if remote else None
    rows: list[Any] = []
    for start in range(0, len(nodes) if iris else 0, BATCH):
        batch = nodes[start : start + BATCH]
        rows += select("values_of", nodes=batch, predicates=iris, predicate=predicate, languages=languages)
    return rows


def find_labels(
    entities: Iterable[Entity],
    *,
    schema: Schema,
    select: Select,
    known: MutableMapping[Entity, str | None],
    remote: bool,
) -> dict[Entity, str]:
    """Return the labels of those entities that have a label.

    Batches run one after another, because Virtuoso cancelled some concurrent batches as deadlocked.

    Args:
        remote: see `Capabilities.remote`.
        known: labels found earlier (None: the entity has no label); new labels are added.
    """
    wanted = list(dict.fromkeys(entities))
    missing = [e for e in wanted if e not in known and not is_blank_node(e)]
    rows = values_of(missing, schema.label, select=select, languages=languages_of(schema), remote=remote)
    # one update at the end, because other threads treat every entry as final
    known.update({**dict.fromkeys(missing), **_best_labels(rows, schema)})
    return {e: label for e in wanted if (label := known.get(e))}


def languages_of_names(select: Select, schema: Schema) -> frozenset[str]:
    """Return the languages of at least a tenth of the labels; "" if so many have no language.

    Only the first `SAMPLED_NAMES` labels of each label predicate are counted.
    """
    counts: Counter[str] = Counter()
    for predicate in schema.label:
        for language, number in select("name_languages", predicate=Entity(predicate), limit=SAMPLED_NAMES):
            if isinstance(language, Literal) and isinstance(number, Literal):
                counts[language.value.lower().partition("-")[0]] += int(number.value)
    return frozenset(language for language, number in counts.items() if 10 * number >= counts.total())


def languages_of(schema: Schema) -> list[Literal]:
    """Return the languages of a schema as literals for templates."""
    return [Literal(language) for language in schema.languages]


def _best_labels(rows: Iterable[Row], schema: Schema) -> dict[Entity, str]:
    """Return the best label of each node in rows of node, predicate and label: by predicate, language and text."""
    order = {predicate: rank for rank, predicate in enumerate(schema.label)}
    best: dict[Entity, tuple[int, int, bool, str]] = {}
    for node, predicate, label in rows:
        if isinstance(node, Entity) and isinstance(predicate, Entity) and isinstance(label, Literal) and label.value:
            rank = (order[predicate.iri], *language_rank(label.language, schema.languages), label.value)
            best[node] = min(best.get(node, rank), rank)
    return {node: rank[-1] for node, rank in best.items()}


def language_rank(tag: str, languages: Sequence[str]) -> tuple[int, bool]:
    """Rank a language tag (lower is better). An unlisted regional tag (de-AT) comes right after its language (de)."""
    tag, listed = tag.lower(), [language.lower() for language in languages]
    if tag in listed:
        return listed.index(tag), False
    wider = (rank for rank, language in enumerate(listed) if language and tag.startswith(f"{language}-"))
    return next(wider, len(listed)), True


def with_labels(
    values: Iterable[Value],
    *,
    schema: Schema,
    labels: Callable[..., dict[Entity, str]],
    edges: Callable[..., list[tuple[Entity, Step, Value]]],
    describe: bool,
) -> list[Named]:
    """Return each value with its name, see `KnowledgeGraph.named`.

    Args:
        labels: returns the labels of entities.
        edges: returns outward edges of nodes, at most `limit` of each.
        describe: whether to describe opaque ids, too: the first `MAX_DESCRIBED` in the order of ids.
    """
    values = list(values)
    found = labels(v for v in values if isinstance(v, Entity))
    nameless = [v for v in dict.fromkeys(values) if isinstance(v, Entity) and v not in found]
    unnamed = [v for v in nameless if is_anonymous(v.iri)]
    opaque = sorted((v for v in nameless if describe and _is_opaque(v, schema)), key=str)[:MAX_DESCRIBED]
    wanted = list(dict.fromkeys([*unnamed, *opaque]))
    try:
        described = _describe(wanted, schema, labels, edges) if wanted else {}
    except StoreError:  # a description is not worth an answer
        described = dict.fromkeys(unnamed, UNNAMED)
    result = []
    for value in values:
        if isinstance(value, Literal):
            result.append(Named(value, "", value.value))
        else:
            short = schema.short_id(value.iri)
            words = short if _is_opaque(value, schema) else local_words(value.iri)
            about = described.get(value, "")
            name = found.get(value) or (about if is_anonymous(value.iri) else "") or words
            result.append(Named(value, short, name, description="" if name == about else about))
    return result


def _is_opaque(node: Entity, schema: Schema) -> bool:
    """Return whether the id of a node has no words, as in Freebase and Wikidata."""
    return bool(schema.id_base) and schema.short_id(node.iri) != node.iri


def _describe(
    nodes: Sequence[Entity],
    schema: Schema,
    labels: Callable[..., dict[Entity, str]],
    edges: Callable[..., list[tuple[Entity, Step, Value]]],
) -> dict[Entity, str]:
    """Describe nodes by a type or else an edge; a blank node without edges is an unknown value."""

    def rank(edge: tuple[Entity, Step, Value]) -> tuple[bool, bool, str, str]:
        _, step, value = edge
        general = isinstance(value, Entity) and value.iri.startswith(schema.noise_prefixes)
        return step.relation not in schema.types, general, step.relation, str(value)

    every = edges([node for node in nodes if not is_blank_node(node)], limit=EDGES_READ)
    known = {node: (step.relation, value) for node, step, value in sorted(every, key=rank, reverse=True)}
    words = labels([v for edge in known.values() for v in (Entity(edge[0]), edge[1]) if isinstance(v, Entity)])
    # a server cannot be asked about its own blank nodes
    own = ("_:", "nodeID:")
    found = {node: UNKNOWN if is_anonymous(node.iri) and not node.iri.startswith(own) else UNNAMED for node in nodes}
    for node, (relation, value) in known.items():
        text = value.value if isinstance(value, Literal) else words.get(value) or split_words(local_words(value.iri))
        about = "" if relation in schema.types else f"with {relation_words(relation, schema)} "
        found[node] = f"{UNNAMED} {about}{text}"
    return found


def is_blank_node(value: Value) -> bool:
    """Return whether a value is a blank node, which no query can name."""
    return isinstance(value, Entity) and value.iri.startswith("_:")


Labels = dict[Entity, str]
FindLabels = Callable[[Sequence[Entity]], Labels]


def find_relation_labels(relations: Iterable[str], schema: Schema, find_labels: FindLabels) -> dict[str, str]:
    """Return the labels of relations: of their `Schema.label_subject`, or else of the relation itself."""
    subjects = {relation: Entity(schema.label_subject(relation)) for relation in relations}
    labels = find_labels(list(dict.fromkeys(subjects.values())))
    own = [Entity(relation) for relation, s in subjects.items() if s not in labels and s.iri != relation]
    labels = {**labels, **find_labels(own)}
    found = {relation: labels.get(s) or labels.get(Entity(relation)) for relation, s in subjects.items()}
    return {relation: label for relation, label in found.items() if label}


def declared_labels(schema: Schema, read: Select) -> Labels:
    """Return the labels of all relations that the graph declares, in one query per label predicate.

    Raises the same errors as `GraphTables.read`.
    """
    declared_by, *kinds = map(Entity, schema.declared_by)
    nodes = {"declared_by": declared_by, "kinds": kinds, "languages": languages_of(schema)}
    labels: list[Row] = []
    for predicate in map(Entity, schema.label):
        rows = read("declared_labels", what="The labels of relations", predicate=predicate, **nodes)
        labels += [(node, predicate, label) for node, label in rows]
    return _best_labels(labels, schema)
