"""Checks of a graph's content: size, schema, labels, relations, well-known entities."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from kgqa.doctor.checks import Check, failed, first_case, ok, seconds_words, skipped, warning
from kgqa.doctor.sample import draw_sample, names_of, select
from kgqa.doctor.subject import Subject
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.detection import MEDIATOR_REMEDY, SchemaFit, best_schema, missing_mediators, schema_fits
from kgqa.graph.endpoint.store import MAX_SCANNED_TRIPLES
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.templates import render
from kgqa.graph.store import single_count
from kgqa.graph.tables.labels import LABEL_BATCH, language_rank
from kgqa.model import Entity
from kgqa.schema import BUNDLED, Schema, bundled_schema, language_list, load_schema
from kgqa.storage.corpus_file import read_corpus_file
from kgqa.text.words import counted, normalise

FAST_COUNT = 1.0
"""If counting the triples takes more seconds, no fingerprint is computed, because it needs about ten counts."""
CLOSE = 0.5
"""A schema whose share of predicates is at least this fraction of the chosen schema's share is also plausible."""
FEW_LABELS, NO_LABELS = 0.8, 0.1
FEW_PROBES = 0.5
BOTH_WAYS = 20
DOCS = "Write a schema file (docs/schemas.md) and add --schema FILE."
OWN_MEDIATORS = "name them in a schema file (docs/schemas.md, Mediators)."
NO_EDGES = "There are no edges between entities, so there is nothing to explore."


def check_triples(subject: Subject) -> Check:
    """Count the triples, and compute the fingerprint if that does not take long."""
    assert subject.id is not None
    store, iris, started = subject.store, subject.id.iris, time.monotonic()
    query, triples = render("count_triples", view=subject.view), None
    with suppress(StoreTimeout, PartialResult):
        is_server = hasattr(subject, "server")
        triples = single_count(store.select(query, fresh=True)) if is_server else store.triples_of(iris)
    took = time.monotonic() - started
    if triples is None:
        return warning(
            f"Counting took more than {seconds_words(took)}, so there is no fingerprint.",
            "Nothing needs to be done: questions allow more time for counting, and use the result for a day.",
        )
    fingerprint = store.fingerprint_of(iris) if took <= FAST_COUNT or not store.capabilities.remote else ""
    subject.id = replace(subject.id, fingerprint=fingerprint, triples=triples)
    later = f"counted in {seconds_words(took)}. The first question computes the fingerprint, which takes longer."
    return ok(f"{counted(triples, 'triple')}, " + (f"fingerprint {fingerprint}." if fingerprint else later))


def check_schema(subject: Subject) -> Check:
    """Choose the schema, check whether it fits the graph, and open the graph with it.

    Raises:
        SchemaError: the schema in the settings cannot be read.
    """
    assert subject.id is not None
    settings, store = subject.settings, subject.store
    corpus = read_corpus_file(settings.graph.path)
    name = settings.graph.schema or (corpus.schema_source if corpus else store.settings.get("schema"))
    origin = "from the settings" if settings.graph.schema else "stored with the graph" if name else "detected"
    given = load_schema(name) if name else None
    own = [given] if given and given.name not in BUNDLED else []
    fits = schema_fits(store, subject.id.iris, [*map(bundled_schema, BUNDLED), *own])
    schema = given or best_schema(fits)
    check = judge_schema(schema, fits, origin=origin)
    if check.verdict == "failed":  # results under a wrong schema would be meaningless
        subject.reasons["graph"] = "The schema does not fit the graph."
        return check
    subject.id = replace(subject.id, schema=schema.name)
    countable = subject.triples is not None and subject.triples <= MAX_SCANNED_TRIPLES
    store.scans = not store.capabilities.remote or (countable and hasattr(subject, "bears_load"))
    subject.graph = KnowledgeGraph(
        store,
        schema,
        view=subject.id.iris,
        walks=settings.graph.walks,
        frontier_cap=settings.graph.frontier_cap,
        timeout=settings.graph.timeout,
        # derived data is cached by fingerprint; without a cache, no time is spent on computing the fingerprint
        cache=subject.cache if subject.id.fingerprint else None,
        languages=language_list(settings.graph.languages),
    )
    subject.opened.callback(subject.graph.close)
    return check


