"""The list of all checks of `kgqa doctor`, and the function that runs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from kgqa.doctor import graph_checks, server_checks, settings_checks
from kgqa.doctor.subject import AGAIN, Finding, Health, Subject, Verdict, failed, skipped
from kgqa.errors import KgqaError, PartialResult, StoreTimeout
from kgqa.graph.endpoint.options import check_address
from kgqa.graph.store import is_address
from kgqa.methods.ask import cache_of
from kgqa.settings.values import Settings
from kgqa.text.hints import Hint, Option


class Check(NamedTuple):
    """A check.

    `names`: the names of its findings, in order. `needs`: what it needs, see `Subject.lacks`. `late`: the verdict if a
    query times out or its result is incomplete. `remedy`: the remedy for errors without a hint.
    """

    names: tuple[str, ...]
    run: Callable[[Subject], Iterable[Finding]]
    needs: str = ""
    late: Verdict = "failed"
    remedy: Hint | str = ""


USE_IRIS = Hint("Use full IRIs: ", Option("graph-iri", "IRI"), ".")
CHECKS = (
    Check(("reachable", "server"), server_checks.check_server, remedy="Give the URL for SPARQL queries: .../sparql."),
    Check(("graph",), server_checks.check_graph, "store", remedy=USE_IRIS),
    Check(("triples",), graph_checks.check_triples, "store view bears_load", "warning"),
    Check(("schema",), graph_checks.check_schema, "store view"),
    Check(
        ("tables", "relation types", "mediators", "inverse relations"), graph_checks.check_tables, "store view graph"
    ),
    Check(("labels",), graph_checks.check_labels, "store view graph"),
    Check(("known entities",), graph_checks.check_known_entities, "store view graph"),
    Check(("full-text search",), graph_checks.check_search, "store view graph sample", "warning"),
    Check(("latency",), graph_checks.check_latency, "store view graph sample"),
    Check(("row cap",), server_checks.check_row_cap, "store view bears_load", "warning"),
    Check(("time limit",), server_checks.check_time_limit, "store view bears_load", "warning"),
    Check(("update rights",), server_checks.check_update_rights, "store view bears_load", "warning"),
    Check(("concurrency",), server_checks.check_concurrency, "store view bears_load", "warning"),
    Check(("model", "choice mode", "model concurrency"), settings_checks.check_model),
    Check(("embeddings",), settings_checks.check_embeddings),
    Check(("cache",), settings_checks.check_cache),
    Check(("settings",), settings_checks.check_settings),
)


def examine(
    settings: Settings,
    *,
    asks_model: bool = True,
    watch: Callable[[str], None] = lambda name: None,
    say: Callable[[str], None] = lambda text: None,
    checks: Iterable[Check] = CHECKS,
) -> Health:
    """Check a graph, a language model and the settings; after Ctrl-C, return the findings so far.

    Nothing is written to the graph.

    Args:
        settings: the settings to check; they also specify the graph and the language model.
        asks_model: whether to check the language model, which costs a few calls.
        watch: function called with the name of a check before it is run.
        say: function called with a message before slow work that is done only once.

    Raises:
        SettingsError: the graph's URL is invalid, or contains a password, which is no finding about a graph.
    """
    if settings.graph.path and is_address(settings.graph.path):
        check_address(settings.graph.path)
    subject, started, complete = Subject(settings, cache_of(settings), asks_model, say), time.monotonic(), False
    findings = {name: skipped(name, "Stopped before this check.") for check in checks for name in check.names}
    with suppress(KeyboardInterrupt), subject.opened:
        for check in checks:
            watch(check.names[0])
            findings |= {finding.name: finding for finding in run_check(check, subject)}
        complete = True
    return Health(tuple(findings.values()), getattr(subject, "id", None), time.monotonic() - started, complete)


def run_check(check: Check, subject: Subject) -> Iterator[Finding]:
    """Run a check, unless it lacks what it needs. An error becomes a finding, with its hint as the remedy."""
    left, why = list(check.names), subject.lacks(check.needs)
    try:
        for finding in () if why else check.run(subject):
            left.remove(finding.name)
            yield replace(finding, remedy=str(finding.remedy))
            why = finding.found if finding.verdict == "skipped" else why
    except (StoreTimeout, PartialResult) as error:
        # after a timeout, hints about the query do not help, because it is the query of the check
        hint = str(AGAIN) if isinstance(error, StoreTimeout) else error.hint or str(check.remedy)
        yield Finding(check.late, left.pop(0), error.message, hint)
    except KgqaError as error:
        yield failed(left.pop(0), error.message, error.hint or str(check.remedy))
    yield from (skipped(name, why or f"Skipped because of the result of “{check.names[0]}”.") for name in left)
