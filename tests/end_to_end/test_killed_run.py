"""`kgqa eval run` and `resume` killed just before one of their writes; `resume` must restore the undisturbed result."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.end_to_end.test_outages import reproducible_records
from tests.kill_at_write import changes_of, kill_at

pytestmark = pytest.mark.slow
METHODS = ("top", "top-1", "top-2")
COMMAND = ("eval", "run", "--dataset", "demo", "--sample", "2", "--method", ",".join(METHODS), "--embeddings", "off")
COMMAND += ("--concurrency", "1", "-q")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A folder with its own cache, and an undisturbed run in `quiet`."""
    folder = tmp_path_factory.mktemp("killed")
    environment = {"KGQA_CACHE_FOLDER": str(folder / "cache")}
    assert kill_at(0, folder, [*COMMAND, "--out", "quiet"], cwd=folder, env=environment).returncode == 0
    return folder, environment


def resume_and_compare(prepared, out: str) -> None:
    """Resume the run, or start it if it was not created, and compare it with the undisturbed run."""
    folder, environment = prepared
    created = (folder / out / "begin.json").exists() or any((folder / out).glob("*/run.json"))
    arguments = ["eval", "resume", out, "-q"] if created else [*COMMAND, "--out", out]
    done = kill_at(0, folder, arguments, cwd=folder, env=environment)
    assert done.returncode == 0, (arguments, done.stderr.decode())
    for method in METHODS:
        assert reproducible_records(folder / out / method) == reproducible_records(folder / "quiet" / method), (
            out,
            method,
        )


def selected_numbers(count: int, *numbers: int) -> list[int]:
    return list(range(1, count + 1)) if SOAK else [number for number in numbers if number <= count]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_killed_at_a_write_of_eval_run(prepared):
    """All methods are finished in the end, whether none, some or all had started, and without --trust."""
    folder, environment = prepared
    count = changes_of(folder, [*COMMAND, "--out", "counted"], cwd=folder, env=environment)
    assert count > 30
    for number in selected_numbers(count, 18):
        out = f"run{number}"
        done = kill_at(number, folder, [*COMMAND, "--out", out], cwd=folder, env=environment)
        assert done.returncode == -9
        resume_and_compare(prepared, out)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_killed_at_a_write_of_resume(prepared):
    folder, environment = prepared
    arguments = ["eval", "resume", "again", "-q"]

    def prepare_runs() -> None:
        """Prepare a run with a torn line, and one that has not started."""
        shutil.rmtree(folder / "again", ignore_errors=True)
        shutil.copytree(folder / "quiet", folder / "again")
        predictions = folder / "again/top/predictions.jsonl"
        predictions.write_bytes(predictions.read_bytes()[:-100])
        (folder / "again/top-2/predictions.jsonl").unlink()

    prepare_runs()
    count = changes_of(folder, arguments, cwd=folder, env=environment)
    for number in selected_numbers(count, 9):
        prepare_runs()
        assert kill_at(number, folder, arguments, cwd=folder, env=environment).returncode == -9
        resume_and_compare(prepared, "again")
