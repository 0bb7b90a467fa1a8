"""Labels and aliases of entities and relations, looked up for many nodes in one query, and the units of numbers.

If a node has several labels, one is chosen by the schema's order of predicates, then by language, then by text. Every
engine therefore gives the same label. The unit of a number is that of its relation, of a node that holds the number and
its unit, of its datatype, or in the name of the relation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import StoreError
from kgqa.graph.editing import Changes, batches
from kgqa.graph.query.text import Variable
from kgqa.graph.store import Row
from kgqa.graph.tables.graph_reader import Select
from kgqa.model import Entity, Literal, Named, RelationPath, Step, Value
from kgqa.model.conditions import XSD
from kgqa.schema import Schema
from kgqa.text.words import clean, is_anonymous, local_name, local_words, relation_words, short_words, split_words

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
    for batch in batches(nodes, BATCH) if iris else ():
        rows += select("values_of", nodes=batch, predicates=iris, predicate=predicate, languages=languages)
    return rows


def values_around(
    changes: Changes, nodes: Iterable[Entity], predicates: Sequence[str], *, select: Select
) -> tuple[set[tuple[Entity, Entity, Value]], set[tuple[Entity, Entity, Value]]]:
    """Return node, predicate and value for all values of nodes by some predicates, before and after some changes."""
    after = set(values_of(sorted(nodes, key=str), predicates, select=select))
    added, removed = (
        {(each.subject, Entity(each.relation), each.object) for each in triples if each.relation in predicates}
        for triples in (changes.added, changes.removed)
    )
    return (after - added) | removed, after


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


_IN_BRACKETS = re.compile(r"[(\[]\s*(in\s+)?([^()\[\]]{1,30}?)\s*[)\]]$")
_CLEAR = frozenset(
    {"metres", "meters", "kilometres", "kilometers", "km", "centimetres", "centimeters", "cm", "millimetres",
     "millimeters", "mm", "miles", "feet", "inches", "kilograms", "kg", "grams", "tonnes", "pounds", "litres", "liters",
     "hectares", "acres", "percent", "kelvin", "celsius", "fahrenheit", "watts", "volts", "hertz", "usd", "eur", "gbp",
     "ft", "mph", "km/h", "m/s", "km²", "km2", "m²", "m2", "m³", "m3", "km³", "km3", "cm²", "cm³", "kg/m³", "g/cm³",
     "°c", "°f", "%", "€", "$", "£"}
)  # fmt: skip
"""Units that mean nothing else at the end of a relation's name: plurals, as in `height_meters`, and symbols."""
_AFTER_MEASURE = frozenset(
    {"metre", "meter", "kilometre", "kilometer", "centimetre", "centimeter", "millimetre", "millimeter", "mile", "foot",
     "inch", "kilogram", "gram", "tonne", "pound", "litre", "liter", "hectare", "acre", "watt", "volt", "pascal",
     "m", "g", "l"}
)  # fmt: skip
"""Units that mean something else in other names, as in `left foot`: they are units after "in" or a measure."""
_MEASURES = frozenset(
    {"altitude", "area", "capacity", "depth", "diameter", "distance", "elevation", "height", "length", "mass", "power",
     "pressure", "radius", "range", "size", "thickness", "voltage", "volume", "weight", "width", "in"}
)  # fmt: skip
_POWERS = frozenset({"square", "sq", "cubic"})
_SCALES = frozenset({"thousand", "thousands", "million", "millions", "billion", "billions"})
_UNTYPED = (XSD, "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.opengis.net/")


@dataclass(frozen=True, slots=True)
class Units:
    """The units of the numbers at the end of a path.

    `of_holders`: for each number that was read, the units of the nodes that hold it. `declared`, `named`: the units
    that the graph gives to the relation, and that in its name.
    """

    of_holders: Mapping[Value, frozenset[str]]
    declared: frozenset[str]
    named: frozenset[str]

    def of(self, number: Value) -> frozenset[str]:
        """Return the units of a number: none if unknown, several if several nodes hold it.

        A number that was not read has no unit if others have one from their holders, because its own may differ.
        """
        if held := self.of_holders.get(number):
            return held
        if number not in self.of_holders and any(self.of_holders.values()):
            return frozenset()
        return self.declared or _by_datatype(number) or self.named


def units_of(
    path: RelationPath,
    walks: Sequence[Sequence[Value]],
    *,
    schema: Schema,
    relation_labels: Mapping[str, str],
    select: Select,
    find_labels: FindLabels,
) -> Units:
    """Find the units of the numbers at the end of a path.

    Args:
        path: a path that ends in numbers.
        walks: some walks along the path.
        select: renders a template of queries/ and runs the query.
        find_labels: returns the labels of entities.

    Raises:
        StoreTimeout, PartialResult: the units could not be read in time, or not completely.
        StoreError: other errors of `Store.select`.
    """
    relation = path.steps[-1].relation
    subject = Entity(schema.label_subject(relation))
    beside = [unit for amount, unit in schema.units_of_values if amount == relation]
    holders = [node for walk in walks for node in walk[-2:-1] if isinstance(node, Entity)]
    rows = values_of(list(dict.fromkeys(holders)), beside, select=select)
    rows += values_of([subject], schema.units_of_relations, select=select)
    labels = find_labels([unit for *_, unit in rows if isinstance(unit, Entity)])
    units: dict[Value | None, frozenset[str]] = {}
    for node, _, unit in rows:
        text = unit.value if isinstance(unit, Literal) else labels.get(unit) or schema.short_id(unit.iri)
        units[node] = units.get(node, frozenset()) | {clean(text)}
    of_holders: dict[Value, frozenset[str]] = {}
    for *_, holder, number in walks:
        of_holders[number] = of_holders.get(number, frozenset()) | units.get(holder, frozenset())
    named = frozenset(_by_name(short_words(relation, schema, relation_labels)))
    return Units(of_holders, units.get(subject, frozenset()), named)


def _by_datatype(number: Value) -> frozenset[str]:
    datatype = number.datatype if isinstance(number, Literal) else ""
    known = datatype and not datatype.startswith(_UNTYPED)
    return frozenset({split_words(local_name(datatype))} if known else ())


def _by_name(words: str) -> set[str]:
    """Return the unit in the name of a relation: `height (in m)`, `height meters`, `area square miles`."""
    if found := _IN_BRACKETS.search(words):
        before, unit = [*words[: found.start()].split(), *(found[1] or "").split()], found[2].split()
    else:
        every = words.split()
        start = -2 if every[-2:-1] and every[-2].lower() in _POWERS else -1
        before, unit = every[:start], every[start:]
    lower = [word.lower() for word in before]
    if not lower or len(unit) > 2 or any(word.lower() not in _POWERS for word in unit[:-1]):
        return set()
    if "per" in lower or lower[-1] in _SCALES | _POWERS | _CLEAR | _AFTER_MEASURE:
        return set()  # a part of a larger unit: people per mile, million usd, acre feet
    last = unit[-1] if unit[-1] in ("M", "MM") else unit[-1].lower()  # M and MM are millions
    known = last in _CLEAR or (last in _AFTER_MEASURE and lower[-1] in _MEASURES)
    return {" ".join(unit)} if known else set()