def judge_schema(chosen: Schema, fits: Sequence[SchemaFit], *, origin: str) -> Check:
    """Judge whether the chosen schema fits the graph.

    Args:
        fits: the fits of all schemas, including the chosen schema.
        origin: where the choice of the schema comes from.
    """
    own = next(fit for fit in fits if fit.schema.name == chosen.name)
    others = [fit for fit in fits if fit.schema.name != chosen.name and not fit.schema.fallback]
    best = max(others, key=lambda fit: fit.share)
    title, other, fit = f"{chosen.title} ({origin})", best.schema, f"{best.hits} of {best.of}."
    found = f"{title}: the graph has {own.hits} of {own.of} characteristic predicates."
    either = f"Choose a schema: --schema {chosen.name} or --schema {other.name}."
    if_it_is = f"If the graph is {other.title}, add --schema {other.name}."
    partially = f"{found} {other.title} fits partially: {fit}"
    use_it = f"Use the schema that fits: --schema {other.name}."
    return first_case(
        (own.of == 0, ok(f"{title}; it lists no characteristic predicates.")),
        (
            own.hits == 0 and chosen.fallback,
            warning("No schema fits and there are no labels, so IRIs are used as names.", DOCS),
        ),
        (own.hits == 0 and best.hits, failed(f"{found} {other.title} would fit: {fit}", use_it)),
        (own.hits == 0, failed(found, DOCS)),
        (best.hits == 0, ok(found)),
        (chosen.fallback and best.share >= CLOSE, warning(partially, if_it_is)),
        (chosen.fallback, ok(partially, if_it_is)),
        (best.share > own.share, warning(f"{found} {other.title} fits better: {fit}", if_it_is)),
        (best.share >= CLOSE * own.share, warning(f"{found} {other.title} comes close: {fit}", either)),
        otherwise=ok(found),
    )


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
    entities, languages = sample.entities[: 4 * LABEL_BATCH], graph.schema.languages
    labels = [(node, label.language) for node, label in names_of(graph, entities, graph.schema.label)]
    wanted = {node for node, language in labels if language_rank(language, languages)[0] < len(languages)}
    tags = ", ".join(filter(None, languages)) + (" or without a language" if "" in languages else "")
    check = judge_labels(len(wanted), len(dict(labels)), len(entities), languages=tags, fallback=graph.schema.fallback)
    if sample.missed is None:
        return check
    found = f"{check.found} The sample is incomplete: {sample.missed.message}"
    return warning(found) if check.verdict == "ok" else replace(check, found=found)


def judge_labels(wanted: int, named: int, of: int, *, languages: str, fallback: bool) -> Check:
    """Judge how many of the sampled entities have labels.

    Args:
        wanted: number of entities with a label in the wanted languages.
        named: number of entities with a label in any language.
        of: number of sampled entities.
    """
    more = f"; {named - wanted} more in other languages." if named > wanted else "."
    found = f"{wanted} of {of} sampled entities have a label in {languages}{more}"
    load = "Load the triples with labels, or add their predicate to names.label in the schema file."
    other = "Choose other languages: setting graph.languages, or names.languages in the schema file."
    return first_case(
        (wanted >= FEW_LABELS * of, ok(found)),
        (named >= FEW_LABELS * of, warning(found, other)),
        (named < NO_LABELS * of and not fallback, failed(f"{found} Questions find entities by their labels.", load)),
        otherwise=warning(found, load),
    )


def check_inverses(subject: Subject) -> Check:
    """Check whether the graph declares inverse relations, and whether it stores both directions."""
    graph = subject.graph
    predicates = ", ".join(map(graph.schema.short_id, graph.schema.inverse))
    if not predicates:
        return skipped("The schema lists no predicate for inverse relations.")
    if not graph.inverses:
        return ok(
            f"No inverse relations declared ({predicates}), so relations and their inverses are separate candidates."
        )
    sampled = [(graph.inverse(relation), pairs[:BOTH_WAYS]) for relation, pairs in subject.sample.edges.items()]
    edges = sum(len(pairs) for inverse, pairs in sampled if inverse)
    there = sum(
        min(len(pairs), single_count(select(graph, "doctor_both_ways", inverse=Entity(inverse), pairs=pairs)))
        for inverse, pairs in sampled
        if inverse
    )
    pairs = len(set(map(frozenset, graph.inverses.items())))
    found = f"{counted(pairs, 'pair')} of inverse relations declared ({predicates})."
    found += f" For {there} of {edges} sampled edges, the graph also stores the inverse edge." if edges else ""
    return ok(found)


