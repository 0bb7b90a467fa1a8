"""Whether a graph is what one takes it for: its size, its schema, its names, its relations, entities one knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from kgqa.doctor.checks import Check, seconds_words
from kgqa.doctor.sample import Sample
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.templates import render
from kgqa.graph.store import Store, single_count
from kgqa.graph.tables.labels import LABEL_BATCH, languages_of
from kgqa.model import Entity, Literal
from kgqa.schema import BUNDLED, Schema, bundled_schema
from kgqa.words import normalise

CLOSE = 0.5
"""A schema with this share of the best one's hits or more could be meant as well."""
FEW_LABELS, NO_LABELS = 0.8, 0.1
FEW_PROBES = 0.5
BOTH_WAYS = 20
DOCS = "docs/schemas.md says how to write a schema file; give it by --schema FILE."


OF_SAMPLE = ("labels", "inverse relations")
READ_BY_SCHEMA = ("relation types", "mediators", "known entities", *OF_SAMPLE)


@dataclass(frozen=True)
class Fit:
    """How many of a schema's telling predicates a graph has: `hits` of `of`."""

    schema: Schema
    hits: int
    of: int

    @property
    def share(self) -> float:
        return self.hits / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{self.schema.name} {self.hits}/{self.of}"


Origin = OneOf["settings", "folder", "detected"]


def schema_fits(store: Store, view: Sequence[Entity], chosen: Schema | None = None) -> list[Fit]:
    """How well the bundled schemas fit, and the chosen one where it is another; of a fallback schema the predicates for
    labels count.

    Raises:
        StoreTimeout, StoreUnavailable, QueryRejected: see `Store`.
    """
    schemas = [bundled_schema(name) for name in BUNDLED]
    if chosen is not None and chosen.name not in BUNDLED:
        schemas.append(chosen)
    known: dict[str, bool] = {}

    def has(predicate: str) -> bool:
        if predicate not in known:
            known[predicate] = store.ask(render("has_predicate", view=view, predicate=Entity(predicate)), fresh=True)
        return known[predicate]

    fits = []
    for schema in schemas:
        telling = schema.label if schema.fallback else schema.detect
        fits.append(Fit(schema, sum(map(has, telling)), len(telling)))
    return fits


def best_schema(fits: Sequence[Fit]) -> Schema:
    """The schema with the largest share of its telling predicates there, the first of equals; else the fallback."""
    telling = [fit for fit in fits if not fit.schema.fallback]
    best = max(telling, key=lambda fit: fit.share)
    return best.schema if best.hits else next(fit.schema for fit in fits if fit.schema.fallback)


def judge_schema(chosen: Schema, fits: Sequence[Fit], *, origin: Origin) -> Check:
    """The verdict on a schema.

    Args:
        fits: of all schemas, the chosen one among them. origin: who chose it.
    """
    name = "schema"
    own = next(fit for fit in fits if fit.schema.name == chosen.name)
    others = sorted(
        (fit for fit in fits if fit.schema.name != chosen.name and not fit.schema.fallback), key=lambda fit: -fit.share
    )
    best = others[0] if others and others[0].hits else None
    who = {"settings": "as the settings say", "folder": "kept with the graph", "detected": "detected"}[origin]
    found = f"{chosen.title} ({who}): {own.hits} of {own.of} telling predicates are there."
    if own.of == 0:
        return Check(name, "ok", f"{chosen.title} ({who}); it names no telling predicates.")
    if own.hits == 0:
        if chosen.fallback:
            return Check(name, "warning", "No schema fits, and nothing has a name: IRIs are read as words.", DOCS)
        remedy = f"Give the schema that fits: --schema {best.schema.name}." if best else DOCS
        also = f" {best.schema.title} would fit: {best.hits} of {best.of}." if best else ""
        return Check(name, "failed", f"{found}{also}", remedy)
    if best and not chosen.fallback and best.share > own.share:
        return Check(name, "warning", f"{found} {best.schema.title} fits better: {best.hits} of {best.of}.", _say(best))
    if best and not chosen.fallback and best.share >= CLOSE * own.share:
        also = f" {best.schema.title} comes close: {best.hits} of {best.of}."
        return Check(name, "warning", found + also, f"Say which it is: --schema {chosen.name} or {best.schema.name}.")
    if best and chosen.fallback:
        also = f" {best.schema.title} fits in part: {best.hits} of {best.of}."
        return Check(name, "warning" if best.share >= CLOSE else "ok", found + also, _say(best))
    return Check(name, "ok", found)


def _say(fit: Fit) -> str:
    return f"If it is that, say so: --schema {fit.schema.name}."


