"""Shared fixtures and settings: cache, markers, hypothesis profile and the folder of real data."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kgqa.net.limits import RequestLimiter

pytest_plugins = [
    "tests.browser",
    "tests.cli_runner",
    "tests.foreign_package",
    "tests.surrogates",
    "tests.virtuoso_server",
]
ROOT = Path(__file__).resolve().parent.parent
SOAK = os.environ.get("KGQA_SOAK") == "1"

settings.register_profile(
    "kgqa",
    max_examples=100 if SOAK else 25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kgqa")
# A shell lets background jobs ignore Ctrl-C, and their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose fixtures start a process of the command line, or a server, and those of random values."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.soak)  # KGQA_SOAK changes the number of examples
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & {"kgqa_process", "started"}:
            item.add_marker(pytest.mark.cli)
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if fixtures & {"virtuoso_server", "prepared_folder"} or any(str(each) == "virtuoso" for each in parameters):
            item.add_marker(pytest.mark.server)
    # Files with many slow tests come first: with two processes, the last files should be short.
    slow = Counter(item.path for item in items if any(map(item.get_closest_marker, ("server", "slow"))))
    items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory) -> Path:
    """One cache folder per process of pytest; all processes share the exported embedding models."""
    folder = tmp_path_factory.mktemp("cache")
    if "PYTEST_XDIST_WORKER" in os.environ:
        models = tmp_path_factory.getbasetemp().parent / "models"
        models.mkdir(exist_ok=True)
        (folder / "models").symlink_to(models)
    return folder


@pytest.fixture(autouse=True)
def _own_cache(session_cache, monkeypatch):
    """Keep tests away from the user's cache and settings; a folder of its own for each test would take longer."""
    for name in [name for name in os.environ if name.startswith("KGQA_") and name not in ("KGQA_DATA", "KGQA_SOAK")]:
        monkeypatch.delenv(name)
    # A later test may reuse the port of an earlier server, with other limits.
    RequestLimiter.limiters.clear()
    monkeypatch.setenv("KGQA_CACHE_FOLDER", str(session_cache))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(session_cache.parent / "no-config"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; skips the test if it does not exist."""
    folder = Path(os.environ.get("KGQA_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no data folder; set KGQA_DATA")
    return folder
