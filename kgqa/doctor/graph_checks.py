"""Checks of a graph's content: size, schema, labels, relations, well-known entities."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kgqa.doctor.subject import (
    AGAIN,
    MEASURED_SECONDS,
    Finding,
    Subject,
    failed,
    first_case,
    ok,
    skipped,
    warning,
)
from kgqa.errors import KgqaError, PartialResult, StoreTimeout
from kgqa.graph.detection import MEDIATOR_REMEDY, SchemaFit, best_schema, missing_mediators, other_wikibase, schema_fits
from kgqa.graph.endpoint.fingerprint import MAX_SCANNED_TRIPLES
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import render
from kgqa.graph.store import Rows, single_count
from kgqa.graph.tables.labels import BATCH, language_rank, values_of
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step
from kgqa.schema import BUNDLED, Schema, bundled_schema, language_list, load_schema
from kgqa.storage.corpus_file import read_corpus_file
from kgqa.text.hints import Hint, Option
from kgqa.text.words import counted, normalise

FAST_COUNT = 1.0
"""If counting the triples takes more seconds, no fingerprint is computed, because it needs about ten counts."""
CLOSE = 0.5
"""A schema whose share of predicates is at least this fraction of the chosen schema's share is also plausible."""
FEW_LABELS, NO_LABELS, FEW_PROBES = 0.8, 0.1, 0.5
RELATIONS, EDGES, LOOKED_AT = 12, 20, 10_000
"""The sample: the number of relations, edges of each, and the triples in which to look for relations if they are not
counted."""
TOPICS, EXPLORING_SECONDS = 20, 4.0
"""Number of topics to explore from to measure the latency, and the seconds after which no further one is taken."""
SLOW_MEDIAN, SLOW_TAIL = 0.1, 1.0
"""Seconds (p50 and p95) above which operations are reported as slow."""
DOCS = Hint("Write a schema file (docs/schemas.md) and add ", Option("schema", "FILE"), ".")
LOAD = "Load the triples with labels, or name their predicate in a schema file: names.label, docs/schemas.md."


def check_triples(subject: Subject) -> Iterator[Finding]:
    """Count the triples, and compute the fingerprint if that does not take long."""
    store, started = subject.store, time.monotonic()
    triples = single_count(store.select(render("count_triples", view=subject.view), fresh=True))
    is_slow = subject.access and time.monotonic() - started > FAST_COUNT
    fingerprint = "" if is_slow else store.fingerprint_of(subject.id.iris)
    subject.id = replace(subject.id, fingerprint=fingerprint, triples=triples)
    yield ok(
        "triples", f"{counted(triples, 'triple')}, fingerprint {fingerprint or 'not computed, which takes longer'}."
    )


def check_schema(subject: Subject) -> Iterator[Finding]:
    """Choose the schema, check whether it fits the graph, and open the graph with it unless it does not.

    Raises:
        SchemaError: the schema in the settings cannot be read.
    """
    settings, store, iris = subject.settings, subject.store, subject.id.iris
    corpus = read_corpus_file(settings.graph.path)
    name = settings.graph.schema or (corpus.schema_source if corpus else store.settings.get("schema"))
    origin = "from the settings" if settings.graph.schema else "stored with the graph" if name else "detected"
    given = load_schema(name) if name else None
    fits = schema_fits(store, iris, [*map(bundled_schema, BUNDLED), *([given] if given else [])])
    schema = given or best_schema(fits)
    if schema.fallback and not given and (wikibase := other_wikibase(store, iris)):
        schema = wikibase
        fits += schema_fits(store, iris, [wikibase])
    finding = judge_schema(schema, fits, origin=origin)
    yield finding
    if finding.verdict == "failed":  # findings under a wrong schema would be meaningless
        return
    countable = (subject.id.triples or MAX_SCANNED_TRIPLES + 1) <= MAX_SCANNED_TRIPLES
    subject.id = replace(subject.id, schema=schema.name)
    subject.graph = KnowledgeGraph(
        store,
        schema,
        view=iris,
        walks=settings.graph.walks,
        frontier_cap=settings.graph.frontier_cap,
        timeout=settings.graph.timeout,
        # derived data is cached by fingerprint; without a cache, no time is spent on computing the fingerprint
        cache=subject.cache if subject.id.fingerprint else None,
        languages=language_list(settings.graph.languages),
        scan=not subject.access or (countable and hasattr(subject, "bears_load")),
    )
    subject.opened.callback(subject.graph.close)


