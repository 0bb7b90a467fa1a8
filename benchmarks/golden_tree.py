"""An earlier commit of kgqa below build/, with an environment of its own, in which `golden.py` records it."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from common import CHECKOUT

BENCHMARKS = CHECKOUT / "benchmarks"
COMMITS = BENCHMARKS / "golden.commit"
"""The commit that the present tree is compared with; if an issue moved it forward, the first one stands below."""
BUILD = CHECKOUT / "build" / "golden"
ADAPTER = "golden_adapter.py"


def reference(*, first: bool) -> str:
    """Return the hash of the commit to compare with."""
    commits = COMMITS.read_text().split()
    return commits[-1 if first else 0]


def recorded(commit: str, only: list[str]) -> Path:
    """Record sections of a commit that are not recorded yet; return the folder of the records."""
    folder = BUILD / commit[:8]
    records = folder / "records"
    missing = [section for section in only if not (records / f"{section}.jsonl.gz").exists()]
    if missing:
        python = installed(commit, folder / "tree")
        script = folder / "tree" / "benchmarks" / "golden.py"
        subprocess.run([python, script, "record", records, "--only", ",".join(missing)], check=True)
    return records


def installed(commit: str, tree: Path) -> Path:
    """Unpack a commit with today's recording scripts, and install it; return its interpreter.

    The environment finds the packages of the present one, and gets what is missing there or has another version.
    """
    python = tree / ".venv" / "bin" / "python"
    if not python.exists():
        shutil.rmtree(tree, ignore_errors=True)
        archive = subprocess.run(["git", "archive", commit], cwd=CHECKOUT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(tree, filter="data")
        subprocess.run([sys.executable, "-m", "venv", tree / ".venv"], check=True)
        (packages,) = tree.glob(".venv/lib/*/site-packages")
        borrowed = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "borrowed.pth").write_text("".join(f"{path}\n" for path in borrowed))
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--constraint", "constraints.txt", "-e", ".[minilm,test]"], cwd=tree, check=True)
    adapter = tree / "benchmarks" / ADAPTER
    for file in BENCHMARKS.glob("golden*.py"):
        if file.name != ADAPTER:
            shutil.copy(file, adapter.parent)
    if commit == reference(first=True):  # it has none
        shutil.copy(BENCHMARKS / "golden_adapter_first.py", adapter)
    return python
