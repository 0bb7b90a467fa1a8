"""An aborted test run leaves no server behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.end_servers import servers

INNER_TEST = """
import time
from tests.virtuoso_server import copied, running_server

def test_that_is_aborted(tmp_path):
    with running_server(copied({prepared!r}, tmp_path / "own")):
        time.sleep(600)
"""


@pytest.mark.slow
def test_killed_test_run_leaves_no_server(prepared_folder, tmp_path):
    (tmp_path / "test_inner.py").write_text(INNER_TEST.format(prepared=str(prepared_folder)))
    folder = tmp_path / "inner"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.virtuoso_server", "-p", "no:cacheprovider"]
    run = subprocess.Popen(
        [*command, "--rootdir", tmp_path, "--basetemp", folder, tmp_path / "test_inner.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    _wait_until(lambda: servers(str(folder)) or run.poll() is not None)
    pids = servers(str(folder))
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert len(pids) == 1
    _wait_until(lambda: not servers(str(folder)))
    assert not servers(str(folder)) and not Path(f"/proc/{pids[0]}/exe").exists()


def _wait_until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
