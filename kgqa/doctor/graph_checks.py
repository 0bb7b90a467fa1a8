"""Checks of a graph's content: size, schema, labels, relations, well-known entities."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal as OneOf
from typing import NamedTuple, get_args

from kgqa.doctor.checks import Check, failed, ok, seconds_words, skipped, warning
from kgqa.doctor.limited_store import LimitedStore
from kgqa.doctor.sample import draw_sample
from kgqa.doctor.subject import MISFIT, Subject
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.endpoint.store import MAX_SCANNED_TRIPLES
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.templates import render
from kgqa.graph.store import single_count
from kgqa.graph.tables.labels import LABEL_BATCH, languages_of
from kgqa.model import Entity, Literal
from kgqa.schema import BUNDLED, Schema, bundled_schema, language_list, load_schema
from kgqa.words import normalise

FAST_COUNT = 1.0
"""If counting the triples takes more seconds, no fingerprint is computed, because it needs about ten counts."""
CLOSE = 0.5
"""A schema whose share of predicates is at least this fraction of the chosen schema's share is also plausible."""
FEW_LABELS, NO_LABELS = 0.8, 0.1
FEW_PROBES = 0.5
BOTH_WAYS = 20
DOCS = "Write a schema file (docs/schemas.md) and add --schema FILE."
NO_EDGES = "There are no edges between entities, so there is nothing to explore."
OWN_IDS = "The demo graph does not contain the well-known entities."


def check_triples(subject: Subject) -> Check:
    """Count the triples, and compute the fingerprint if that does not take long."""
    assert subject.id is not None
    store, iris, started = subject.store, subject.id.iris, time.monotonic()
    try:
        triples: int | None = (
            store.triples_of(iris)
            if store.server is None
            else single_count(store.select(render("count_triples", view=subject.view), fresh=True))
        )
    except (StoreTimeout, PartialResult):
        triples = None
    took = time.monotonic() - started
    fast = triples is not None and took <= FAST_COUNT
    fingerprint = store.fingerprint_of(iris) if fast or store.server is None else ""
    subject.id = replace(subject.id, fingerprint=fingerprint, triples=triples)
    return judge_count(triples, took, fingerprint)


def judge_count(triples: int | None, seconds: float, fingerprint: str) -> Check:
    """Judge the count of triples. `fingerprint` is empty if computing it would take too long."""
    if triples is None:
        return warning(
            f"Counting took more than {seconds_words(seconds)}, so there is no fingerprint.",
            "Nothing needs to be done: questions allow more time for counting, and use the result for a day.",
        )
    if not fingerprint:
        found = f"{triples:,} triples, counted in {seconds_words(seconds)}."
        return ok(f"{found} The first question computes the fingerprint, which takes longer.")
    return ok(f"{triples:,} triples, fingerprint {fingerprint}.")


class SchemaFit(NamedTuple):
    """How many of a schema's characteristic predicates a graph has: `hits` out of `of`."""

    schema: Schema
    hits: int
    of: int

    @property
    def share(self) -> float:
        """`hits` divided by `of`; 0 if the schema has no characteristic predicates."""
        return self.hits / self.of if self.of else 0.0


Origin = OneOf["settings", "folder", "detected"]
Outcome = OneOf["found", "unnamed", "other", "absent"]
_ORIGINS = {"settings": "from the settings", "folder": "stored with the graph", "detected": "detected"}


def check_schema(subject: Subject) -> Check:
    """Choose the schema, check whether it fits the graph, and open the graph with it.

    Raises:
        SchemaError: the schema in the settings cannot be read.
    """
    settings, store = subject.settings, subject.store
    name = settings["graph.schema"] or store.settings.get("schema")
    origin: Origin = "settings" if settings["graph.schema"] else "folder" if name else "detected"
    given = load_schema(name) if name else None
    fits = schema_fits(store, subject.view, given)
    schema = given or best_schema(fits)
    check = judge_schema(schema, fits, origin=origin)
    if check.verdict == "failed":  # results under a wrong schema would be meaningless
        subject.reasons["graph"] = MISFIT
        return check
    assert subject.id is not None
    subject.id = replace(subject.id, schema=schema.name)
    countable = subject.triples is not None and subject.triples <= MAX_SCANNED_TRIPLES
    store.scans = store.server is None or (countable and not subject.public)
    subject.graph = KnowledgeGraph(
        store,
        schema,
        view=subject.id.iris,
        walks=settings["graph.walks"],
        frontier_cap=settings["graph.frontier_cap"],
        timeout=settings["graph.timeout"],
        # derived data is cached by fingerprint; without a cache, no time is spent on computing the fingerprint
        cache=subject.cache if subject.id.fingerprint else None,
        languages=language_list(settings["graph.languages"]),
    )
    return check