def judge_schema(chosen: Schema, fits: Sequence[SchemaFit], *, origin: str) -> Finding:
    """Judge whether the chosen schema fits the graph.

    Args:
        fits: the fits of all schemas, including the chosen schema.
        origin: where the choice of the schema comes from.
    """
    own = next(fit for fit in fits if fit.schema.name == chosen.name)
    others = [fit for fit in fits if fit.schema.name != chosen.name and not fit.schema.fallback]
    best, title = max(others, key=lambda fit: fit.share), f"{chosen.title} ({origin})"
    found = f"{title}: the graph has {own.hits} of {own.of} characteristic predicates."
    rival = f"{found} {best.schema.title} fits too: {best.hits} of {best.of}."
    use = f"If the graph is {best.schema.title}, add {Option('schema', best.schema.name)}."
    close = best.hits and best.share >= CLOSE * (1 if chosen.fallback else own.share)
    return first_case(
        (own.of == 0, ok("schema", f"{title}; it lists no characteristic predicates.")),
        (own.hits == 0 and best.hits, failed("schema", rival, use)),
        (own.hits == 0 and not chosen.fallback, failed("schema", found, DOCS)),
        (own.hits == 0, warning("schema", f"{found} IRIs are used as names.", DOCS)),
        (close, warning("schema", rival, use)),
        otherwise=ok("schema", found),
    )


def check_labels(subject: Subject) -> Iterator[Finding]:
    """Draw the sample, and check how many of the sampled entities have labels, and in which languages.

    Names that are taken from IRIs count as none.

    Raises:
        StoreTimeout, PartialResult: no edges could be sampled. KgqaError: there are none.
    """
    graph, languages = subject.graph, subject.graph.schema.languages
    entities, missed = draw_sample(graph)
    if not entities:
        raise missed or KgqaError("There are no edges between entities, so there is nothing to explore.", LOAD)
    subject.sample = entities
    labels = [(node, label.language) for node, label in names_of(graph, entities, graph.schema.label)]
    named = {node for node, _ in labels}
    wanted = {node for node, language in labels if language_rank(language, languages)[0] < len(languages)}
    tags = ", ".join(filter(None, languages)) + (" or without a language" if "" in languages else "")
    found = f"{len(wanted)} of {len(entities)} sampled entities have a label in {tags}"
    found += f"; {len(named - wanted)} more in other languages." if named - wanted else "."
    found += f" The sample is incomplete: {missed}" if missed else ""
    others = other_texts(graph, [node for node in entities if node not in named][:BATCH])
    yield first_case(
        (
            len(named) < NO_LABELS * len(entities),
            failed("labels", f"{found} Questions find no entities.{others}", LOAD),
        ),
        (len(named) < FEW_LABELS * len(entities), warning("labels", found + others, LOAD)),
        (
            len(wanted) < FEW_LABELS * len(entities),
            warning("labels", found, "Choose other languages: setting graph.languages."),
        ),
        (missed, warning("labels", found)),
        otherwise=ok("labels", found),
    )


def other_texts(graph: KnowledgeGraph, entities: Sequence[Entity]) -> str:
    """Return a sentence that names the predicates by which at least half of these entities have a text, if any."""
    rows = select(graph, "doctor_texts", nodes=entities) if entities else ()
    counts = Counter(predicate for _, predicate in rows if isinstance(predicate, Entity))
    frequent = [f"<{predicate.iri}>" for predicate, count in counts.most_common(3) if 2 * count >= len(entities)]
    return f" Entities without a label have texts by {', '.join(frequent)}." if frequent else ""