def check_labels(graph: KnowledgeGraph, sample: Sample) -> Check:
    """What share of the entities that exploration reaches has a name, and in which languages.

    Raises:
        StoreTimeout, StoreUnavailable, QueryRejected: see `Store`.
    """
    entities = sample.entities[: 4 * LABEL_BATCH]
    languages = {literal.value.lower() for literal in languages_of(graph.schema)}
    named: dict[Entity, bool] = {}
    for predicate in graph.schema.label:
        for start in range(0, len(entities), LABEL_BATCH):
            nodes = [entity for entity in entities[start : start + LABEL_BATCH] if not named.get(entity)]
            if nodes:
                query = render("labels", view=graph.view, nodes=nodes, predicate=Entity(predicate), languages=[])
                for node, label in graph.store.select(query, fresh=True):
                    if isinstance(node, Entity) and isinstance(label, Literal):
                        named[node] = named.get(node, False) or _is_in(label.language, languages)
    tags = ", ".join(language for language in graph.schema.languages if language)
    shown = f"{tags} or without a language" if "" in graph.schema.languages else tags
    check = judge_labels(
        sum(named.values()), len(named), len(entities), languages=shown, fallback=graph.schema.fallback
    )
    if sample.missed is None:
        return check
    verdict = "warning" if check.verdict == "ok" else check.verdict
    return replace(
        check, verdict=verdict, found=f"{check.found} Not all edges of the sample were seen: {sample.missed}"
    )


def _is_in(tag: str, languages: set[str]) -> bool:
    tag = tag.lower()
    return tag in languages or any(language and tag.startswith(f"{language}-") for language in languages)


def judge_labels(wanted: int, named: int, of: int, *, languages: str, fallback: bool) -> Check:
    """The verdict on labels: of so many entities some are named at all, and some in the languages that are wanted."""
    name = "labels"
    if of == 0:
        return Check(name, "skipped", "No relation leads to an entity that could have a label.")
    found = f"{wanted} of {of} sampled entities have a label in {languages}"
    found += f"; {named - wanted} more in other languages." if named > wanted else "."
    if wanted >= FEW_LABELS * of:
        return Check(name, "ok", found)
    if named >= FEW_LABELS * of:
        return Check(
            name, "warning", found, "Say which languages you want: languages in the schema, or graph.languages."
        )
    load = "Load the triples that name things, or name their predicate in the schema."
    if named < NO_LABELS * of and not fallback:
        return Check(name, "failed", f"{found} Questions find entities by their names.", load)
    return Check(name, "warning", found, load)


def check_inverses(graph: KnowledgeGraph, sample: Sample) -> Check:
    """Whether the graph says which relations are each other's inverses, and whether it holds both as triples.

    Raises:
        StoreTimeout, StoreUnavailable, QueryRejected: see `Store`.
    """
    name = "inverse relations"
    if not graph.schema.inverse:
        return Check(name, "skipped", "The schema names no predicate for inverse relations.")
    pairs = {tuple(sorted(pair)) for pair in graph.inverses.items()}
    predicates = ", ".join(map(graph.schema.short_id, graph.schema.inverse))
    if not pairs:
        found = f"The graph declares none ({predicates}): should it have such, both are candidates."
        return Check(name, "ok", found)
    edges = there = 0
    for relation, sampled in sample.edges.items():
        inverse = graph.inverse(relation)
        if inverse:
            some = list(sampled[:BOTH_WAYS])
            query = render("doctor_both_ways", view=graph.view, inverse=Entity(inverse), pairs=some)
            count = single_count(graph.store.select(query, fresh=True))
            edges, there = edges + len(some), there + min(len(some), count)
    found = f"{len(pairs):,} pairs are declared ({predicates})."
    if edges:
        found += f" Of {edges} sampled edges {there} stand in the graph the other way round, too."
    return Check(name, "ok", found)


def check_types(graph: KnowledgeGraph) -> Check:
    """Whether the graph says what its relations lead to."""
    name = "relation types"
    predicates = ", ".join(map(graph.schema.short_id, (*graph.schema.range, *graph.schema.domain)))
    if not predicates:
        return Check(name, "skipped", "The schema names no predicate for what relations lead to.")
    types, all_ = graph.tables.types, len(graph.relations)
    found = f"Of {len(types['out']):,} of {all_:,} relations the range is known, of {len(types['in']):,} the domain."
    if types["out"]:
        return Check(name, "ok", found)
    fits = f"The expected type of an answer cannot be told by {predicates}."
    verdict = "ok" if graph.schema.fallback else "warning"
    return Check(name, verdict, f"{found} {fits}", "Load the triples of the schema with the facts, if there are such.")


def check_mediators(graph: KnowledgeGraph) -> Check:
    """Whether it is known which relations lead to mediators."""
    name, schema = "mediators", graph.schema
    rules = (schema.mediator_types, schema.mediator_marked_by, schema.mediator_iri_prefixes, schema.mediator_object_of)
    if not any((*rules, schema.mediator_subject_of)):
        return Check(name, "skipped", "The schema has no mediators.")
    leads = graph.mediators.leads
    count = sum(extent != "none" for side in leads.values() for extent in side.values())
    found = f"{count:,} relations lead to mediators."
    if schema.mediator_marked_by and not graph.mediators.marks:
        marker = schema.short_id(schema.mediator_marked_by[0])
        found += f" No type is marked as one by {marker}: others cannot be told from things with a name."
        return Check(name, "warning", found, "Load the triples of the schema with the facts.")
    return Check(name, "ok", found)


