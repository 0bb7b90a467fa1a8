"""What pytest itself reports about tests, whatever text is in an assertion."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

HOSTILE = """
import sys
import warnings
import pytest

def test_assertion():
    assert "lone \\udc80 surrogate" == ""

def test_output():
    sys.stdout.reconfigure(errors="surrogatepass") if hasattr(sys.stdout, "reconfigure") else None
    raise ValueError("lone \\udc80")

@pytest.fixture
def broken():
    raise ValueError("\\udc80")

def test_fixture(broken):
    pass

def test_skipped():
    pytest.skip("why \\udc80")

@pytest.mark.parametrize("text", ["\\udc80"])
def test_parameter(text):
    assert not text
"""


def test_lone_surrogates_in_reports_do_not_end_the_run(tmp_path):
    (tmp_path / "test_hostile.py").write_text(HOSTILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.surrogates", "-n1", "-q", "-rA", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120)
    out = done.stdout.decode()
    assert done.returncode == 1 and "3 failed, 1 skipped, 1 error" in out, out + done.stderr.decode()
    assert "\\udc80" in out
