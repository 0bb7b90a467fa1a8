"""`kgqa rank train` as its users run it: on a small graph, on an ontology, wrongly, and stopped."""

from __future__ import annotations

import json
import random
import signal
import time

import pytest

from kgqa.rank.trained_ranker import TrainedRanker

NS = "http://rdf.freebase.com/ns/"
# what people ask, in words that are not the relations' own
ASKED = {
    "people.person.place_of_birth": ["where does {} come from", "in what town was {} raised as a baby"],
    "people.person.profession": ["what does {} do for a living", "how does {} earn money"],
    "people.person.spouse": ["who is {} married to", "whom did {} wed"],
    "people.person.children": ["who are the sons and daughters of {}", "what kids does {} have"],
    "people.person.religion": ["what does {} believe in", "which church does {} go to"],
    "people.person.height": ["how tall is {}", "what size is {}"],
}


@pytest.fixture
def files(tmp_path):
    """A graph of fifty people, and questions on forty of them to train on and on ten to measure."""
    lines = []
    for number in range(50):
        lines.append(f'<{NS}m.p{number}> <{NS}type.object.name> "Person {number:02}"@en .')
        lines += [f"<{NS}m.p{number}> <{NS}{relation}> <{NS}m.{relation[-5:]}{number % 7}> ." for relation in ASKED]
    (tmp_path / "g.nt").write_text("\n".join(lines) + "\n")
    rows = []
    for number in range(50):
        for relation, wordings in ASKED.items():
            text = random.Random(f"{number} {relation}").choice(wordings).format(f"person {number:02}")
            query = f"SELECT ?x WHERE {{ <{NS}m.p{number}> <{NS}{relation}> ?x }}"
            rows.append((number, {"question": f"{text}?", "sparql": query}))
    for name, part in (("train", range(40)), ("test", range(40, 50))):
        text = "".join(json.dumps(row) + "\n" for number, row in rows if number in part)
        (tmp_path / f"{name}.jsonl").write_text(text)
    (tmp_path / "roles").write_text("".join(f"people.person {relation} location.location\n" for relation in ASKED))
    return tmp_path


@pytest.fixture
def loaded(kgqa, files):
    done = kgqa("graph", "load", "g.nt", "--into", "graph", "--schema", "freebase")
    assert done.returncode == 0, done.err
    return files


def test_a_ranker_trained_on_a_graph(kgqa, loaded):
    done = kgqa("rank", "train", "train.jsonl", "--graph", "graph", "--evaluate", "test.jsonl", "--out", "r.npz", "--json",
                "--epochs", "30")  # fmt: skip
    assert done.returncode == 0, done.err
    found = json.loads(done.out)
    assert found["questions"] == 240 and found["dropped"] == found["unread"] == found["without_pool"] == 0
    assert found["from_graph"] == 240 and found["from_ontology"] == 0
    assert found["examples"] + found["held_out"] == 240 and 15 <= found["held_out"] <= 60
    assert found["after"] >= found["before"] and found["after"] >= 0.9
    assert found["bytes"] == (loaded / "r.npz").stat().st_size < 2_000_000
    TrainedRanker.load(loaded / "r.npz")

    before = kgqa("rank", "train", "train.jsonl", "--graph", "graph", "--out", "again.npz", "--epochs", "30", "-q")
    assert before.returncode == 0 and (loaded / "again.npz").read_bytes() == (loaded / "r.npz").read_bytes()
    other = kgqa(
        "rank", "train", "train.jsonl", "--graph", "graph", "--out", "other.npz", "--epochs", "1", "--seed", "2"
    )
    assert (loaded / "other.npz").read_bytes() != (loaded / "r.npz").read_bytes()
    assert "Without --evaluate" in other.err and "hit@1 on those held back" in other.out