def check_tables(graph: KnowledgeGraph) -> Check:
    """Derive what every question needs of the whole graph, and say what could not be.

    Raises:
        StoreTimeout, StoreUnavailable, QueryRejected: see `Store`.
    """
    started = time.monotonic()
    graph.prepare()
    graph.inverses  # noqa: B018
    return judge_tables(graph.notes, time.monotonic() - started)


def judge_tables(notes: Sequence[str], seconds: float) -> Check:
    """The verdict on what is derived; `notes`: what is not known of a graph that is too large."""
    name = "tables"
    if notes:
        return Check(
            name,
            "warning",
            " ".join(notes),
            "Nothing is to be done about a graph of this size. See docs/schemas.md, Graphs too large to look at all of them.",
        )
    return Check(name, "ok", f"What questions need of the whole graph was derived in {seconds_words(seconds)}.")


@dataclass(frozen=True)
class Probe:
    """An entity that a graph of this family should have: the names it has here, None where it is not there at all."""

    id: str
    expected: str
    names: tuple[str, ...] | None

    @property
    def outcome(self) -> OneOf["found", "unnamed", "other", "absent"]:
        if self.names is None:
            return "absent"
        if not self.names:
            return "unnamed"
        return "found" if normalise(self.expected) in map(normalise, self.names) else "other"


def check_probes(graph: KnowledgeGraph) -> Check:
    """Whether entities that are well known have the ids and names that they should have.

    Raises:
        StoreTimeout, StoreUnavailable, QueryRejected: see `Store`.
    """
    return judge_probes([_probe(graph, Entity(iri), label) for iri, label in graph.schema.probes], graph.schema)


def _probe(graph: KnowledgeGraph, entity: Entity, expected: str) -> Probe:
    names: list[str] = []
    for predicate in (*graph.schema.label, *graph.schema.alias):
        query = render("labels", view=graph.view, nodes=[entity], predicate=Entity(predicate), languages=[])
        names += [row[1].value for row in graph.store.select(query, fresh=True) if isinstance(row[1], Literal)]
    there = bool(names) or graph.store.ask(render("exists", view=graph.view, entity=entity), fresh=True)
    return Probe(graph.schema.short_id(entity.iri), expected, tuple(names) if there else None)


def judge_probes(probes: Sequence[Probe], schema: Schema) -> Check:
    """The verdict on entities one knows."""
    name = "known entities"
    if not probes:
        return Check(name, "skipped", f"The schema {schema.name} names none ([probes] entities).")
    wrong = [probe for probe in probes if probe.outcome == "other"]
    if wrong:
        told = "; ".join(f"{p.id} should be {p.expected} and is {(p.names or ('?',))[0][:60]}" for p in wrong[:3])
        remedy = "This is another graph than it seems to be: look at what was loaded, or give its schema."
        return Check(name, "failed", f"{len(wrong)} of {len(probes)} have other names: {told}.", remedy)
    found = [probe for probe in probes if probe.outcome != "absent"]
    unnamed = [probe for probe in found if probe.outcome == "unnamed"]
    text = f"{len(found)} of {len(probes)} are there"
    text += f", {len(unnamed)} of them without a name" if unnamed else ""
    missing = [f"{p.id} {p.expected}" for p in probes if p.outcome == "absent"]
    text += f"; not there: {', '.join(missing[:5])}." if missing else "."
    if not found:
        if schema.fallback:
            return Check(name, "ok", text)
        remedy = f"Is this all of {schema.title}? A graph of one's own needs a schema without these [probes]."
        return Check(name, "failed", text, remedy)
    if len(found) - len(unnamed) < FEW_PROBES * len(probes):
        return Check(name, "warning", text, "If this should be more than a slice, look at what was loaded.")
    return Check(name, "ok", text)


def count_triples(store: Store, view: Sequence[Entity]) -> tuple[int | None, float]:
    """How many triples there are, None where counting takes too long, and the seconds that it took.

    Raises:
        StoreUnavailable, QueryRejected: see `Store`.
    """
    started = time.monotonic()
    try:
        count = single_count(store.select(render("count_triples", view=view), fresh=True))
    except (StoreTimeout, PartialResult):
        return None, time.monotonic() - started
    return count, time.monotonic() - started


def judge_count(triples: int | None, seconds: float, fingerprint: str) -> Check:
    """The verdict on counting; without a fingerprint, that would have taken too long."""
    name = "triples"
    if triples is None:
        found = f"They could not be counted in {seconds_words(seconds)}, so there is no fingerprint."
        return Check(name, "warning", found, "A question has more time for it, and keeps the result for a day.")
    if not fingerprint:
        found = (
            f"{triples:,} triples, counted in {seconds_words(seconds)}. The fingerprint, which takes longer, is left to"
        )
        return Check(name, "ok", f"{found} the first question.")
    return Check(name, "ok", f"{triples:,} triples, fingerprint {fingerprint}.")
