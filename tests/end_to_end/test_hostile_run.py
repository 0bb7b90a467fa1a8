"""Run folders from untrusted sources: every command ends with a message or an answer."""

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
def folder(tmp_path_factory, session_cache) -> Path:
    """A folder with a run of two questions in `x`."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGQA_CACHE_FOLDER", str(session_cache))
        patch.chdir(folder)
        with pytest.raises(SystemExit) as result:
            main(["eval", "run", "--dataset", "demo", "--sample", "2", "--out", "x", "--embeddings", "off", "-q"])
    assert not result.value.code
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


def damage(folder: Path, name: str, change) -> None:
    """Copy `x` to `y` and change a JSON document in it."""
    for name_ in ("y", "m", "site", "queries"):
        shutil.rmtree(folder / name_, ignore_errors=True)
    shutil.copytree(folder / "x", folder / "y")
    text = (folder / "y" / name).read_text()
    lines = text.splitlines() if name == "predictions.jsonl" else [text]
    damaged = as_json(change(json.loads(lines[0])))
    (folder / "y" / name).write_text("\n".join([damaged, *lines[1:]]) + "\n", errors="surrogatepass")
    if name == "run.json":  # leave a question for `resume`
        predictions = folder / "y/predictions.jsonl"
        predictions.write_text(predictions.read_text().splitlines()[0] + "\n")


def check_output(folder: Path, arguments: tuple[str, ...]) -> str:
    """Return the output of a command, which must end normally and change nothing else."""
    before = listing(folder / "x")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = run_limited(*arguments)
    assert result.code in (0, 1, 2, 3), (arguments, result)
    assert "internal error" not in result.text and "Traceback" not in result.text, (arguments, result.text)
    assert not CONTROL.search(result.text), (arguments, result.text)
    assert listing(folder / "x") == before
    allowed = {"x", "y", "m", "site", "queries", "a.csv", "a.tex", "a.md"}
    assert {path.name for path in folder.iterdir()} <= allowed
    return result.text


@pytest.mark.soak
@settings(max_examples=400 if SOAK else 25)
@given(data=st.data())
@pytest.mark.slow
def test_randomly_damaged_run(folder, data):
    name = data.draw(st.sampled_from(FILES))
    arguments = data.draw(st.sampled_from(COMMANDS))
    damage(folder, name, lambda document: data.draw(hostile(document), label=name))
    check_output(folder, arguments)


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
        ("predictions.jsonl", ("answer", "trace"), [{"kind": "\ud800"}]),
        ("metrics.json", ("n",), {"x": 1}),
    ],
)
def test_known_damage(folder, name, keys, value):
    def change(document):
        parent = document
        for key in keys[:-1]:
            parent = parent[key]
        parent[keys[-1]] = value
        return document

    damage(folder, name, change)
    for arguments in COMMANDS:
        check_output(folder, arguments)


@pytest.mark.parametrize("name", ["predictions.jsonl", "run.lock", "metrics.json", "run.json"])
def test_links_in_a_run_are_not_followed(folder, tmp_path, name):
    """An unpacked folder may contain links to other files; nothing is written through them."""
    victim = tmp_path / "victim"
    victim.write_text("a line, and a half")
    damage(folder, "run.json", lambda document: document)
    (folder / "y" / name).unlink(missing_ok=True)
    (folder / "y" / name).symlink_to(victim)
    for arguments in (("eval", "resume", "y", "--trust"), ("eval", "resume", "y"), ("report", "y")):
        check_output(folder, arguments)
        assert victim.read_text() == "a line, and a half"
    (folder / "y" / name).unlink(missing_ok=True)


def test_hostile_list_of_runs(folder, tmp_path):
    shutil.rmtree(folder / "y", ignore_errors=True)
    (folder / "y").mkdir()
    manifest = json.loads((folder / "x/run.json").read_text())
    names = ("../../victim", "..", "a/b", "a\0", "")
    for runs in (*({name: manifest} for name in names), [manifest], {"a": 1}):
        (folder / "y/begin.json").write_text(json.dumps({"format": 1, "runs": runs}))
        for arguments in (("eval", "resume", "y", "--trust"), ("eval", "status", "y")):
            assert "begin.json" in check_output(folder, arguments)
    assert [path.name for path in (folder / "y").iterdir() if path.is_dir()] == []
    (folder / "y/begin.json").write_text(json.dumps({"format": 1, "runs": {"a": {**manifest, "id": "of another"}}}))
    assert "kgqa eval resume --trust y" in check_output(folder, ("eval", "resume", "y"))
    (folder / "y/a").symlink_to(tmp_path)
    assert "does not write to a folder that contains links" in check_output(folder, ("eval", "resume", "y", "--trust"))
    assert not list(tmp_path.iterdir())