def check_types(subject: Subject) -> Check:
    """Check whether the graph declares range and domain of its relations."""
    graph = subject.graph
    predicates = ", ".join(map(graph.schema.short_id, (*graph.schema.range, *graph.schema.domain)))
    if not predicates:
        return skipped("The schema lists no predicates for range and domain.")
    types = graph.tables.types
    ranges, domains, relations = len(types["out"]), len(types["in"]), len(graph.relations)
    which = "and domain known" if ranges == domains else f"known for {ranges:,} and domain"
    found = f"Range {which} for {domains:,} of {counted(relations, 'relation')}."
    unused = f"{found} Without these declarations ({predicates}), the expected type of an answer is not used."
    verdict = ok if graph.schema.fallback else warning
    return ok(found) if ranges else verdict(unused, "If there are triples with such declarations, load them too.")


def check_mediators(subject: Subject) -> Check:
    """Check whether the relations that lead to mediators are known."""
    assert subject.id is not None
    graph, schema = subject.graph, subject.graph.schema
    rules = (schema.mediator_types, schema.mediator_marked_by, schema.mediator_iri_prefixes, schema.mediator_object_of)
    if not any((*rules, schema.mediator_subject_of)):
        return skipped(f"The schema names no mediators. If some nodes only connect others: {OWN_MEDIATORS}")
    count = sum(extent != "none" for side in graph.mediators.leads.values() for extent in side.values())
    found = f"{counted(count, 'relation')} {'leads' if count == 1 else 'lead'} to mediators."
    if graph.mediators.marks or not schema.mediator_marked_by:
        return ok(found)
    if missing := missing_mediators(graph.store, subject.id.iris, schema):
        return warning(f"{found} {missing}", MEDIATOR_REMEDY)
    marker = schema.short_id(schema.mediator_marked_by[0])
    return ok(f"{found} The graph marks no type by {marker}, so kgqa uses its list of mediators in {schema.title}.")


def check_tables(subject: Subject) -> Check:
    """Derive the tables of the whole graph that questions need, and report what could not be derived."""
    graph, started = subject.graph, time.monotonic()
    graph.prepare()
    graph.inverses  # noqa: B018
    remedy = "This is expected for a graph of this size. See docs/schemas.md, section Very large graphs."
    took = seconds_words(time.monotonic() - started)
    derived = ok(f"The tables of the whole graph were derived in {took}.")
    return warning(" ".join(graph.notes), remedy) if graph.notes else derived


def check_known_entities(subject: Subject) -> Check:
    """Check whether well-known entities have the expected ids and names."""
    graph = subject.graph
    if not subject.settings.graph.path:
        return skipped("The demo graph does not contain the well-known entities.")
    entities = [Entity(iri) for iri, _ in graph.schema.probes]
    names: dict[str, list[str]] = {}
    for entity, name in names_of(graph, entities, (*graph.schema.label, *graph.schema.alias)):
        names.setdefault(entity.iri, []).append(name.value)
    for entity in entities:
        if entity.iri not in names and graph.store.ask(render("exists", view=graph.view, entity=entity), fresh=True):
            names[entity.iri] = []
    return judge_known_entities(names, graph.schema)


def judge_known_entities(names: Mapping[str, Sequence[str]], schema: Schema) -> Check:
    """Judge whether the well-known entities of a schema were found.

    Args:
        names: names in the graph by IRI, of those entities that the graph contains.
    """
    probes = schema.probes
    short, of = schema.short_id, len(probes)
    missing = [f"{short(iri)} {label}" for iri, label in probes if iri not in names]
    wrong = [
        f"{short(iri)} should be {label} but is {names[iri][0][:60]}"
        for iri, label in probes
        if names.get(iri) and normalise(label) not in map(normalise, names[iri])
    ]
    there, unnamed = of - len(missing), sum(not found for found in names.values())
    text = f"Found {there} of {of}" + (f", {unnamed} of them without a name" if unnamed else "")
    text += f"; missing: {', '.join(missing[:5])}." if missing else "."
    return first_case(
        (not of, skipped(f"The schema {schema.name} lists no well-known entities ([probes] entities).")),
        (
            wrong,
            failed(
                f"{len(wrong)} of {of} well-known entities have other names: {'; '.join(wrong[:3])}.",
                "The graph may be a different one: check what was loaded, or choose its schema with --schema.",
            ),
        ),
        (
            not there and not schema.fallback,
            failed(
                text,
                f"Check that all of {schema.title} was loaded. For a graph of your own, use a schema without [probes].",
            ),
        ),
        (
            there and there - unnamed < FEW_PROBES * of,
            warning(text, "If the graph should contain them, check whether all files were loaded."),
        ),
        otherwise=ok(text),
    )
