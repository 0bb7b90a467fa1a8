"""Checks of the server: whether it answers, which kind of server it is, and which of its graphs is used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version

from kgqa.doctor.checks import Check, failed, ok, seconds_words, warning
from kgqa.doctor.limited_store import LimitedStore
from kgqa.doctor.subject import NO_GRAPH, Subject
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.detection import user_graphs
from kgqa.graph.endpoint.profiles import Profile, profile_of
from kgqa.graph.foreign_stores import is_foreign
from kgqa.graph.query.templates import render
from kgqa.graph.store import Store
from kgqa.model import Entity, GraphId

SHOWN_GRAPHS = 5
NOT_LISTED = "The named graphs could not be listed."


def check_reachable(subject: Subject) -> Check:
    """Check whether the store answers a trivial query, and how many seconds the first reply takes."""
    store = subject.open_store()
    started = time.perf_counter()
    try:
        store.ask(render("any_triple", view=()), fresh=True)
    except (StoreTimeout, PartialResult) as error:
        return failed(error.message, "Find out what keeps the server busy, or restart it.")
    subject.store = store
    if store.server is None:
        kept = {name: value for name, value in store.settings.items() if name != "schema"}
        subject.settings = subject.settings.with_graph(kept)
    return ok(f"{store.location} answers; the first reply took {seconds_words(time.perf_counter() - started)}.")


def check_server(subject: Subject) -> Check:
    """Report the software that answers, and its version."""
    place = subject.settings["graph.path"]
    if place and is_foreign(place):
        return ok("A store of another package.")
    if subject.store.server is None:
        return ok(f"A graph folder, read by pyoxigraph {version('pyoxigraph')}.")
    return ok(_server_header(subject.store) or "The server does not name its software.")


def _server_header(store: LimitedStore) -> str:
    headers: dict[str, str] = store.reply_headers(render("any_triple", view=()))
    return headers.get("server", "").strip()


def check_profile(subject: Subject) -> Check:
    """Check whether the profile fits the server."""
    seems = profile_of(subject.store.url, _server_header(subject.store))
    return judge_profile(subject.store.profile, seems, chosen=subject.settings["endpoint.profile"])


def judge_profile(used: Profile, seems: Profile, *, chosen: str) -> Check:
    """Judge a profile.

    Args:
        seems: the profile suggested by the URL and the Server header.
        chosen: the setting endpoint.profile.
    """
    if used.name != seems.name and seems.name != "generic":
        found = f"The profile is {used.title}, but the server looks like {seems.title}."
        return warning(found, "Remove endpoint.profile from the settings, or set it to auto.")
    how = "detected" if chosen == "auto" else "from endpoint.profile"
    if used.name == "generic":
        how = "unknown server; set endpoint.profile if it is a known one"
    limits = f"{used.concurrency} concurrent requests" + (f", {used.rate:g} per second" if used.rate else "")
    return ok(f"{used.title} ({how}): {limits}.")


def check_graph(subject: Subject) -> Check:
    """Choose the named graphs to use: those in the settings, or else those that questions use by default.

    Raises:
        InvalidTerm: a graph in the settings is not an IRI.
    """
    store, wanted = subject.store, (subject.settings["graph.iri"] or "").split()
    try:
        there: tuple[str, ...] | None = user_graphs(store)
    except (StoreTimeout, PartialResult):
        there = None
    needs_graph = store.server is not None and store.server.profile.needs_graph
    if wanted:
        check, view = judge_wanted(wanted, [iri for iri in wanted if not _has_triples(store, iri)], there)
    elif not needs_graph and _has_triples(store):
        check, view = ok(f"The default graph.{_also(there or ())}"), ()
    else:
        check, view = judge_found(store.location, there, is_folder=store.server is None, needs_graph=needs_graph)
    if view is None:
        subject.reasons["view"] = NO_GRAPH
    else:
        subject.id = GraphId(store.location, view)
        subject.view = tuple(map(Entity, view))
    return check


View = tuple[str, ...] | None
"""IRIs of the graphs to use; None if there are no graphs to use."""


def judge_wanted(wanted: Sequence[str], empty: Sequence[str], there: Sequence[str] | None) -> tuple[Check, View]:
    """Judge the named graphs given in the settings.

    Args:
        empty: the wanted graphs that have no triples.
        there: all graphs with triples, None if unknown.
    """
    if empty:
        known = f"Existing graphs: {_listed(there)}." if there else "There are no named graphs."
        found = f"No triples in {_listed(empty)}. {NOT_LISTED if there is None else known}"
        return failed(found, "Use an existing graph: --graph-iri IRI (setting graph.iri)."), None
    others = [iri for iri in there or () if iri not in wanted]
    return ok(f"{_listed(wanted)}.{_also(others)}"), tuple(wanted)


def judge_found(place: str, there: Sequence[str] | None, *, is_folder: bool, needs_graph: bool) -> tuple[Check, View]:
    """Judge the graphs found, if the settings contain no graph IRI and the default graph cannot be used."""
    if there is None:
        return failed(NOT_LISTED, "Name the graph to use: --graph-iri IRI."), None
    if not there:
        load = f"Load data: kgqa graph load FILE --into {place}"
        if is_folder:
            return failed("The graph is empty.", load), None
        return failed("The server has no named graphs except its system graphs.", f"{load} --graph-iri IRI"), None
    if needs_graph and len(there) > 1:
        found = f"The settings do not say which graph to use. Existing graphs: {_listed(there)}."
        return failed(found, "Add --graph-iri IRI."), None
    return ok(f"{_listed(there)}; the default graph is not used."), tuple(there)


def _has_triples(store: Store | LimitedStore, *view: str) -> bool:
    return store.ask(render("any_triple", view=tuple(map(Entity, view))), fresh=True)


def _also(others: Sequence[str]) -> str:
    return f" Other graphs: {_listed(others)}." if others else ""


def _listed(iris: Sequence[str]) -> str:
    more = f" and {len(iris) - SHOWN_GRAPHS} more" if len(iris) > SHOWN_GRAPHS else ""
    return ", ".join(f"<{iri}>" for iri in iris[:SHOWN_GRAPHS]) + more
