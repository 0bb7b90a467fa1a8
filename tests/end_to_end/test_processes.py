"""The installed `kgqa` in a separate process: each command once, exit codes and closed pipes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kgqa.cli.main import COMMANDS

QUESTION = "Which city is the capital of the country whose anthem is Kimigayo?"
QUERY = "SELECT ?x WHERE { <http://example.org/a> <http://example.org/b> ?x }"
RUNS = {
    "ask": (["ask", QUESTION, "--embeddings", "off"], 0, "Tokyo (m.demo_tokyo)"),
    "cache": (["cache", "info"], 0, "demo"),
    "chat": (["chat", "--embeddings", "off"], 0, "> SELECT"),
    "completion": (["completion", "bash"], 0, "_KGQA_COMPLETE"),
    "config": (["config", "show"], 0, "mediator_hop"),
    "corpus": (["corpus", "status", "nowhere"], 1, "nowhere"),
    "data": (["data", "list", "cwq"], 0, "cwq"),
    "doctor": (["doctor", "--graph", "nowhere"], 1, "reachable"),
    "edits": (["edits", "list", "nowhere"], 1, "nowhere"),
    "eval": (["eval", "status", "nowhere"], 1, "nowhere"),
    "explain": (["explain"], 0, "Find every ?x"),
    "export": (["export", "nowhere", "--sparql", "queries"], 1, "nowhere"),
    "trajectories": (["trajectories", "export", "nowhere", "--format", "sft", "--out", "chats"], 1, "nowhere"),
    "freebase": (["freebase", "clean", "nowhere.gz", "--dry-run"], 1, "nowhere.gz"),
    "graph": (["graph", "info"], 0, "triples"),
    "init": (["init", "--yes", "--llm", "nonsense"], 2, "nonsense"),
    "keys": (["keys", "list"], 0, "kept"),
    "prompts": (["prompts", "list"], 0, "top/compare"),
    "rank": (["rank", "train", "nowhere.jsonl", "--ontology", "nowhere", "--out", "my.ranker"], 1, "nowhere"),
    "report": (["report", "nowhere"], 1, "nowhere"),
    "score": (["score", "nowhere.jsonl", "--format", "tog"], 1, "nowhere.jsonl"),
    "serve": (["serve", "--host", "0.0.0.0"], 2, "token"),
    "virtuoso": (["virtuoso", "status"], 3, "stopped"),
}
"""Arguments, exit code, and a part of the output, for each command."""


@pytest.mark.parametrize("name", RUNS)
def test_each_command(kgqa_process, tmp_path, name):
    arguments, code, text = RUNS[name]
    done = kgqa_process(
        *arguments, input=QUERY, KGQA_VIRTUOSO_FOLDER=str(tmp_path / "none"), KGQA_RANK_EMBEDDINGS="off"
    )
    assert done.returncode == code and text in done.out + done.err, done.out + done.err


def test_every_command_is_tested():
    assert set(RUNS) == set(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["ask", "Is Jakarta in Ruritania?"], 3),
        (["ask", QUESTION, "--depth", "many"], 2),
        (["ask", QUESTION, "--graph", "nowhere"], 1),
        (["unknown"], 2),
    ],
)
def test_exit_codes(kgqa_process, arguments, code):
    done = kgqa_process(*arguments)
    assert done.returncode == code
    assert code != 3 or "Not supported" in done.out


@pytest.mark.cli
@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["ask", "", "--embeddings", "off"], 1)])
def test_python_module_is_the_command(tmp_path, kgqa_process, arguments, code):
    """`python -m kgqa` does the same as `kgqa`."""
    done = subprocess.run([sys.executable, "-m", "kgqa", *arguments], cwd=tmp_path, capture_output=True, text=True)
    command = kgqa_process(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (code, command.out, command.err)


def test_closed_output_pipe(started):
    """`kgqa ask ... | head -1` ends with exit code 0 and without an error message."""
    process = started("ask", "--json", "--embeddings", "off")
    process.stdin.write(b"Who directed the film Parasite?\n" * 50)
    process.stdin.close()
    assert json.loads(process.stdout.readline())["status"] == "answered"
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(60) == 0 and errors == ""


@pytest.mark.parametrize("arguments", [("--help",), ("graph", "--help"), ("config", "show"), ("ask", QUESTION)])
def test_output_closed_from_the_start(started, arguments):
    """`kgqa ... | head -0` ends with exit code 0, whether the output is written at once or at the end."""
    process = started(*arguments)
    process.stdin.close()
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(60) == 0 and "kgqa:" not in errors and "Traceback" not in errors, errors


def test_output_that_is_not_utf_8(kgqa_process):
    """Names outside the encoding of the terminal are escaped."""
    done = kgqa_process("ask", QUESTION, "--embeddings", "off", PYTHONIOENCODING="ascii", COLUMNS="120")
    assert done.returncode == 0 and "Kimigayo --national anthem of--> " in done.out