def check_tables(subject: Subject) -> Iterator[Finding]:
    """Derive the tables of the whole graph that questions need, and report what they hold."""
    graph, schema, started = subject.graph, subject.graph.schema, time.monotonic()
    graph.tables.prepare()
    pairs = len(set(map(frozenset, graph.tables.inverses.items())))
    found = " ".join(graph.tables.notes) or f"Derived in {time.monotonic() - started:.1f} s."
    yield (
        warning("tables", found, "See docs/schemas.md, Very large graphs.")
        if graph.tables.notes
        else ok("tables", found)
    )
    ranges, domains = len(graph.tables.types["out"]), len(graph.tables.types["in"])
    found = (
        f"Range known for {ranges:,} and domain for {domains:,} of {counted(len(graph.tables.relations), 'relation')}."
    )
    load = f"The type of an answer is not used. Load triples with {' and '.join(map(schema.short_id, schema.range))}."
    unused = schema.range and not ranges and not schema.fallback
    yield warning("relation types", found, load) if unused else ok("relation types", found)
    count = sum(extent != "none" for side in graph.tables.mediators.leads.values() for extent in side.values())
    found = f"{counted(count, 'relation')} {'leads' if count == 1 else 'lead'} to mediators."
    unmarked = schema.mediator_marked_by and not graph.tables.declarations.marks
    missing = missing_mediators(graph.store, subject.id.iris, schema) if unmarked else ""
    listed = f" The graph marks no type as mediator, so kgqa uses its list of mediators in {schema.title}."
    yield first_case(
        (missing, warning("mediators", f"{found} {missing}", MEDIATOR_REMEDY)),
        (unmarked, ok("mediators", found + listed)),
        otherwise=ok("mediators", found),
    )
    yield ok("inverse relations", f"{counted(pairs, 'pair')} of inverse relations declared.")


def check_known_entities(subject: Subject) -> Iterator[Finding]:
    """Check whether the schema's well-known entities have the expected names."""
    graph, schema, of = subject.graph, subject.graph.schema, len(subject.graph.schema.probes)
    names = names_of(graph, [Entity(iri) for iri, _ in schema.probes], (*schema.label, *schema.alias))
    there, expected = {node.iri: name.value for node, name in reversed(names)}, dict(schema.probes)
    right = {node.iri for node, name in names if normalise(name.value) == normalise(expected[node.iri])}
    wrong = [
        f"{schema.short_id(iri)} should be {expected[iri]} but is {there[iri][:60]}" for iri in there.keys() - right
    ]
    found = f"Found {len(there)} of {of} well-known entities of {schema.title}."
    others = f"{len(wrong)} of {of} well-known entities have other names: {'; '.join(wrong[:3])}."
    all_of = f"Check that all of {schema.title} was loaded. For a graph of your own, use a schema without [probes]."
    yield first_case(
        (
            not of or not subject.settings.graph.path,
            skipped("known entities", "There are none in the demo graph, and in this schema's [probes]."),
        ),
        (
            wrong,
            failed(
                "known entities", others, f"Check what was loaded, or choose another schema with {Option('schema')}."
            ),
        ),
        (not there and not schema.fallback, failed("known entities", found, all_of)),
        (there and len(there) < FEW_PROBES * of, warning("known entities", found, all_of)),
        otherwise=ok("known entities", found),
    )


def check_search(subject: Subject) -> Iterator[Finding]:
    """Check whether an entity is found by its label and how fast."""
    name, graph, started = "full-text search", subject.graph, time.monotonic()
    labels = graph.labels(subject.sample[:BATCH])
    entity, label = min(labels.items(), key=lambda item: (len(item[1]), item[0].iri), default=(None, ""))
    there = label and any(match.entity == entity or match.exact for match in graph.search(label))
    took = time.monotonic() - started
    yield first_case(
        (not label, warning(name, "The sample has no label to search for.", "See the result of the check “labels”.")),
        (
            not there,
            failed(
                name,
                f"A search for the label “{label}” does not find its entity.",
                "Rebuild the index. In the cache: kgqa cache clear --kind graphs. On Virtuoso: kgqa virtuoso index",
            ),
        ),
        otherwise=ok(name, f"“{label}” was found in {1000 * took:,.0f} ms."),
    )


