"""Verdicts of the speed checks, from measured figures; no server is queried."""

from __future__ import annotations

import pytest

from kgqa.doctor.speed_checks import LoadRound, judge_concurrency, judge_latency, latency_words


class TestSpeed:
    def test_latency_text(self):
        assert latency_words({"next steps": [0.001, 0.002, 0.030], "labels": []}) == "next steps 2.0/30 ms"

    @pytest.mark.parametrize(
        "seconds, verdict",
        [([0.01] * 20, "ok"), ([0.2] * 20, "warning"), ([0.01] * 18 + [2.0] * 2, "warning"), ([], "skipped")],
    )
    def test_latency(self, seconds, verdict):
        check = judge_latency({"ends": seconds}, late=0, of_hubs={}, most_edges=0)
        assert check.verdict == verdict

    def test_hubs_are_reported_separately(self):
        check = judge_latency({"ends": [0.01]}, late=0, of_hubs={"ends": [3.0]}, most_edges=84_000)
        assert check.verdict == "ok" and "Hubs (up to 84,000 edges): ends 3,000/3,000 ms" in check.found

    @pytest.mark.parametrize(
        "errors, configured, verdict, word",
        [
            ((0, 0), 8, "ok", "kgqa sends at most 8"),
            ((0, 0), None, "ok", "16 threads"),
            ((0, 3), 8, "ok", "which the server handles"),
            ((0, 3), 16, "warning", "endpoint.concurrency = 8"),
            ((2, 3), 8, "warning", "endpoint.concurrency below 8"),
            ((2, 3), 4, "warning", "endpoint.concurrency below 8"),
            ((2, 0), 16, "warning", "endpoint.concurrency below 8"),
        ],
    )
    def test_concurrency(self, errors, configured, verdict, word):
        rounds = [LoadRound(n, 100, e, 1.0, "No." if e else "") for n, e in zip((8, 16), errors)]
        check = judge_concurrency(rounds, configured=configured)
        assert check.verdict == verdict and word in check.found + check.remedy

    @pytest.mark.parametrize("configured", [None, 1, 8, 16])
    def test_concurrency_with_errors_only(self, configured):
        check = judge_concurrency([LoadRound(n, 0, 9, 1.0, "No.") for n in (8, 16)], configured=configured)
        assert check.verdict == "failed" and check.found.startswith("No request was answered.") and check.remedy

    def test_errors_above_the_configured_concurrency(self):
        rounds = [LoadRound(2, 100, 0, 1.0), LoadRound(8, 50, 3, 1.0, "No."), LoadRound(16, 0, 9, 1.0, "No.")]
        check = judge_concurrency(rounds, configured=2)
        assert check.verdict == "ok" and "which the server handles" in check.found

    def test_errors_with_one_thread(self):
        check = judge_concurrency([LoadRound(1, 5, 3, 1.0, "No."), LoadRound(8, 5, 3, 1.0, "No.")], configured=1)
        assert check.verdict == "warning" and "below" not in check.remedy

    def test_latency_of_timeouts_only(self):
        check = judge_latency({"ends": [0.0] * 3}, late=3, of_hubs={}, most_edges=0)
        assert check.verdict == "failed" and "All 3 queries timed out" in check.found

    def test_slow_server_remedy(self):
        check = judge_latency({"ends": [3.0]}, late=0, of_hubs={}, most_edges=0)
        assert "kgqa virtuoso start --memory-share S" in check.remedy and "NumberOfBuffers" in check.remedy
