"""Installs a built wheel or sdist into an empty virtual environment and uses it from another folder.

python -m scripts.smoke dist/*            each file in turn, with the extras corpus and serve
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
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

    @contextmanager
    def service(self) -> Iterator[str]:
        """Run `kgqa serve` at a free port; yield its address."""
        command = [str(self._command), "serve", "--port", "0"]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            found = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in lines)
            address = next((match[0] for match in found if match), "")
            assert address, "kgqa serve ended without an address"
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


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
    with kgqa.service() as address:
        page = fetch(f"{address}/")
        linked = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
        assert len(linked) > 2, page
        for path in [*sorted(linked), "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js", "/openapi.json"]:
            assert fetch(f"{address}{path}"), path
        asked = json.loads(fetch(f"{address}/ask", {"question": QUESTION}))
        assert [each["name"] for each in asked["answers"]] == ["Bong Joon-ho"], asked


def fetch(url: str, body: dict[str, str] | None = None) -> str:
    """Return the text at a URL of the service; with a body, the reply to a POST."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        text: str = reply.read().decode()
    return text


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
