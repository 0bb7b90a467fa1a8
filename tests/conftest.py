"""What all tests share: a cache of their own, the hypothesis profile, and where real data may lie."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kgqa.graph.endpoint.requests.limiter import RequestLimiter

ROOT = Path(__file__).resolve().parent.parent
SOAK = os.environ.get("KGQA_SOAK") == "1"

settings.register_profile(
    "kgqa",
    max_examples=100 if SOAK else 40,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kgqa")
# a shell that starts a command in the background has it ignore Ctrl-C, and so what it starts in turn
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory) -> Path:
    """One cache folder for the whole run, so that the embedding model is exported once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(session_cache, tmp_path, monkeypatch):
    """No test reads or writes the user's cache or settings."""
    for name in [name for name in os.environ if name.startswith("KGQA_") and name not in ("KGQA_DATA", "KGQA_SOAK")]:
        monkeypatch.delenv(name)
    # what a server on this port asked for in an earlier test is not what this one asks for
    RequestLimiter.forget_all()
    monkeypatch.setenv("KGQA_CACHE_FOLDER", str(session_cache))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; the test is skipped where it is not."""
    folder = Path(os.environ.get("KGQA_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("the data folder is not here: set KGQA_DATA")
    return folder