def schema_fits(store: LimitedStore, view: Sequence[Entity], chosen: Schema | None = None) -> list[SchemaFit]:
    """Count how many characteristic predicates of each bundled schema, and of the chosen schema, a graph has.

    A fallback schema has no characteristic predicates, so its label predicates are counted instead.
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
        fits.append(SchemaFit(schema, sum(map(has, telling)), len(telling)))
    return fits


def best_schema(fits: Sequence[SchemaFit]) -> Schema:
    """Return the first schema with the largest share of its predicates in the graph; if all are 0, the fallback."""
    telling = [fit for fit in fits if not fit.schema.fallback]
    best = max(telling, key=lambda fit: fit.share)
    return best.schema if best.hits else next(fit.schema for fit in fits if fit.schema.fallback)


def judge_schema(chosen: Schema, fits: Sequence[SchemaFit], *, origin: Origin) -> Check:
    """Judge whether the chosen schema fits the graph.

    Args:
        fits: the fits of all schemas, including the chosen schema.
        origin: where the choice of the schema comes from.
    """
    own = next(fit for fit in fits if fit.schema.name == chosen.name)
    others = sorted(
        (fit for fit in fits if fit.schema.name != chosen.name and not fit.schema.fallback), key=lambda fit: -fit.share
    )
    best = others[0] if others and others[0].hits else None
    title = f"{chosen.title} ({_ORIGINS[origin]})"
    found = f"{title}: the graph has {own.hits} of {own.of} characteristic predicates."
    if own.of == 0:
        return ok(f"{title}; it lists no characteristic predicates.")
    if own.hits == 0:
        if chosen.fallback:
            return warning("No schema fits and there are no labels, so IRIs are used as names.", DOCS)
        remedy = f"Use the schema that fits: --schema {best.schema.name}." if best else DOCS
        also = f" {best.schema.title} would fit: {best.hits} of {best.of}." if best else ""
        return failed(f"{found}{also}", remedy)
    if best is None:
        return ok(found)
    fit = f"{best.hits} of {best.of}."
    if_it_is = f"If the graph is {best.schema.title}, add --schema {best.schema.name}."
    if chosen.fallback:
        verdict = warning if best.share >= CLOSE else ok
        return replace(verdict(f"{found} {best.schema.title} fits partially: {fit}"), remedy=if_it_is)
    if best.share > own.share:
        return warning(f"{found} {best.schema.title} fits better: {fit}", if_it_is)
    if best.share >= CLOSE * own.share:
        remedy = f"Choose a schema: --schema {chosen.name} or --schema {best.schema.name}."
        return warning(f"{found} {best.schema.title} comes close: {fit}", remedy)
    return ok(found)


def check_labels(subject: Subject) -> Check:
    """Draw the sample, and check how many of the sampled entities have labels, and in which languages.

    Raises:
        StoreTimeout, PartialResult: no edges could be sampled.
    """
    graph, sample = subject.graph, draw_sample(subject.graph)
    if not sample.edges:
        if sample.missed:
            raise sample.missed
        return failed(NO_EDGES, "Load triples whose subject and object are entities.")
    subject.sample = sample
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
    found = f"{check.found} The sample is incomplete: {sample.missed.message}"
    return warning(found) if check.verdict == "ok" else replace(check, found=found)


def _is_in(tag: str, languages: set[str]) -> bool:
    tag = tag.lower()
    return tag in languages or any(language and tag.startswith(f"{language}-") for language in languages)


def judge_labels(wanted: int, named: int, of: int, *, languages: str, fallback: bool) -> Check:
    """Judge how many of the sampled entities have labels.

    Args:
        wanted: number of entities with a label in the wanted languages.
        named: number of entities with a label in any language.
        of: number of sampled entities.
    """
    if of == 0:
        return skipped("The sample contains no entities.")
    found = f"{wanted} of {of} sampled entities have a label in {languages}"
    found += f"; {named - wanted} more in other languages." if named > wanted else "."
    if wanted >= FEW_LABELS * of:
        return ok(found)
    if named >= FEW_LABELS * of:
        return warning(found, "Choose other languages: setting graph.languages, or names.languages in the schema file.")
    load = "Load the triples with labels, or add their predicate to names.label in the schema file."
    if named < NO_LABELS * of and not fallback:
        return failed(f"{found} Questions find entities by their labels.", load)
    return warning(found, load)


def check_inverses(subject: Subject) -> Check:
    """Check whether the graph declares inverse relations, and whether it stores both directions."""
    graph = subject.graph
    if not graph.schema.inverse:
        return skipped("The schema lists no predicate for inverse relations.")
    pairs = {tuple(sorted(pair)) for pair in graph.inverses.items()}
    predicates = ", ".join(map(graph.schema.short_id, graph.schema.inverse))
    if not pairs:
        return ok(
            f"No inverse relations declared ({predicates}), so relations and their inverses are separate candidates."
        )
    edges = there = 0
    for relation, sampled in subject.sample.edges.items():
        inverse = graph.inverse(relation)
        if inverse:
            some = list(sampled[:BOTH_WAYS])
            query = render("doctor_both_ways", view=graph.view, inverse=Entity(inverse), pairs=some)
            count = single_count(graph.store.select(query, fresh=True))
            edges, there = edges + len(some), there + min(len(some), count)
    found = f"{len(pairs):,} pairs of inverse relations declared ({predicates})."
    if edges:
        found += f" For {there} of {edges} sampled edges, the graph also stores the inverse edge."
    return ok(found)


def check_types(subject: Subject) -> Check:
    """Check whether the graph declares range and domain of its relations."""
    graph = subject.graph
    predicates = ", ".join(map(graph.schema.short_id, (*graph.schema.range, *graph.schema.domain)))
    if not predicates:
        return skipped("The schema lists no predicates for range and domain.")
    types, all_ = graph.tables.types, len(graph.relations)
    ranges, domains = len(types["out"]), len(types["in"])
    if ranges == domains:
        found = f"Range and domain known for {ranges:,} of {all_:,} relations."
    else:
        found = f"Range known for {ranges:,} and domain for {domains:,} of {all_:,} relations."
    if types["out"]:
        return ok(found)
    effect = f"Without these declarations ({predicates}), the expected type of an answer is not used."
    verdict = ok if graph.schema.fallback else warning
    return replace(verdict(f"{found} {effect}"), remedy="If there are triples with such declarations, load them too.")


def check_mediators(subject: Subject) -> Check:
    """Check whether the relations that lead to mediators are known."""
    graph, schema = subject.graph, subject.graph.schema
    rules = (schema.mediator_types, schema.mediator_marked_by, schema.mediator_iri_prefixes, schema.mediator_object_of)
    if not any((*rules, schema.mediator_subject_of)):
        return skipped("The schema has no mediators.")
    leads = graph.mediators.leads
    count = sum(extent != "none" for side in leads.values() for extent in side.values())
    found = f"{count:,} relations lead to mediators."
    if schema.mediator_marked_by and not graph.mediators.marks:
        marker = schema.short_id(schema.mediator_marked_by[0])
        found += f" No type is marked as a mediator by {marker}, so mediators with names are not recognised."
        return warning(found, "Load the triples about types too.")
    return ok(found)


def check_tables(subject: Subject) -> Check:
    """Derive the tables of the whole graph that questions need, and report what could not be derived."""
    graph, started = subject.graph, time.monotonic()
    graph.prepare()
    graph.inverses  # noqa: B018
    if graph.notes:
        remedy = "This is expected for a graph of this size. See docs/schemas.md, section Very large graphs."
        return warning(" ".join(graph.notes), remedy)
    return ok(f"The tables of the whole graph were derived in {seconds_words(time.monotonic() - started)}.")


class KnownEntity(NamedTuple):
    """A well-known entity, and its `names` in the graph; `names` is None if the graph does not contain the entity."""

    id: str
    expected: str
    names: tuple[str, ...] | None

    @property
    def outcome(self) -> Outcome:
        """Compare the names found with the expected name."""
        if not self.names:
            return "absent" if self.names is None else "unnamed"
        return "found" if normalise(self.expected) in map(normalise, self.names) else "other"


def check_known_entities(subject: Subject) -> Check:
    """Check whether well-known entities have the expected ids and names."""
    graph = subject.graph
    if not subject.settings["graph.path"]:
        return skipped(OWN_IDS)
    return judge_known_entities([_probe(graph, Entity(iri), label) for iri, label in graph.schema.probes], graph.schema)


def _probe(graph: KnowledgeGraph, entity: Entity, expected: str) -> KnownEntity:
    names: list[str] = []
    for predicate in (*graph.schema.label, *graph.schema.alias):
        query = render("labels", view=graph.view, nodes=[entity], predicate=Entity(predicate), languages=[])
        names += [row[1].value for row in graph.store.select(query, fresh=True) if isinstance(row[1], Literal)]
    there = bool(names) or graph.store.ask(render("exists", view=graph.view, entity=entity), fresh=True)
    return KnownEntity(graph.schema.short_id(entity.iri), expected, tuple(names) if there else None)


def judge_known_entities(probes: Sequence[KnownEntity], schema: Schema) -> Check:
    """Judge whether the well-known entities were found."""
    if not probes:
        return skipped(f"The schema {schema.name} lists no well-known entities ([probes] entities).")
    by_outcome = {outcome: [probe for probe in probes if probe.outcome == outcome] for outcome in get_args(Outcome)}
    if wrong := by_outcome["other"]:
        examples = "; ".join(f"{p.id} should be {p.expected} but is {(p.names or ('?',))[0][:60]}" for p in wrong[:3])
        return failed(
            f"{len(wrong)} of {len(probes)} well-known entities have other names: {examples}.",
            "The graph may be a different one: check what was loaded, or choose its schema with --schema.",
        )
    named, unnamed = len(by_outcome["found"]), len(by_outcome["unnamed"])
    text = f"Found {named + unnamed} of {len(probes)}" + (f", {unnamed} of them without a name" if unnamed else "")
    missing = [f"{probe.id} {probe.expected}" for probe in by_outcome["absent"]]
    text += f"; missing: {', '.join(missing[:5])}." if missing else "."
    if named + unnamed == 0 and not schema.fallback:
        remedy = f"Check that all of {schema.title} was loaded. For a graph of your own, use a schema without [probes]."
        return failed(text, remedy)
    if named + unnamed > 0 and named < FEW_PROBES * len(probes):
        return warning(text, "If the graph should contain them, check whether all files were loaded.")
    return ok(text)
