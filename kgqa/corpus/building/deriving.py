"""What follows from the documents of a corpus: which names mean the same entity, links, communities, indexes.

Each step remembers up to which edit it has been done, and does nothing if there is no later edit.
"""

from __future__ import annotations

from typing import Any

from kgqa.corpus.building.report import BuildReport, Progress, no_progress
from kgqa.corpus.building.tools import Tools
from kgqa.corpus.communities.finding import MAX_SIZE, communities_of
from kgqa.corpus.communities.summaries import summarise
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.counts import COUNTS, counts_text
from kgqa.corpus.difference import entity_iris
from kgqa.corpus.items import Item, LinkItem, SameItem
from kgqa.corpus.rdf.beside import open_beside
from kgqa.corpus.resolution.linking import link_entities
from kgqa.corpus.resolution.resolving import resolve
from kgqa.corpus.snapshot import Identities, snapshot_of
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.trace.trace import Budget, Trace

RESOLVER = "kgqa corpus build: resolution"
LINKER = "kgqa corpus build: links"
_RESOLVED = "resolved"
_LINKED = "linked"
_GROUPED = "communities"
_UNWRITTEN = "communities without summaries"
_SIZE = "size of communities"
"""Keys under which the database keeps up to which edit names were resolved and linked, and communities found, whether
summaries of the model are missing, and how large communities are."""
_NAMED = ("entity", "statement", "hyperedge")


def derive_all(corpus: Corpus, tools: Tools, report: BuildReport, progress: Progress = no_progress) -> None:
    """Bring everything up to date that follows from the documents, and publish the graph."""
    with report.timed("resolution"):
        progress("resolving entities", 0, 0)
        resolve_entities(corpus, tools, report)
    with report.timed("links"):
        link_to_graph(corpus, tools, report)
    with report.timed("communities"):
        progress("finding communities", 0, 0)
        find_communities(corpus, tools, report)
    with report.timed("graph"):
        progress("writing the graph", 0, 0)
        corpus.editor.publish()
    with report.timed("index"):
        progress("writing the index", 0, 0)
        update_index(corpus)


def resolve_entities(corpus: Corpus, tools: Tools, report: BuildReport) -> None:
    """Find the new names that mean the same as others, and record them as one edit."""
    database = corpus.database
    done, last = _number(database.build.state(_RESOLVED)), database.seq
    if done == last:
        return
    fresh = entity_iris(each.addition for each in database.live.touched(done, last)) if done else None
    how = tools.settings.corpus.resolve
    if how != "none" and (fresh is None or fresh):
        names = snapshot_of(database.live.all(last, _NAMED))  # before resolution
        known = {_pair(each.item) for each in database.live.all(last, ("same",))}
        ever = {_pair(item) for _, item in database.items() if isinstance(item, SameItem)}
        trace = Trace(Budget(seconds=None, cost=left_of(tools, report)))
        found = resolve(
            names.entities,
            encoder=tools.encoder,
            models=tools.models if how == "model" else None,
            prompts=tools.prompts,
            known=known,
            apart=ever - known,
            only=fresh,
            statements=names.statements,
            text_of=corpus.text,
            trace=trace,
        )
        report.add_usage(trace.usage())
        if found.merges:
            corpus.editor.apply("insert", found.merges, agent=RESOLVER, reason="the same entity")
            report.edits += 1
        report.merges += len(found.merges)
        report.undecided += len(found.undecided)
    database.build.put_state(_RESOLVED, str(database.seq))


def link_to_graph(corpus: Corpus, tools: Tools, report: BuildReport) -> None:
    """Link new entities to those of the knowledge graph beside the corpus, and record the links as one edit."""
    database = corpus.database
    done, last = _number(database.build.state(_LINKED)), database.seq
    if done == last or corpus.folder.file.beside is None:
        return
    entities = list(corpus.reader.entities())
    only = None
    if done:
        names = entity_iris(each.addition for each in database.live.touched(done, last))
        only = {each.iri for each in entities if not names.isdisjoint(each.members)}
    graph = open_beside(corpus.folder, cache=tools.cache, endpoint=EndpointOptions.of(tools.settings))
    if entities and graph is not None:
        with graph:
            found = link_entities(entities, graph, statements=corpus.reader.statements(), only=only)
        ever = {item for _, item in database.items() if isinstance(item, LinkItem)}
        new = [each for each in found.additions if each.item not in ever]  # a link that was undone stays away
        if new:
            corpus.editor.apply("insert", new, agent=LINKER, reason="entities of the knowledge graph")
            report.edits += 1
        report.links += len(new)
    database.build.put_state(_LINKED, str(database.seq))


def find_communities(corpus: Corpus, tools: Tools, report: BuildReport) -> None:
    """Find the communities of entities, with summaries.

    If a language model writes the summaries, communities stay as they are where nothing has changed, because only those
    that change cost anything. Otherwise they depend only on what the corpus contains.
    """
    database = corpus.database
    by_model = tools.settings.corpus.summaries == "model" and tools.models is not None
    done, last = _number(database.build.state(_GROUPED)), database.seq
    previous = tuple(database.communities.all())
    report.communities = len(previous)
    if done == last and not (by_model and database.build.state(_UNWRITTEN)):
        return
    known: dict[str, Any] = {}
    if by_model and done and previous:
        known = {"previous": previous, "touched": _touched(corpus, done, last)}
    size = _number(database.build.state(_SIZE)) or MAX_SIZE
    found = communities_of(corpus.reader, max_size=size, **known)
    trace = Trace(Budget(seconds=None, cost=left_of(tools, report)))
    models = tools.models if by_model else None
    summaries = summarise(found, corpus.reader, store=database.build, models=models, prompts=tools.prompts, trace=trace)
    report.add_usage(trace.usage())
    report.communities, report.summaries = len(found), summaries.written
    if summaries.failed:
        report.notes.append(f"{summaries.failed:,} summaries were not written by the model: {summaries.reason}")
    corpus.editor.set_communities(summaries.communities)
    database.build.put_state(_GROUPED, str(last))
    database.build.put_state(_UNWRITTEN, str(summaries.failed or "") if by_model else "all")


def set_community_size(corpus: Corpus, size: int) -> None:
    """Set the largest size of a lowest-level community, in entities; a change of it rebuilds all communities."""
    state = corpus.database.build
    if state.state(_SIZE) != str(size):
        state.put_state(_SIZE, str(size))
        state.put_state(_GROUPED, "")


def _touched(corpus: Corpus, after: int, until: int) -> set[str]:
    """Return the entities, before and after resolution, that edits say something about."""
    live = corpus.database.live
    names = entity_iris(each.addition for each in live.touched(after, until))
    identities = Identities(*live.identities(names, until))
    return names | {identities.canonical(name) for name in names}


def update_index(corpus: Corpus) -> None:
    """Bring the index up to date, and keep the numbers of records for `kgqa corpus status`."""
    corpus.index  # noqa: B018  opening it brings it up to date
    stored = corpus.database.build.state(COUNTS)
    if (counts := counts_text(corpus.reader, stored)) != stored:
        corpus.database.build.put_state(COUNTS, counts)


def left_of(tools: Tools, report: BuildReport) -> float | None:
    """Return what may still be spent, in USD; None for no limit."""
    return None if tools.max_cost is None else max(0.0, tools.max_cost - (report.cost or 0.0))


def _pair(item: Item) -> tuple[str, str]:
    assert isinstance(item, SameItem)
    return item.left, item.right


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