def check_latency(subject: Subject) -> Iterator[Finding]:
    """Measure the operations of exploration, topic by topic, for EXPLORING_SECONDS."""
    graph, nodes, subject.store.seconds = subject.graph, subject.sample, MEASURED_SECONDS
    until, durations = time.monotonic() + EXPLORING_SECONDS, defaultdict[str, list[float]](list)

    def measured(operation: str, run: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        started, took, result = time.perf_counter(), MEASURED_SECONDS, None  # after a timeout
        with suppress(StoreTimeout):
            result = run(*arguments, **options)
            took = time.perf_counter() - started
        durations[operation].append(took)
        return result

    for index, topic in enumerate(random.Random(0).sample(nodes, min(TOPICS, len(nodes)))):
        found_steps = measured("next steps", graph.paths.steps, [Candidate(RelationPath(topic))])
        if found_steps and (steps := found_steps[0].steps):
            path = Candidate(RelationPath(topic, (steps[index % len(steps)],)))
            measured("ends", graph.paths.ends, [path], limit=100)
            measured("second hop", graph.paths.steps, [path])
        graph.tables.labels.clear()
        measured("labels", graph.labels, nodes[:BATCH])
        if time.monotonic() > until:
            break
    every = [seconds for measurements in durations.values() for seconds in measurements]
    middle, subject.query_seconds = map(float, np.percentile(every, (50, 95)))
    times = [
        "{} {:,.1f}/{:,.1f}".format(name, *(1000 * np.percentile(each, (50, 95)))) for name, each in durations.items()
    ]
    found = f"p50/p95 over {len(durations['next steps'])} topics: {', '.join(times)} ms."
    faster = (
        "A question sends dozens of such queries. Raise budget.seconds, or give the server more memory. Virtuoso: kgqa "
        "virtuoso start --memory-share S; on a server not started by kgqa: NumberOfBuffers in virtuoso.ini."
    )
    yield first_case(
        (min(every) >= MEASURED_SECONDS, failed("latency", "All queries timed out.", AGAIN)),
        (middle > SLOW_MEDIAN or subject.query_seconds > SLOW_TAIL, warning("latency", found, faster)),
        otherwise=ok("latency", found),
    )


def draw_sample(graph: KnowledgeGraph) -> tuple[list[Entity], Exception | None]:
    """Return ends of some edges of a graph, without mediators, and the error if some edges could not be fetched.

    The edges are of the most frequent relation and of some rarer ones. The same graph on the same server always gives
    the same sample.

    Raises:
        StoreUnavailable, QueryRejected: see `Store`.
        StoreTimeout, PartialResult: the relations could not be fetched.
    """
    rows = () if graph.tables.counted else select(graph, "doctor_relations", triples=LOOKED_AT)
    known = sorted(relation.iri for (relation,) in rows if isinstance(relation, Entity)) or list(graph.tables.relations)
    leads = [
        (relation, {graph.tables.mediators.extent(Step(relation, way)) for way in ("out", "in")}) for relation in known
    ]
    usable = [relation for relation, extents in leads if extents == {"none"} and not graph.tables.is_noise(relation)]
    # most relations in the rarer half have only one or two edges
    usable = usable[: max(RELATIONS, len(usable) // 2)]
    entities, missed = dict[Entity, None](), None
    for relation in usable[:: max(1, len(usable) // RELATIONS)][:RELATIONS]:
        try:
            edges = select(graph, "doctor_pairs", relation=Entity(relation), limit=EDGES)
            entities.update((node, None) for edge in edges for node in edge if isinstance(node, Entity))
        except (StoreTimeout, PartialResult) as error:
            missed = error
    return list(entities)[: 4 * BATCH], missed


def select(graph: KnowledgeGraph, template: str, **values: object) -> Rows:
    """Run the query queries/TEMPLATE.rq on a graph, without a cache."""
    return graph.store.select(render(template, view=graph.view, **values), fresh=True)


def names_of(graph: KnowledgeGraph, nodes: Sequence[Entity], predicates: Sequence[str]) -> list[tuple[Entity, Literal]]:
    """Return the names of nodes by these predicates in all languages."""
    remote = graph.store.capabilities.remote
    rows = values_of(nodes, predicates, select=partial(select, graph), remote=remote)
    return [(node, name) for node, _, name in rows if isinstance(node, Entity) and isinstance(name, Literal)]
