"""Whether anybody answers, what it is, and which of its graphs is looked at."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from kgqa.doctor.checks import Check, seconds_words
from kgqa.doctor.store import HurriedEndpoint, HurriedFolder
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.detection import user_graphs
from kgqa.graph.endpoint.profiles import Profile, profile_of
from kgqa.graph.query.templates import render
from kgqa.graph.store import Store
from kgqa.model import Entity
from kgqa.settings import Settings

SHOWN_GRAPHS = 5
NOT_LISTED = "Which graphs there are could not be told: the list did not come, or not as a whole."
IS_IT_SPARQL = "Give the address that takes SPARQL queries: Virtuoso's ends in /sparql."


def check_reachable(store: Store) -> Check:
    """Whether the store answers a question that costs nothing, and how fast it does the first time.

    Raises:
        StoreUnavailable, QueryRejected: it does not.
    """
    started = time.perf_counter()
    try:
        store.ask(render("any_triple", view=()), fresh=True)
    except (StoreTimeout, PartialResult) as error:
        return Check("reachable", "failed", str(error), "See what keeps the server busy, or start it anew.")
    took = seconds_words(time.perf_counter() - started)
    return Check("reachable", "ok", f"{store.location} answers, the first time after {took}.")


def check_server(store: HurriedEndpoint | HurriedFolder) -> Check:
    """What answers, and its version."""
    if isinstance(store, HurriedFolder):
        return Check("server", "ok", f"A graph folder, read by pyoxigraph {version('pyoxigraph')}.")
    name = store.reply_headers(render("any_triple", view=())).get("server", "").strip()
    return Check("server", "ok", name or "It does not say what it is.")


def check_profile(store: HurriedEndpoint, settings: Settings, *, header: str) -> Check:
    """Whether the server is taken for what it is.

    Args:
        header: what it calls itself.
    """
    return judge_profile(store.profile, profile_of(store.url, header), chosen=settings["endpoint.profile"])


def judge_profile(used: Profile, seems: Profile, *, chosen: str) -> Check:
    """The verdict on a profile.

    Args:
        seems: the one that the address and the Server header speak for.
        chosen: the setting endpoint.profile.
    """
    if used.name != seems.name and seems.name != "generic":
        return Check(
            "profile",
            "warning",
            f"It is treated as {used.title}, but looks like {seems.title}.",
            "Take endpoint.profile out of the settings, or set it to auto.",
        )
    how = "told by itself or its address" if chosen == "auto" else "as endpoint.profile says"
    if used.name == "generic":
        how = "nothing more is known of it; endpoint.profile names others"
    limits = f"{used.concurrency} requests at once" + (f", {used.rate:g} a second" if used.rate else "")
    return Check("profile", "ok", f"{used.title} ({how}): {limits}.")


@dataclass(frozen=True)
class Look:
    """Which graphs are looked at; None where none can be."""

    check: Check
    view: tuple[str, ...] | None = None


def look_at_graphs(store: HurriedEndpoint | HurriedFolder, wanted: Sequence[str]) -> Look:
    """Find the graphs to look at.

    Args:
        wanted: graph IRIs that the settings name; empty for what questions would look at by themselves.

    Raises:
        InvalidTerm: what is wanted is no IRI. StoreUnavailable, QueryRejected: see `Store`.
    """
    profile = store.profile if isinstance(store, HurriedEndpoint) else None
    there = _named_graphs(store)
    if wanted:
        empty = [iri for iri in wanted if not _has_triples(store, (iri,))]
        return judge_wanted(wanted, empty, there)
    if not (profile and profile.needs_graph) and _has_triples(store, ()):
        return Look(Check("graph", "ok", f"The default graph.{_also(there or ())}"), ())
    return judge_found(
        store.location, there, is_folder=profile is None, needs_graph=bool(profile and profile.needs_graph)
    )


def judge_wanted(wanted: Sequence[str], empty: Sequence[str], there: Sequence[str] | None) -> Look:
    """The verdict on graphs that were asked for, some of which may have no triple; `there`: all that have any, None
    where that is not known.
    """
    if empty:
        known = NOT_LISTED if there is None else _names(there)
        found = f"There is no triple in {_listed(empty)}. {known}"
        return Look(Check("graph", "failed", found, "Name one that is there: --graph-iri IRI (setting graph.iri)."))
    others = [iri for iri in there or () if iri not in wanted]
    return Look(Check("graph", "ok", f"{_listed(wanted)}.{_also(others)}"), tuple(wanted))


def judge_found(place: str, there: Sequence[str] | None, *, is_folder: bool, needs_graph: bool) -> Look:
    """The verdict where nobody says which graph is meant and the default graph does not do."""
    if there is None:
        return Look(Check("graph", "failed", NOT_LISTED, "Name one: --graph-iri IRI."))
    if not there:
        what, into = ("The graph is empty.", f"--into {place}") if is_folder else (
            "There is no graph in it but the server's own.", f"--into {place} --graph-iri IRI",
        )  # fmt: skip
        return Look(Check("graph", "failed", what, f"Load data: kgqa graph load FILE {into}"))
    if needs_graph and len(there) > 1:
        return Look(Check("graph", "failed", f"It is not said which is meant. {_names(there)}", "Add --graph-iri IRI."))
    return Look(Check("graph", "ok", f"{_listed(there)}; the default graph is not looked at."), tuple(there))


def _named_graphs(store: Store) -> tuple[str, ...] | None:
    try:
        return user_graphs(store)
    except (StoreTimeout, PartialResult):
        return None


def _has_triples(store: Store, view: Sequence[str]) -> bool:
    return store.ask(render("any_triple", view=tuple(map(Entity, view))), fresh=True)


def _names(there: Sequence[str]) -> str:
    return f"Graphs there: {_listed(there)}." if there else "There is no graph there at all."


def _also(others: Sequence[str]) -> str:
    return f" There are also {_listed(others)}." if others else ""


def _listed(iris: Sequence[str]) -> str:
    more = f" and {len(iris) - SHOWN_GRAPHS} more" if len(iris) > SHOWN_GRAPHS else ""
    return ", ".join(f"<{iri}>" for iri in iris[:SHOWN_GRAPHS]) + more
