"""Run folders that a stranger wrote: every command that reads one ends with a message or an answer."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.cli.main import main
from tests.conftest import SOAK
from tests.hostile_files import Nested, as_json, hostile, run_limited

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FILES = ("run.json", "predictions.jsonl", "metrics.json")


@pytest.fixture(scope="module")
def honest(tmp_path_factory, session_cache) -> Path:
    """A folder with a run of two questions in `x`."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGQA_CACHE_FOLDER", str(session_cache))
        patch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            main(["eval", "run", "--dataset", "demo", "--sample", "2", "--out", "x", "--embeddings", "off", "-q"])
    assert not ended.value.code
    return folder


COMMANDS = [
    ("eval", "status", "y"),
    ("eval", "status", "y", "--json"),
    ("eval", "resume", "y"),
    ("eval", "resume", "y", "--trust"),
    ("eval", "resume", "y", "--retry", "failed"),
    ("eval", "merge", "y", "--out", "m"),
    ("report", "y"),
    ("report", "y", "x", "--json"),
    ("report", "y", "--html", "site", "--csv", "a.csv", "--latex", "a.tex", "--markdown", "a.md"),
    ("export", "y", "--sparql", "queries"),
]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def damage(honest: Path, name: str, change) -> None:
    """Make `y` of `x`, with a changed JSON document in it."""
    for made in ("y", "m", "site", "queries"):
        shutil.rmtree(honest / made, ignore_errors=True)
    shutil.copytree(honest / "x", honest / "y")
    text = (honest / "y" / name).read_text()
    lines = text.splitlines() if name == "predictions.jsonl" else [text]
    damaged = as_json(change(json.loads(lines[0])))
    (honest / "y" / name).write_text("\n".join([damaged, *lines[1:]]) + "\n", errors="surrogatepass")
    if name == "run.json":  # so that `resume` has to use it
        predictions = honest / "y/predictions.jsonl"
        predictions.write_text(predictions.read_text().splitlines()[0] + "\n")


def ends_well(honest: Path, arguments: tuple[str, ...]) -> str:
    """What a command said that ended as commands do, and left everything else alone."""
    before = listing(honest / "x")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(honest)
        ended = run_limited(*arguments)
    assert ended.code in (0, 1, 2, 3), (arguments, ended)
    assert "internal error" not in ended.text and "Traceback" not in ended.text, (arguments, ended.text)
    assert not CONTROL.search(ended.text), (arguments, ended.text)
    assert listing(honest / "x") == before
    allowed = {"x", "y", "m", "site", "queries", "a.csv", "a.tex", "a.md"}
    assert {path.name for path in honest.iterdir()} <= allowed
    return ended.text


@settings(max_examples=400 if SOAK else 25)
@given(data=st.data())
def test_a_run_of_a_stranger(honest, data):
    name = data.draw(st.sampled_from(FILES))
    arguments = data.draw(st.sampled_from(COMMANDS))
    damage(honest, name, lambda document: data.draw(hostile(document), label=name))
    ends_well(honest, arguments)


ESCAPES = "a\x1b]0;title\x07\x9b31m\u202eb"


@pytest.mark.parametrize(
    ("name", "keys", "value"),
    [
        ("run.json", ("settings",), [1]),
        ("run.json", ("settings", "explore.depth"), [1]),
        ("run.json", ("dataset", "questions"), 10**30),
        ("run.json", ("method",), ESCAPES),
        ("run.json", ("models",), Nested()),
        ("predictions.jsonl", ("answer", "usage", "cost"), "x"),
        ("predictions.jsonl", ("answer", "usage", "calls"), 10**400),
        ("predictions.jsonl", ("answer", "usage", "stages"), [[1]]),
        ("predictions.jsonl", ("answer", "status"), ESCAPES),
        ("predictions.jsonl", ("failure",), ESCAPES),
        ("predictions.jsonl", ("scores", "hit@1"), 1e308),
        ("predictions.jsonl", ("hops",), 10**30),
        ("predictions.jsonl", ("answer", "trace"), Nested()),
        ("metrics.json", ("n",), {"x": 1}),
    ],
)
def test_what_strangers_were_seen_to_write(honest, name, keys, value):
    def change(document):
        parent = document
        for key in keys[:-1]:
            parent = parent[key]
        parent[keys[-1]] = value
        return document

    damage(honest, name, change)
    for arguments in COMMANDS:
        ends_well(honest, arguments)


@pytest.mark.parametrize("name", ["predictions.jsonl", "run.lock", ".metrics.json.new", ".run.json.new"])
def test_links_in_a_run_lead_nowhere(honest, tmp_path, name):
    """A folder that was unpacked may have links to files of ours: nothing is written there."""
    victim = tmp_path / "victim"
    victim.write_text("a line, and a half")
    damage(honest, "run.json", lambda document: document)
    (honest / "y" / name).unlink(missing_ok=True)
    (honest / "y" / name).symlink_to(victim)
    for arguments in (("eval", "resume", "y", "--trust"), ("eval", "resume", "y"), ("report", "y")):
        ends_well(honest, arguments)
        assert victim.read_text() == "a line, and a half"
    (honest / "y" / name).unlink(missing_ok=True)


def test_a_batch_of_a_stranger_begins_nothing_elsewhere(honest, tmp_path):
    shutil.rmtree(honest / "y", ignore_errors=True)
    (honest / "y").mkdir()
    manifest = json.loads((honest / "x/run.json").read_text())
    names = ("../../victim", "..", "a/b", "a\0", "")
    for runs in (*({name: manifest} for name in names), [manifest], {"a": 1}):
        (honest / "y/begin.json").write_text(json.dumps({"format": 1, "runs": runs}))
        for arguments in (("eval", "resume", "y", "--trust"), ("eval", "status", "y")):
            assert "was not written by kgqa" in ends_well(honest, arguments)
    assert [path.name for path in (honest / "y").iterdir() if path.is_dir()] == []
    (honest / "y/begin.json").write_text(json.dumps({"format": 1, "runs": {"a": {**manifest, "id": "of another"}}}))
    assert "kgqa eval resume --trust y" in ends_well(honest, ("eval", "resume", "y"))
    (honest / "y/a").symlink_to(tmp_path)
    assert "does not write through links" in ends_well(honest, ("eval", "resume", "y", "--trust"))
    assert not list(tmp_path.iterdir())
