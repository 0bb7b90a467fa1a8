"""The README and docs stay true: their examples run, their transcript is what the program prints, their tables name what is there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from kgqa.answer_json import answer_object
from kgqa.schema import _KEYS, parse_schema
from kgqa.testing.model_oracle import Gold, ModelOracle
from kgqa.testing.server import ScriptedServer
from tests.cli_runner import KGQA
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("code", blocks(README, "python"))
def test_python_examples_run(code, tmp_path):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Bong Joon-ho" in done.stdout


def test_the_example_of_the_scripted_server_runs(tmp_path):
    (code,) = blocks((ROOT / "docs" / "models.md").read_text(encoding="utf-8"), "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.stdout.split("\n")[0] == "Bong Joon-ho model 1", done.stderr


def test_the_method_of_the_docs_answers(tmp_path, monkeypatch):
    """docs/new-method.md in a package of its own, found by entry point, asked through the command line."""
    text = (ROOT / "docs" / "new-method.md").read_text(encoding="utf-8")
    (code,) = blocks(text, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 44
    (tmp_path / "two_hops.py").write_text(code, encoding="utf-8")
    info = tmp_path / "two_hops-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: two-hops\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[kgqa.methods]\ntwo-hops = two_hops:two_hops\n", encoding="utf-8")
    gold = Gold((frozenset({"[E1] -> film directed by"}),))
    with ScriptedServer(ModelOracle({"": gold})) as server:
        done = subprocess.run(
            [KGQA, "ask", "Who directed the film Parasite?", "--method", "two-hops", "--llm", f"{server.url}#oracle"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
    assert "Bong Joon-ho" in done.stdout, done.stdout + done.stderr


def test_the_example_is_six_lines():
    first = blocks(README, "python")[0]
    assert len([line for line in first.splitlines() if line.strip()]) == 6


def test_transcript_is_what_is_printed(tmp_path):
    lines = README.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("    $ kgqa ask"))
    command = shlex.split(lines[start].strip()[2:])
    end = next(i for i in range(start + 1, len(lines)) if lines[i] and not lines[i].startswith("    "))
    shown = "\n".join(line[4:] for line in lines[start + 1 : end]).strip()
    done = subprocess.run([KGQA, *command[1:]], capture_output=True, text=True, cwd=tmp_path, timeout=120)

    def settled(text: str) -> str:
        return re.sub(r"[\d.]+ s$", "N s", text.strip(), flags=re.MULTILINE)

    assert settled(done.stdout) == settled(shown)


def test_commands_in_the_docs_exist():
    """Every `kgqa ...` line in the docs parses, options included."""
    from kgqa.cli.main import cli

    found = 0
    for file in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for line in re.findall(r"^    (?:\$ )?(kgqa .*)$", file.read_text(encoding="utf-8"), re.MULTILINE):
            words = shlex.split(re.split(r" [<>|] ", line)[0].replace("...", "x"))[1:]
            command, context = cli, cli.make_context("kgqa", [], resilient_parsing=True)
            while words and hasattr(command, "get_command") and command.get_command(context, words[0]):
                command = command.get_command(context, words.pop(0))
            command.make_context("kgqa", words, resilient_parsing=False)
            found += 1
    assert found >= 8


def test_the_keys_of_an_answer_are_documented():
    from kgqa.model import Answer, Question

    documented = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "answer-json.md").read_text(), re.MULTILINE))
    assert documented == set(answer_object(Answer(Question("x"), "failed"), trace=True))


def test_the_keys_of_a_schema_are_documented_and_the_example_is_one():
    text = (ROOT / "docs" / "schemas.md").read_text()
    rows = "\n".join(line for line in text.splitlines() if line.startswith("| `"))
    documented = set(re.findall(r"`(\w+\.\w+)`", rows))
    assert {f"{section}.{key}" for section, keys in _KEYS.items() for key in keys} <= documented
    assert parse_schema(blocks(text, "toml")[0]).name == "library"


def test_make_help_names_every_target():
    done = subprocess.run(["make", "help"], capture_output=True, text=True, cwd=ROOT, timeout=60)
    for target in ("setup", "demo", "test", "soak", "bench", "clean"):
        assert f"make {target}" in done.stdout
