"""Known problems in server logs and their explanations."""

from __future__ import annotations

import pytest
from kgqa.virtuoso.instance.server_log import LOG_PROBLEMS, explain_log, find_problem, last_error, problem_lines

LOG = """
\t\tSat Nov 21 2026
14:58:40 OpenLink Virtuoso Universal Server
14:58:40 Out of disk space for database
\t\tSun Nov 22 2026
15:03:29 OpenLink Virtuoso Universal Server
15:03:29 Version 07.20.3229-pthreads for Linux as of Feb  8 2023
15:03:29 {line}\x1b[31m
15:03:29 virtuoso-t(+0x8f9f6) [0x55ac502499f6]
15:03:29 Server exiting
"""


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Out of disk space for database", "disk"),
        ("PL LOG: File x.nt error 40003 SR173: Transaction out of disk", "disk"),
        ("Failed HTTP listen at 127.0.0.1:8890.", "http port"),
        ("Failed to start listening at SQL port '127.0.0.1:1111'", "sql port"),
        ("Virtuoso is already runnning (pid 14751)", "open elsewhere"),
        ("Unable to create file virtuoso.lck (Read-only file system).", "permission"),
        ("The database you are opening was last closed with a server of version 3240.", "other version"),
        ("The transaction log file has been produced by different server instance.", "other log"),
        ("Starting a database that was killed during checkpoint. \nBroken index RDF_QUAD", "checkpoint"),
        ("Reference to page with free remap dp = 1851\nGPF: search.c:3993 buffer not wired", "checkpoint"),
        ("GPF: disk.c:1775 Reference past end of configured stripes", "damage"),
    ],
)
def test_known_problems_are_explained(line, kind):
    log = LOG.replace("{line}", line)
    problem = find_problem(log.split("Universal Server")[-1])
    assert problem.kind == kind
    explained = explain_log(log)
    assert problem.meaning in explained and problem.remedy in explained and line.splitlines()[-1] in explained
    assert "\x1b" not in explained and "0x8f9f6" not in explained and "Nov" not in explained


def test_last_error_counts_only_at_the_end_of_the_log():
    disk_error = "Out of disk space for database"
    for last in (disk_error, f"{disk_error}\n15:03:29 GPF: disk.c:1775 Reference past end of configured stripes"):
        assert disk_error in last_error(LOG.replace("{line}", last)) and "The disk is full" in last_error(
            LOG.replace("{line}", last)
        )
    continued = LOG.replace("{line}", disk_error).replace("Server exiting", "Checkpoint finished, log reused")
    for log in (continued, LOG.replace("{line}", "Incorrect login for dba from IP [127.0.0.1]"), ""):
        assert last_error(log) == ""
    checkpoint = LOG.replace("{line}", "Starting a database that was killed during checkpoint.\n15:03:30 GPF: a.c:1 b")
    assert "Start the server again" in last_error(checkpoint)


def test_log_without_known_problems():
    assert explain_log("15:03:29 OpenLink Virtuoso Universal Server\n15:03:30 Server online at 1111 (pid 1)\n") == ""
    assert problem_lines("15:03:29 Something failed\n15:03:30 Something failed\n") == "Something failed"
    assert "Its log ends with: Something failed" in explain_log("15:03:29 Something failed\n")
    assert all(
        "kgqa" in problem.remedy or problem.remedy.endswith(".") or "--folder" in problem.remedy
        for problem in LOG_PROBLEMS
    )
