"""Runs all checks of `kgqa doctor`. If the user interrupts the run, the results so far are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from kgqa.doctor import graph_checks, model_checks, server_checks, settings_checks, speed_checks
from kgqa.doctor.checks import Check, Health, Verdict, run_check
from kgqa.doctor.subject import Subject
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.requests.access import check_address
from kgqa.graph.store import DEFAULT_MAX_ROWS, is_address
from kgqa.methods.ask import cache_of
from kgqa.settings.values import Settings


class Row(NamedTuple):
    """One check.

    `needs`: what it needs, see `Subject.lacks`. `remedy`: the remedy for errors without one. `no_server`: the
    result for a graph that is not on a server, if the check is about servers.
    """

    name: str
    run: Callable[[Subject], Check]
    needs: str = ""
    remedy: str = ""
    no_server: str = ""


GRAPH_CHECKS = (
    Row(
        "reachable",
        server_checks.check_reachable,
        remedy="Give the URL for SPARQL queries; on Virtuoso it ends in /sparql.",
    ),
    Row("server", server_checks.check_server, "store"),
    Row("profile", server_checks.check_profile, "store server"),
    Row("graph", server_checks.check_graph, "store", "Use full IRIs: --graph-iri IRI."),
    Row("triples", graph_checks.check_triples, "store view bears_load"),
    Row("schema", graph_checks.check_schema, "store view", graph_checks.DOCS),
    Row("tables", graph_checks.check_tables, "store view graph"),
    Row("relation types", graph_checks.check_types, "store view graph"),
    Row("mediators", graph_checks.check_mediators, "store view graph"),
    Row("labels", graph_checks.check_labels, "store view graph"),
    Row("inverse relations", graph_checks.check_inverses, "store view graph sample"),
    Row("known entities", graph_checks.check_known_entities, "store view graph"),
    Row(
        "full-text search",
        speed_checks.check_search,
        "store view graph sample",
        "Ask a question: kgqa ask allows more time to build the index of names.",
    ),
    Row("latency", speed_checks.check_latency, "store view graph sample"),
    Row(
        "row cap",
        server_checks.check_row_cap,
        "store view bears_load",
        no_server=f"No result is truncated. A result of more than {DEFAULT_MAX_ROWS:,} rows is an error.",
    ),
    Row("time limit", server_checks.check_time_limit, "store view bears_load"),
    Row(
        "update rights",
        server_checks.check_update_rights,
        "store view bears_load",
        no_server="A graph is opened for reading only; only kgqa graph load writes to it.",
    ),
    Row("concurrency", speed_checks.check_concurrency, "store view bears_load"),
)
MEASURED = ("latency", "row cap", "time limit", "update rights", "concurrency")
"""Checks that measure durations, so they do not retry queries that timed out."""
OTHER_CHECKS = (
    Row("model", model_checks.check_model),
    Row("choice mode", model_checks.check_mode, "model"),
    Row("model concurrency", model_checks.check_concurrency, "model"),
    Row("embeddings", settings_checks.check_embeddings),
    Row("cache", settings_checks.check_cache),
    Row("settings", settings_checks.check_settings, "", "See kgqa config show."),
)
NAMES = tuple(row.name for row in (*GRAPH_CHECKS, *OTHER_CHECKS))
"""The names of all checks, in order."""


class Examination:
    """Examines a graph, a language model and the settings. Nothing is written to the graph.

    Args:
        settings: the settings to check; they also specify the graph and the language model.
        model: whether to check the language model, which costs a few calls.
        watch: function called with the name of each check before the check is run.
        say: function called with a message before slow work that is done only once.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        model: bool = True,
        watch: Callable[[str], None] = lambda name: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.subject = Subject(settings, cache_of(settings), model, say)
        self._watch = watch
        self._checks: dict[str, Check] = {}
        self._started = time.monotonic()

    def run(self) -> Health:
        """Make all checks; after Ctrl-C, return the results so far.

        Raises:
            SettingsError: the graph's URL is invalid, or contains a password, which is no finding about a graph.
        """
        settings = self.subject.settings
        if settings.graph.path and is_address(settings.graph.path):
            check_address(settings.graph.path)
            EndpointOptions.of(settings)
        with suppress(KeyboardInterrupt):
            self.run_checks(GRAPH_CHECKS)
            self.run_checks(OTHER_CHECKS)
        return self.health()

    def health(self) -> Health:
        """Return the results so far; checks that were not run get the verdict `skipped`."""
        checks = tuple(self._checks.get(name, Check(name, "skipped", "Stopped before this check.")) for name in NAMES)
        complete = len(self._checks) == len(NAMES)
        return Health(checks, self.subject.id, time.monotonic() - self._started, complete)

    def run_checks(self, rows: Iterable[Row]) -> None:
        """Make checks, in order; skip those whose needs are not met. Then close what the checks have opened."""
        with self.subject.opened:
            for row in rows:
                self._watch(row.name)
                if row.name in MEASURED and hasattr(self.subject, "store"):
                    self.subject.store.retries_timeouts = False
                without_server = "" if hasattr(self.subject, "server") else row.no_server
                if why := self.subject.lacks(row.needs) or without_server:
                    verdict: Verdict = "ok" if why == without_server else "skipped"
                    self._checks[row.name] = Check(row.name, verdict, why)
                else:
                    self._checks[row.name] = run_check(row.name, partial(row.run, self.subject), remedy=row.remedy)
