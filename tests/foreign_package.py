"""Installs a package of another project, with entry points, for the duration of a test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest


def write_package(folder: Path, entry_points: str, **modules: str) -> None:
    """Write modules and the metadata of a package called `theirs`; `entry_points` is the text of entry_points.txt."""
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")


@pytest.fixture
def foreign_package(tmp_path, monkeypatch) -> Iterator[Callable[..., None]]:
    """`foreign_package(entry_points, **modules)` writes a package and makes it importable; see `write_package`."""

    def install(entry_points: str, **modules: str) -> None:
        folder = tmp_path / "site"
        folder.mkdir()
        write_package(folder, entry_points, **modules)
        monkeypatch.syspath_prepend(str(folder))
        invalidate_caches()

    yield install
    site = str(tmp_path / "site")
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(site):
            del sys.modules[name]
