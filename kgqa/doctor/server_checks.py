"""Checks of the server: whether it answers, which kind of server it is, and which of its graphs is used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from urllib.parse import urlsplit

from kgqa.doctor.checks import Check, failed, first_case, ok, seconds_words, warning
from kgqa.doctor.limited_store import LimitedStore, open_limited
from kgqa.doctor.subject import REASONS, Subject
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.detection import user_graphs
from kgqa.graph.endpoint.profiles import Profile, profile_of
from kgqa.graph.foreign_stores import is_foreign
from kgqa.graph.query.templates import render
from kgqa.model import Entity, GraphId

SHOWN_GRAPHS = 5


def check_reachable(subject: Subject) -> Check:
    """Check whether the store answers a trivial query, and how many seconds the first reply takes."""
    store = open_limited(subject.settings, subject.cache)
    subject.opened.callback(store.close)
    started = time.perf_counter()
    try:
        _has_triples(store)
    except (StoreTimeout, PartialResult) as error:
        return failed(error.message, "Find out what keeps the server busy, or restart it.")
    took = time.perf_counter() - started
    subject.store = store
    if store.server:
        subject.server = store.server
        host = (urlsplit(store.server.url).hostname or "").lower()
    if not store.server or (store.profile.allows_scans and host not in store.profile.hosts):
        subject.bears_load = True
    subject.settings = subject.settings.with_graph({k: v for k, v in store.settings.items() if k != "schema"})
    return ok(f"{store.location} answers; the first reply took {seconds_words(took)}.")


def check_server(subject: Subject) -> Check:
    """Report the software that answers, and its version."""
    place = subject.settings["graph.path"]
    if place and is_foreign(place):
        return ok("A store of another package.")
    if not subject.store.server:
        return ok(f"A graph folder, read by pyoxigraph {version('pyoxigraph')}.")
    return ok(_server_header(subject) or "The server does not name its software.")


def _server_header(subject: Subject) -> str:
    return subject.server.reply_headers(render("any_triple", view=())).get("server", "").strip()


def check_profile(subject: Subject) -> Check:
    """Check whether the profile fits the server."""
    seems = profile_of(subject.server.url, _server_header(subject))
    return judge_profile(subject.server.profile, seems, chosen=subject.settings["endpoint.profile"])


def judge_profile(used: Profile, seems: Profile, *, chosen: str) -> Check:
    """Judge the profile in use. `seems`: the profile suggested by URL and Server header. `chosen`: endpoint.profile."""
    how = "detected" if chosen == "auto" else "from endpoint.profile"
    if used.name == "generic":
        how = "unknown server; set endpoint.profile if it is a known one"
    elif used.name != seems.name and seems.name != "generic":
        found = f"The profile is {used.title}, but the server looks like {seems.title}."
        return warning(found, "Remove endpoint.profile from the settings, or set it to auto.")
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
    if not wanted and not store.capabilities.system_graphs and _has_triples(store):
        check, view = ok(f"The default graph.{_also(there or ())}"), ()
    else:
        empty = [iri for iri in wanted if not _has_triples(store, iri)]
        check, view = judge_graphs(store, wanted, there, empty), tuple(wanted or there or ())
    if check.verdict == "failed":
        subject.reasons["view"] = REASONS["store"]
    else:
        subject.id, subject.view = GraphId(store.location, view), tuple(map(Entity, view))
    return check


def judge_graphs(
    store: LimitedStore, wanted: Sequence[str], there: Sequence[str] | None, empty: Sequence[str] = ()
) -> Check:
    """Judge the choice of named graphs, where the default graph cannot be used or others are wanted.

    Args:
        wanted: the graphs in the settings, all of which are used; without any, all graphs are.
        there: all graphs with triples, None if unknown.
        empty: the wanted graphs that have no triples.
    """
    load = f"Load data: kgqa graph load FILE --into {store.location}"
    unlisted = "The named graphs could not be listed."
    known = f"Existing graphs: {_listed(there)}." if there else "There are no named graphs."
    several = f"The settings do not say which graph to use. {known}"
    return first_case(
        (
            empty,
            failed(
                f"No triples in {_listed(empty)}. {unlisted if there is None else known}",
                "Use an existing graph: --graph-iri IRI (setting graph.iri).",
            ),
        ),
        (wanted, ok(f"{_listed(wanted)}.{_also([iri for iri in there or () if iri not in wanted])}")),
        (there is None, failed(unlisted, "Name the graph to use: --graph-iri IRI.")),
        (not there and not store.capabilities.remote, failed("The graph is empty.", load)),
        (not there, failed("The server has no named graphs except its system graphs.", f"{load} --graph-iri IRI")),
        (len(there or ()) > 1 and store.capabilities.system_graphs, failed(several, "Add --graph-iri IRI.")),
        otherwise=ok(f"{_listed(there)}; the default graph is not used."),
    )


def _has_triples(store: LimitedStore, *view: str) -> bool:
    return store.ask(render("any_triple", view=tuple(map(Entity, view))), fresh=True)


def _also(others: Sequence[str]) -> str:
    return f" Other graphs: {_listed(others)}." if others else ""


def _listed(iris: Sequence[str] | None) -> str:
    shown = [f"<{iri}>" for iri in iris or ()]
    more = f" and {len(shown) - SHOWN_GRAPHS} more" if len(shown) > SHOWN_GRAPHS else ""
    return ", ".join(shown[:SHOWN_GRAPHS]) + more
