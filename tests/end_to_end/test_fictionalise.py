"""`kgqa graph fictionalise`."""

from __future__ import annotations

import json
import signal
import time

import pytest


def test_invented_graph(kgqa, tmp_path):
    done = kgqa("graph", "fictionalise", "--invented", "--out", "fiction")
    assert done.returncode == 0, done.err
    assert "96 of 96 have new answers (100%)" in done.out and "kgqa eval run --graph fiction" in done.out
    asked = kgqa("graph", "info", "fiction", "--json")
    assert json.loads(asked.out)["schema"] == "freebase"
    row = json.loads((tmp_path / "fiction" / "questions.jsonl").read_text().splitlines()[0])
    answer = kgqa("ask", row["question"], "--topic", row["topic_entities"][0]["id"], "--graph", "fiction", "--json",
                  "--embeddings", "off")  # fmt: skip
    assert json.loads(answer.out)["status"] == "answered"


@pytest.mark.slow
def test_demo_graph_and_seeds(kgqa, tmp_path):
    found = []
    for seed in ("0", "0", "1"):
        out = f"fiction{len(found)}"
        done = kgqa("graph", "fictionalise", "--out", out, "--seed", seed, "--json")
        found.append(json.loads(done.out))
    assert found[0]["shapes"]["path"]["kept"] >= 0.8 * found[0]["shapes"]["path"]["asked"] > 0
    assert found[0]["fingerprint"] == found[1]["fingerprint"] != found[2]["fingerprint"]
    # each question is kept or left out
    for each in found:
        lines = [
            (tmp_path / each["folder"] / name).read_text().splitlines()
            for name in ("questions.jsonl", "left_out.jsonl")
        ]
        assert sum(map(len, lines)) == each["questions"] == 91


def test_rewire_files(kgqa, tmp_path):
    x = "http://x.example/"
    lines = [f"<{x}{n}> <{x}near> <{x}{(n * 3 + 1) % 20}> .\n" for n in range(20)]
    (tmp_path / "a.nt").write_text("".join(lines[:9]))
    (tmp_path / "b.nt").write_text("".join(lines[9:]))
    row = {"question": "What is near 4?", "topic_entities": [{"id": f"{x}4"}], "gold_path": [f"{x}near"]}
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n")
    done = kgqa("graph", "fictionalise", "a.nt", "b.nt", "--questions", "q.jsonl", "--out", "fiction", "--json")
    found = json.loads(done.out)
    assert found["triples"] == found["facts"] == 20 and found["shapes"]["path"] == {"asked": 1, "kept": 1}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere", "--out", "fiction"], 1, "no graph at nowhere"),
        (["a.nt", "nowhere", "--out", "fiction"], 2, "cannot be combined"),
        (["one", "two", "--out", "fiction"], 2, "one graph"),
        (["--invented", "a.nt", "--out", "fiction"], 2, "--invented"),
        (["a.nt", "--questions", "none.jsonl", "--out", "fiction"], 1, "none.jsonl"),
        (["a.nt", "--out", "full"], 1, "Choose another folder"),
        (["a.nt"], 2, "--out"),
    ],
)
def test_invalid_arguments(kgqa, tmp_path, arguments, code, message):
    (tmp_path / "a.nt").write_text("<http://x.example/a> <http://x.example/b> <http://x.example/c> .\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = kgqa("graph", "fictionalise", *arguments)
    assert (done.returncode, message in done.err) == (code, True), done.err
    assert not (tmp_path / "fiction").exists()


def test_ctrl_c_leaves_no_files(started, tmp_path):
    lines = (
        f"<http://x.example/s{n}> <http://x.example/r{n % 7}> <http://x.example/o{n % 999}> .\n" for n in range(90_000)
    )
    (tmp_path / "big.nt").write_text("".join(lines))
    process = started("graph", "fictionalise", "big.nt", "--out", "fiction")
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130 and "fiction was not created" in err and "Traceback" not in err
    assert sorted(f.name for f in tmp_path.iterdir()) == ["big.nt"]
