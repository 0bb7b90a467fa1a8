"""`kgqa eval run` and `resume` are killed just before one of their writes: `resume` ends as if nothing had been."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.end_to_end.test_outages import found
from tests.kill_at_write import changes_of, kill_at

pytestmark = pytest.mark.slow
METHODS = ("top", "top-1", "top-2")
ASKED = ("eval", "run", "--dataset", "demo", "--sample", "2", "--method", ",".join(METHODS), "--embeddings", "off")
ASKED += ("--concurrency", "1", "-q")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A folder with a cache of its own in which the demo graph is, and where an undisturbed run is in `quiet`."""
    folder = tmp_path_factory.mktemp("killed")
    environment = {"KGQA_CACHE_FOLDER": str(folder / "cache")}
    assert kill_at(0, folder, [*ASKED, "--out", "quiet"], cwd=folder, env=environment).returncode == 0
    return folder, environment


def resumed(place, out: str) -> None:
    """Go on until the end, or begin where nothing was begun."""
    folder, environment = place
    begun = (folder / out / "begin.json").exists() or any((folder / out).glob("*/run.json"))
    arguments = ["eval", "resume", out, "-q"] if begun else [*ASKED, "--out", out]
    done = kill_at(0, folder, arguments, cwd=folder, env=environment)
    assert done.returncode == 0, (arguments, done.stderr.decode())
    for method in METHODS:
        assert found(folder / out / method) == found(folder / "quiet" / method), (out, method)


def chosen(count: int, *few: int) -> list[int]:
    return list(range(1, count + 1)) if SOAK else [number for number in few if number <= count]


@pytest.mark.timeout(3600)
def test_killed_at_a_write_of_eval_run(place):
    """Whether none, some or all methods have begun: all of them are done in the end, and nobody has to trust anybody."""
    folder, environment = place
    count = changes_of(folder, [*ASKED, "--out", "counted"], cwd=folder, env=environment)
    assert count > 30
    for number in chosen(count, 14, 22):
        out = f"run{number}"
        done = kill_at(number, folder, [*ASKED, "--out", out], cwd=folder, env=environment)
        assert done.returncode == -9
        resumed(place, out)


@pytest.mark.timeout(3600)
def test_killed_at_a_write_of_resume(place):
    folder, environment = place
    arguments = ["eval", "resume", "again", "-q"]

    def begun() -> None:
        """A run that was stopped in its middle, with a torn line, and one that has not begun."""
        shutil.rmtree(folder / "again", ignore_errors=True)
        shutil.copytree(folder / "quiet", folder / "again")
        predictions = folder / "again/top/predictions.jsonl"
        predictions.write_bytes(predictions.read_bytes()[:-100])
        (folder / "again/top-2/predictions.jsonl").unlink()

    begun()
    count = changes_of(folder, arguments, cwd=folder, env=environment)
    for number in chosen(count, 9):
        begun()
        assert kill_at(number, folder, arguments, cwd=folder, env=environment).returncode == -9
        resumed(place, "again")
