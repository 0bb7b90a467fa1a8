"""Installs a built wheel or sdist into an empty virtual environment and uses it from another folder.

python -m scripts.smoke dist/*            each file in turn, with the extras corpus and serve
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTION = "Who directed the film Parasite?"
ABOUT_DOCUMENTS = "Who is the architect of the lighthouse of Sandrey?"
EXTRAS = "corpus,serve"
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


class Installation:
    """The command of an installation, run in one folder, without settings and variables of its user."""

    def __init__(self, command: Path, folder: Path) -> None:
        self.folder = folder
        self._command = command
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KGQA_", "PIP_", "VIRTUAL_ENV"))}
        home = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
        self.environment = kept | home | {"KGQA_RANK_EMBEDDINGS": "off"}

    def output(self, *arguments: str) -> str:
        """Run a command that has to succeed, and return what it prints."""
        command = [str(self._command), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise AssertionError(f"kgqa {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def use(command: Path, folder: Path) -> None:
    """Use every part of an installation once.

    Args:
        command: The installed `kgqa`.
        folder: An empty folder for what the commands write.

    Raises:
        AssertionError: A command fails or writes something else than expected.
    """
    kgqa = Installation(command, folder)
    assert kgqa.output("--version").startswith("kgqa, version ")
    assert "triples" in kgqa.output("graph", "info")
    answer = json.loads(kgqa.output("ask", QUESTION, "--json"))
    assert [each["name"] for each in answer["answers"]] == ["Bong Joon-ho"], answer
    assert (answer["status"], answer["query_class"], answer["grounding"]) == ("answered", "exact", "graph"), answer
    kgqa.output("corpus", "build", "--demo", "--into", "corpus")
    assert "Nils Aaberg" in kgqa.output("ask", ABOUT_DOCUMENTS, "--graph", "corpus")
    kgqa.output("eval", "run", "--dataset", "demo", "--sample", "2", "--out", "run")
    kgqa.output("report", "run", "--html", "site")
    assert len(list((folder / "site").rglob("*.html"))) == 3
    assert "counselor/plan" in kgqa.output("prompts", "list")


def install(archive: Path, folder: Path) -> Path:
    """Install a wheel or an sdist with extras into a new virtual environment; return its command."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(CONSTRAINTS), f"{archive.resolve()}[{EXTRAS}]"], check=True)
    return folder / "bin" / "kgqa"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archives", nargs="+", type=Path, help="wheels and sdists")
    for archive in parser.parse_args().archives:
        with tempfile.TemporaryDirectory(prefix="kgqa-smoke-") as name:
            (Path(name) / "work").mkdir()
            use(install(archive, Path(name) / "venv"), Path(name) / "work")
        print(f"{archive.name}: works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