def test_asking_with_it(kgqa, loaded):
    assert kgqa("rank", "train", "train.jsonl", "--graph", "graph", "--out", "r.npz", "--epochs", "30").returncode == 0
    questions = [json.loads(line) for line in (loaded / "test.jsonl").read_text().splitlines()]
    asked = "".join(
        json.dumps({"question": row["question"], "topics": [row["sparql"].split("<")[1].split(">")[0]]}) + "\n"
        for row in questions
    )
    done = kgqa("ask", "--graph", "graph", "--json", "--depth", "1", "--chooser", "trained", "--prefilter", "trained",
                "--ranker", "r.npz", input=asked)  # fmt: skip
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert len(answers) == len(questions), done.err
    relations = [row["sparql"].split("<")[2].split(">")[0] for row in questions]
    right = sum(relation in answer["sparql"].replace("ns:", NS) for relation, answer in zip(relations, answers))
    assert right >= 0.8 * len(questions)


def test_a_ranker_trained_on_an_ontology_alone(kgqa, files):
    done = kgqa("rank", "train", "train.jsonl", "--ontology", "roles", "--out", "r.npz", "--json", "--epochs", "2")
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["from_ontology"] == 240
    assert TrainedRanker.load(files / "r.npz").size == 384


def test_what_is_measured_is_dropped_and_counted(kgqa, files):
    lines = (files / "train.jsonl").read_text().splitlines()
    (files / "test.jsonl").write_text("\n".join(lines[:30]) + "\n")
    done = kgqa("rank", "train", "train.jsonl", "--ontology", "roles", "--evaluate", "test.jsonl", "--out", "r.npz",
                "--epochs", "1")  # fmt: skip
    assert done.returncode == 0, done.err
    assert "240 questions; 30 dropped because they are to be measured" in done.out
    done = kgqa("rank", "train", "train.jsonl", "--ontology", "roles", "--evaluate", "train.jsonl", "--out", "none.npz")
    assert done.returncode == 2 and "nothing to train on: of 240 questions 240 are among" in done.err
    assert not (files / "none.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.jsonl", "--out", "r.npz"], "Give --graph or --ontology"),
        (["missing.jsonl", "--ontology", "roles", "--out", "r.npz"], "missing.jsonl cannot be read"),
        (["roles", "--ontology", "roles", "--out", "r.npz"], "roles, line 1 is no JSON"),
        (["train.jsonl", "--ontology", "missing", "--out", "r.npz"], "missing cannot be read"),
        (["train.jsonl", "--ontology", "train.jsonl", "--out", "r.npz"], "is no ontology"),
        (["train.jsonl", "--ontology", "roles", "--out", "nowhere/r.npz"], "nowhere/r.npz cannot be written"),
        (["train.jsonl", "--ontology", "roles", "--out", "."], "cannot be written"),
        (["train.jsonl", "--ontology", "roles", "--out", "r.npz", "--epochs", "0"], "--epochs"),
        (["train.jsonl", "--graph", "missing", "--out", "r.npz"], "missing"),
        (["train.jsonl", "--ontology", "roles", "--schema", "unheard", "--out", "r.npz"], "unheard"),
        (["--ontology", "roles", "--out", "r.npz"], "QUESTIONS"),
    ],
)
def test_what_cannot_be_trained_on_is_said_at_once(kgqa, files, arguments, message):
    done = kgqa("rank", "train", *arguments)
    assert done.returncode in (1, 2) and message in done.err
    assert not (files / "r.npz").exists()


@pytest.mark.parametrize("content", [b"", b"no ranker"])
def test_asking_with_a_damaged_ranker(kgqa, tmp_path, content):
    (tmp_path / "r.npz").write_bytes(content)
    done = kgqa("ask", "Who directed the film Parasite?", "--chooser", "trained", "--ranker", "r.npz")
    assert done.returncode == 2 and "r.npz is damaged, or no ranker" in done.err


def test_stopped_by_ctrl_c_nothing_is_left(started, files):
    (files / "many.jsonl").write_text((files / "train.jsonl").read_text() * 30)  # far more work than is waited for
    process = started("rank", "train", "many.jsonl", "--ontology", "roles", "--out", "r.npz", "--epochs", "100")
    time.sleep(6)
    assert process.poll() is None, "it ended before it was stopped"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and b"Traceback" not in errors and b"Stopped" in errors
    assert not [file.name for file in files.iterdir() if "npz" in file.name]
