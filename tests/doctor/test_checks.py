"""Verdicts of the checks, from measured figures; no server is queried."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kgqa.doctor.checks import (
    AGAIN,
    CONTENT_CHECKS,
    ESSENTIAL,
    LEFT_OUT,
    Check,
    Health,
    percentile,
    run_check,
    seconds_words,
)
from kgqa.doctor.graph_checks import judge_known_entities, judge_labels, judge_schema
from kgqa.doctor.server_checks import QueryEnd, factors_of, judge_graphs, judge_profile, judge_time_limit, rows_to_ask
from kgqa.errors import (
    PartialResult,
    QueryRejected,
    SchemaError,
    StoreBusy,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.detection import SchemaFit, best_schema
from kgqa.graph.endpoint.profiles import profile_named
from kgqa.graph.store import Capabilities
from kgqa.schema import BUNDLED, bundled_schema

FREEBASE, WIKIDATA, RDFS = map(bundled_schema, ("freebase", "wikidata", "rdfs"))


class TestChecks:
    @pytest.mark.parametrize(
        "error, verdict",
        [
            (StoreTimeout("Late."), "warning"),
            (PartialResult("Cut.", "Ask for less."), "warning"),
            (StoreUnavailable("Gone.", "Start it."), "failed"),
            (StoreBusy("Taken.", "Wait."), "failed"),
            (QueryRejected("No SPARQL."), "failed"),
            (SchemaError("No schema."), "failed"),
        ],
    )
    def test_error_gives_a_verdict_and_a_remedy(self, error, verdict):
        def run():
            raise error

        check = run_check("x", run, remedy="Do this.")
        assert (check.name, check.verdict) == ("x", verdict)
        assert check.remedy and error.message in check.found
        assert not error.hint or check.remedy == error.hint
        assert ("Timed out" in check.found) == isinstance(error, StoreTimeout)

    @pytest.mark.parametrize("name", CONTENT_CHECKS)
    @pytest.mark.parametrize("error", [StoreTimeout("Late."), PartialResult("Cut.", "Ask for less.")])
    def test_unfinished_content_check_is_failed(self, name, error):
        def run():
            raise error

        check = run_check(name, run, remedy="Give full IRIs.")
        assert check.verdict == "failed"
        assert check.remedy == (AGAIN if isinstance(error, StoreTimeout) else "Ask for less.")

    def test_unexpected_exception_is_raised(self):
        with pytest.raises(ZeroDivisionError):
            run_check("x", lambda: 1 / 0)

    @pytest.mark.parametrize(
        "verdicts, complete, trusted",
        [
            (["ok", "warning", "skipped"], True, True),
            (["ok", "failed"], True, False),
            (["ok"], False, False),
            ([], True, True),
        ],
    )
    def test_trusted_unless_a_check_failed(self, verdicts, complete, trusted):
        checks = tuple(Check(str(index), verdict, "x") for index, verdict in enumerate(verdicts))
        health = Health((*(Check(name, "ok", "x") for name in ESSENTIAL), *checks), None, 1.0, complete)
        assert health.trusted is trusted
        assert health.count("ok") == verdicts.count("ok") + len(ESSENTIAL)

    @pytest.mark.parametrize("missing", ESSENTIAL)
    def test_skipped_essential_check_is_not_trusted(self, missing):
        essential = [Check(name, "warning", "x") for name in ESSENTIAL if name != missing]
        for checks in (essential, [*essential, Check(missing, "skipped", "Why not.")]):
            health = Health(tuple(checks), None, 1.0, True)
            assert not health.trusted and health.unseen == (missing,)

    def test_left_out_checks(self):
        checks = (
            Check("model", "skipped", LEFT_OUT),
            Check("row cap", "skipped", "Too small."),
            Check("graph", "ok", LEFT_OUT),
        )
        assert Health(checks, None, 1.0, True).left_out == ("model",)

    @pytest.mark.parametrize(
        "values, share, expected",
        [([3, 1, 2], 0.5, 2), ([1, 2], 0.5, 1), ([5], 0.95, 5), (list(range(1, 21)), 0.95, 19), (list(range(1, 101)), 0.95, 95), ([1, 2], 1.0, 2), ([1, 2], 0.0, 1)],
    )  # fmt: skip
    def test_percentile_by_nearest_rank(self, values, share, expected):
        assert percentile(values, share) == expected

    @pytest.mark.parametrize(
        "seconds, words", [(0.0042, "4 ms"), (0.9994, "999 ms"), (0.9999, "1.0 s"), (12.34, "12.3 s")]
    )
    def test_seconds_words(self, seconds, words):
        assert seconds_words(seconds) == words


def graphs_check(wanted, there, empty=(), *, remote=True, system_graphs=("http://system",)) -> Check:
    store = SimpleNamespace(location="PLACE", capabilities=Capabilities(remote=remote, system_graphs=system_graphs))
    return judge_graphs(store, wanted, there, empty)


class TestGraphs:
    def test_wrong_graph_iri_lists_the_graphs(self):
        check = graphs_check(["http://typo"], ["http://right", "http://other"], ["http://typo"])
        assert check.verdict == "failed"
        assert "<http://typo>" in check.found and "<http://right>" in check.found
        assert "--graph-iri" in check.remedy

    def test_graph_iri_lists_the_other_graphs(self):
        check = graphs_check(["http://right"], ["http://right", "http://other"])
        assert check == Check("", "ok", "<http://right>. Other graphs: <http://other>.")

    def test_graphs_that_cannot_be_listed(self):
        assert "could not be listed" in graphs_check(["http://x"], None, ["http://x"]).found
        assert graphs_check(["http://x"], None).verdict == "ok"

    @pytest.mark.parametrize(
        "graphs, system, verdict, word",
        [
            ((), (), "failed", "kgqa graph load FILE --into PLACE"),
            ((), ("http://system",), "failed", "--into PLACE --graph-iri IRI"),
            (None, ("http://system",), "failed", "Name the graph to use"),
            (("http://a", "http://b"), ("http://system",), "failed", "--graph-iri"),
            (("http://a",), ("http://system",), "ok", ""),
            (("http://a", "http://b"), (), "ok", ""),
        ],
    )
    def test_without_a_graph_iri(self, graphs, system, verdict, word):
        check = graphs_check([], graphs, remote=bool(system), system_graphs=system)
        assert check.verdict == verdict and word in check.remedy

    def test_long_list_of_graphs_is_shortened(self):
        assert "<http://g4> and 4 more" in graphs_check([], [f"http://g{n}" for n in range(9)]).found

    def test_profile_that_does_not_fit(self):
        check = judge_profile(profile_named("qlever"), profile_named("virtuoso"), chosen="qlever")
        assert check.verdict == "warning" and "endpoint.profile" in check.remedy
        assert judge_profile(profile_named("generic"), profile_named("generic"), chosen="auto").verdict == "ok"
        assert judge_profile(profile_named("wikidata"), profile_named("generic"), chosen="wikidata").verdict == "ok"


def fits(**hits: int) -> list[SchemaFit]:
    schemas = {name: bundled_schema(name) for name in BUNDLED}
    return [
        SchemaFit(schema, hits.get(name, 0), len(schema.label if schema.fallback else schema.detect))
        for name, schema in schemas.items()
    ]


class TestSchemas:
    @pytest.mark.parametrize(
        "found, best",
        [
            ({"freebase": 2}, "freebase"),
            ({"wikidata": 4, "freebase": 1}, "wikidata"),
            ({"rdfs": 3}, "rdfs"),
            ({}, "rdfs"),
        ],
    )
    def test_best_schema(self, found, best):
        assert best_schema(fits(**found)).name == best

    @pytest.mark.parametrize(
        "chosen, found, origin, verdict, word",
        [
            (FREEBASE, {"freebase": 3}, "detected", "ok", "3 of 3"),
            (FREEBASE, {"freebase": 3, "wikidata": 1}, "detected", "ok", "3 of 3"),
            (FREEBASE, {"freebase": 2, "wikidata": 2}, "detected", "warning", "comes close"),
            (WIKIDATA, {"freebase": 3}, "settings", "failed", "Freebase would fit"),
            (WIKIDATA, {}, "settings", "failed", "0 of 4"),
            (WIKIDATA, {"freebase": 3, "wikidata": 1}, "folder", "warning", "fits better"),
            (RDFS, {"rdfs": 1}, "detected", "ok", "1 of"),
            (RDFS, {}, "detected", "warning", "there are no labels"),
            (RDFS, {"rdfs": 1, "freebase": 3}, "settings", "warning", "fits partially"),
        ],
    )
    def test_schema_verdicts(self, chosen, found, origin, verdict, word):
        check = judge_schema(chosen, fits(**found), origin=origin)
        assert check.verdict == verdict and word in check.found
        assert bool(check.remedy) == (verdict != "ok")

    def test_schema_without_detection_predicates(self):
        own = replace(FREEBASE, name="mine", detect=())
        assert judge_schema(own, [*fits(), SchemaFit(own, 0, 0)], origin="settings").verdict == "ok"

    @pytest.mark.parametrize(
        "wanted, named, of, fallback, verdict",
        [
            (80, 80, 100, False, "ok"),
            (79, 79, 100, False, "warning"),
            (5, 90, 100, False, "warning"),
            (0, 9, 100, False, "failed"),
            (0, 0, 100, True, "warning"),
        ],
    )
    def test_labels(self, wanted, named, of, fallback, verdict):
        check = judge_labels(wanted, named, of, languages="de, en", fallback=fallback)
        assert check.verdict == verdict
        assert f"{wanted} of {of} sampled entities have a label in de, en" in check.found

    @pytest.mark.parametrize(
        "names, fallback, verdict, word",
        [
            ([("Japón", "JAPAN ")] * 4, False, "ok", "4 of 4"),
            ([("Japan",), ("Japan",), None, None], False, "ok", "2 of 4"),
            ([("Japan",), None, None, None], False, "warning", "1 of 4"),
            ([(), (), (), ()], False, "warning", "4 of them without a name"),
            ([None] * 4, False, "failed", "0 of 4"),
            ([None] * 4, True, "ok", "0 of 4"),
            ([("Japan",)] * 3 + [("\x1b[31mIceland",)], False, "failed", "should be Japan"),
            ([], False, "skipped", "lists no well-known entities"),
        ],
    )
    def test_known_entities(self, names, fallback, verdict, word):
        schema = replace(
            WIKIDATA, fallback=fallback, probes=tuple((f"Q{index}", "Japan") for index in range(len(names)))
        )
        check = judge_known_entities({f"Q{n}": name for n, name in enumerate(names) if name is not None}, schema)
        assert check.verdict == verdict and word in check.found
        assert bool(check.remedy) == (verdict in ("warning", "failed"))


class TestLimits:
    @pytest.mark.parametrize(
        "triples, announced, asked",
        [
            (None, None, [10_001, 100_001, 1_048_577]),
            (None, 1e6, [10_001, 100_001]),
            (120, None, [10_001]),
            (99, None, []),
            (10**6, float("inf"), [10_001, 100_001]),
        ],
    )
    def test_rows_to_ask(self, triples, announced, asked):
        assert rows_to_ask(triples, announced) == asked

    @pytest.mark.parametrize(
        "triples, factors",
        [(None, 3), (0, 7), (1, 7), (2, 40), (100, 6), (9_000, 4), (10_000, 3), (10**6, 2), (10**9, 2)],
    )
    def test_factors_of_the_slow_query(self, triples, factors):
        assert factors_of(triples) == factors
        if triples and triples > 1:
            assert triples**factors >= 10**12

    @pytest.mark.parametrize(
        "with_limit, after_disconnect, verdict, word",
        [
            (QueryEnd("client", 1.0), None, "ok", "Its worker process is stopped"),
            (QueryEnd("client", 1.0), QueryEnd("server", 1.4, "x: y."), "ok", "x: y."),
            (
                QueryEnd("client", 1.0),
                QueryEnd("client", 4.0),
                "warning",
                "the server continues the query for more than",
            ),
            (QueryEnd("client", 5.0), None, "warning", "late"),
            (
                QueryEnd("finished", 0.1, count=str(10**12)),
                QueryEnd("finished", 0.1, count=str(10**12)),
                "ok",
                "finished",
            ),
            (QueryEnd("finished", 0.9, count="178122"), None, "failed", "178122"),
            (
                QueryEnd("client", 1.0),
                QueryEnd("finished", 1.4, count="0"),
                "failed",
                "as if it had finished: 0 instead of 1,000,000,000,000",
            ),
            (QueryEnd("client", 1.0), QueryEnd("finished", 1.4), "failed", "as if it had finished"),
        ],
    )
    def test_time_limit(self, with_limit, after_disconnect, verdict, word):
        check = judge_time_limit(with_limit, after_disconnect, everything=10**12, limit_sent=True)
        assert check.verdict == verdict and word in check.found

    @pytest.mark.parametrize(
        "own, verdict, word",
        [
            (None, "ok", ""),
            (60.0, "ok", "The server's own limit is 60 s."),
            (float("inf"), "ok", ""),
            (10.0, "warning", "The server's own limit is 10 s, less than graph.timeout (60 s)"),
        ],
    )
    def test_time_limit_of_the_server(self, own, verdict, word):
        ended = QueryEnd("client", 1.0), QueryEnd("server", 1.4, "so.")
        check = judge_time_limit(*ended, everything=10**12, limit_sent=True, own=own, granted=60.0)
        assert check.verdict == verdict and word in check.found and ("own limit" in check.found) == (own in (10, 60))

    @pytest.mark.parametrize(
        "after_disconnect, own", [(QueryEnd("client", 4.0), None), (QueryEnd("server", 1.4, "so."), 10.0)]
    )
    def test_remedy_for_a_time_limit(self, after_disconnect, own):
        check = judge_time_limit(
            QueryEnd("client", 1.0), after_disconnect, everything=10**12, limit_sent=True, own=own, granted=90.0
        )
        assert check.verdict == "warning" and "kgqa virtuoso start --query-seconds 90;" in check.remedy
        assert "not started by kgqa: MaxQueryExecutionTime" in check.remedy

    def test_finished_count_without_known_total_is_failed(self):
        check = judge_time_limit(QueryEnd("finished", 0.5, count="7"), None, everything=None, limit_sent=True)
        assert check.verdict == "failed"
