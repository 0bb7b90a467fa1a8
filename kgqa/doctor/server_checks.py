"""Checks of the server: whether it answers, which kind of server it is, and which of its graphs is used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from kgqa.doctor.checks import Check, seconds_words
from kgqa.doctor.probe_stores import ProbeEndpoint, ProbeFolder, ProbeStore
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.detection import user_graphs
from kgqa.graph.endpoint.profiles import Profile, profile_of
from kgqa.graph.query.templates import render
from kgqa.graph.store import Store
from kgqa.model import Entity
from kgqa.settings import Settings

SHOWN_GRAPHS = 5
NOT_LISTED = "The named graphs could not be listed."
IS_IT_SPARQL = "Give the URL for SPARQL queries; on Virtuoso it ends in /sparql."


def check_reachable(store: Store) -> Check:
    """Check whether the store answers a trivial query, and how many seconds the first reply takes.

    Raises:
        StoreUnavailable, QueryRejected: the store does not answer.
    """
    started = time.perf_counter()
    try:
        store.ask(render("any_triple", view=()), fresh=True)
    except (StoreTimeout, PartialResult) as error:
        return Check("reachable", "failed", str(error), "Find out what keeps the server busy, or restart it.")
    took = seconds_words(time.perf_counter() - started)
    return Check("reachable", "ok", f"{store.location} answers; the first reply took {took}.")


def check_server(store: ProbeStore) -> Check:
    """Report the software that answers, and its version."""
    if isinstance(store, ProbeFolder):
        return Check("server", "ok", f"A graph folder, read by pyoxigraph {version('pyoxigraph')}.")
    name = store.reply_headers(render("any_triple", view=())).get("server", "").strip()
    return Check("server", "ok", name or "The server does not name its software.")


def check_profile(store: ProbeEndpoint, settings: Settings, *, header: str) -> Check:
    """Check whether the profile fits the server.

    Args:
        header: the Server header of the server's replies.
    """
    return judge_profile(store.profile, profile_of(store.url, header), chosen=settings["endpoint.profile"])


def judge_profile(used: Profile, seems: Profile, *, chosen: str) -> Check:
    """Judge a profile.

    Args:
        seems: the profile suggested by the URL and the Server header.
        chosen: the setting endpoint.profile.
    """
    if used.name != seems.name and seems.name != "generic":
        return Check(
            "profile",
            "warning",
            f"The profile is {used.title}, but the server looks like {seems.title}.",
            "Remove endpoint.profile from the settings, or set it to auto.",
        )
    how = "detected" if chosen == "auto" else "from endpoint.profile"
    if used.name == "generic":
        how = "unknown server; set endpoint.profile if it is a known one"
    limits = f"{used.concurrency} concurrent requests" + (f", {used.rate:g} per second" if used.rate else "")
    return Check("profile", "ok", f"{used.title} ({how}): {limits}.")


@dataclass(frozen=True)
class GraphChoice:
    """The named graphs to use; `view` is None if there are no graphs to use."""

    check: Check
    view: tuple[str, ...] | None = None


def choose_graphs(store: ProbeStore, wanted: Sequence[str]) -> GraphChoice:
    """Choose the named graphs to use.

    Args:
        wanted: graph IRIs from the settings; empty for the graphs that questions use by default.

    Raises:
        InvalidTerm: a wanted graph is not an IRI. StoreUnavailable, QueryRejected: see `Store`.
    """
    profile = store.profile if isinstance(store, ProbeEndpoint) else None
    there = _named_graphs(store)
    if wanted:
        empty = [iri for iri in wanted if not _has_triples(store, (iri,))]
        return judge_wanted(wanted, empty, there)
    if not (profile and profile.needs_graph) and _has_triples(store, ()):
        return GraphChoice(Check("graph", "ok", f"The default graph.{_also(there or ())}"), ())
    return judge_found(
        store.location, there, is_folder=profile is None, needs_graph=bool(profile and profile.needs_graph)
    )


def judge_wanted(wanted: Sequence[str], empty: Sequence[str], there: Sequence[str] | None) -> GraphChoice:
    """Judge the named graphs given in the settings.

    Args:
        empty: the wanted graphs that have no triples.
        there: all graphs with triples, None if unknown.
    """
    if empty:
        known = NOT_LISTED if there is None else _names(there)
        found = f"No triples in {_listed(empty)}. {known}"
        return GraphChoice(
            Check("graph", "failed", found, "Use an existing graph: --graph-iri IRI (setting graph.iri).")
        )
    others = [iri for iri in there or () if iri not in wanted]
    return GraphChoice(Check("graph", "ok", f"{_listed(wanted)}.{_also(others)}"), tuple(wanted))


def judge_found(place: str, there: Sequence[str] | None, *, is_folder: bool, needs_graph: bool) -> GraphChoice:
    """Judge the graphs found, if the settings contain no graph IRI and the default graph cannot be used."""
    if there is None:
        return GraphChoice(Check("graph", "failed", NOT_LISTED, "Name the graph to use: --graph-iri IRI."))
    if not there:
        what, into = ("The graph is empty.", f"--into {place}") if is_folder else (
            "The server has no named graphs except its system graphs.", f"--into {place} --graph-iri IRI",
        )  # fmt: skip
        return GraphChoice(Check("graph", "failed", what, f"Load data: kgqa graph load FILE {into}"))
    if needs_graph and len(there) > 1:
        return GraphChoice(
            Check(
                "graph",
                "failed",
                f"The settings do not say which graph to use. {_names(there)}",
                "Add --graph-iri IRI.",
            )
        )
    return GraphChoice(Check("graph", "ok", f"{_listed(there)}; the default graph is not used."), tuple(there))


def _named_graphs(store: Store) -> tuple[str, ...] | None:
    try:
        return user_graphs(store)
    except (StoreTimeout, PartialResult):
        return None


def _has_triples(store: Store, view: Sequence[str]) -> bool:
    return store.ask(render("any_triple", view=tuple(map(Entity, view))), fresh=True)


def _names(there: Sequence[str]) -> str:
    return f"Existing graphs: {_listed(there)}." if there else "There are no named graphs."


def _also(others: Sequence[str]) -> str:
    return f" Other graphs: {_listed(others)}." if others else ""


def _listed(iris: Sequence[str]) -> str:
    more = f" and {len(iris) - SHOWN_GRAPHS} more" if len(iris) > SHOWN_GRAPHS else ""
    return ", ".join(f"<{iri}>" for iri in iris[:SHOWN_GRAPHS]) + more
