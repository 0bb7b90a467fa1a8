"""The examples and tables of docs/serve.md."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from kgqa.settings.setting import settings_of
from kgqa.settings.table import ServeSettings
from tests.conftest import ROOT
from tests.serve.running import running

TEXT = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_examples_run(session_cache):
    commands = re.findall(r"^    (curl .*)$", TEXT, re.MULTILINE)
    assert len(commands) >= 10
    with running(cache_folder=str(session_cache), rank_embeddings="off") as served:
        for command in commands:
            command = command.replace("localhost:8080", f"localhost:{served.port}").replace("curl ", "curl -f ")
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30)
            assert done.returncode == 0 and done.stdout, (command, done.stderr)


def test_settings_are_documented():
    rows = re.findall(r"^\| `(serve\.\w+)`( \*)? \| .* \| (.*) \|$", TEXT, re.MULTILINE)
    assert rows == [(each.key, " *" if each.trusted else "", each.help) for each in settings_of(ServeSettings).values()]
