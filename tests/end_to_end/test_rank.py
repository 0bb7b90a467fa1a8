"""`kgqa rank train` on a small graph and on an ontology, its errors, and Ctrl-C."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest

from kgqa.rank.trained_ranker import TrainedRanker
from tests.cli_runner import run_cli

NS = "http://rdf.freebase.com/ns/"
# wordings without the words of the relations
WORDINGS = {
    "people.person.place_of_birth": ["where does {} come from", "in what town was {} raised as a baby"],
    "people.person.profession": ["what does {} do for a living", "how does {} earn money"],
    "people.person.spouse": ["who is {} married to", "whom did {} wed"],
    "people.person.children": ["who are the sons and daughters of {}", "what kids does {} have"],
    "people.person.religion": ["what does {} believe in", "which church does {} go to"],
    "people.person.height": ["how tall is {}", "what size is {}"],
}


PEOPLE = 30
TRAINED = 24
"""Questions about the first people are for training, those about the others for evaluation."""


def write_files(folder: Path) -> Path:
    """Write a graph of people, training questions, evaluation questions and an ontology."""
    lines = []
    for number in range(PEOPLE):
        lines.append(f'<{NS}m.p{number}> <{NS}type.object.name> "Person {number:02}"@en .')
        lines += [f"<{NS}m.p{number}> <{NS}{relation}> <{NS}m.{relation[-5:]}{number % 7}> ." for relation in WORDINGS]
    (folder / "g.nt").write_text("\n".join(lines) + "\n")
    rows = []
    for number in range(PEOPLE):
        for relation, wordings in WORDINGS.items():
            text = random.Random(f"{number} {relation}").choice(wordings).format(f"person {number:02}")
            query = f"SELECT ?x WHERE {{ <{NS}m.p{number}> <{NS}{relation}> ?x }}"
            rows.append((number, {"question": f"{text}?", "sparql": query}))
    for name, part in (("train", range(TRAINED)), ("test", range(TRAINED, PEOPLE))):
        text = "".join(json.dumps(row) + "\n" for number, row in rows if number in part)
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "roles").write_text("".join(f"people.person {relation} location.location\n" for relation in WORDINGS))
    return folder


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


TRAIN = ("rank", "train", "train.jsonl", "--graph", "graph", "--epochs", "15", "--out")
COUNT = TRAINED * len(WORDINGS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, session_cache):
    """A folder with a graph and a trained ranker `my.ranker`, and the output of training."""
    folder = write_files(tmp_path_factory.mktemp("ranker"))
    options = {"cwd": folder, "KGQA_CACHE_FOLDER": str(session_cache)}
    assert run_cli("graph", "load", "g.nt", "--into", "graph", "--schema", "freebase", **options).returncode == 0
    done = run_cli(*TRAIN, "my.ranker", "--evaluate", "test.jsonl", "--json", **options)
    assert done.returncode == 0, done.err
    return folder, json.loads(done.out)


def test_train_on_a_graph(trained):
    folder, found = trained
    assert found["questions"] == COUNT and found["dropped"] == found["unused"] == 0
    own, transfer = found["own"], found["transfer"]
    assert found["examples"] + own["examples"] == COUNT and 0 < own["examples"] <= COUNT / 4
    assert own["head"] >= own["cosine"] and own["head"] >= 0.9 and own["mixed"] >= own["cosine"]
    assert 300 <= found["templates"] <= 300 + COUNT and found["held_out"] == "0 relations in no question"
    assert transfer["examples"] == 0, "every relation of the graph is in a question"
    assert found["bytes"] == (folder / "my.ranker").stat().st_size < 2_000_000
    TrainedRanker.load(folder / "my.ranker")


def test_training_is_deterministic(trained):
    folder, _ = trained
    assert run_cli(*TRAIN, "again.ranker", "-q", cwd=folder).returncode == 0
    assert (folder / "again.ranker").read_bytes() == (folder / "my.ranker").read_bytes()
    other = run_cli(*TRAIN, "othemy.ranker", "--epochs", "1", "--seed", "2", cwd=folder)
    assert (folder / "othemy.ranker").read_bytes() != (folder / "my.ranker").read_bytes()
    assert "Without --evaluate" in other.err and "held-out questions" in other.out


def test_transfer_to_a_graph_that_is_not_trained_on(kgqa, files):
    people = [f'<{NS}m.{n}> <{NS}type.object.name> "Pub {n}"@en .' for n in range(20)]
    for number in range(20):
        people += [
            f"<{NS}m.{number}> <{NS}{relation}> <{NS}m.{(number * 7 + step) % 20}> ."
            for step, relation in enumerate(
                ["pub.pub.landlord", "pub.pub.brewery", "pub.brewery.town", "pub.town.mayor"]
            )
        ]
    (files / "pubs.nt").write_text("\n".join(people) + "\n")
    assert kgqa("graph", "load", "pubs.nt", "--into", "pubs", "--schema", "freebase").returncode == 0
    options = ("--ontology", "roles", "--out", "my.ranker", "--epochs", "1")
    done = kgqa("rank", "train", "train.jsonl", "--transfer", "pubs", "--templates", "pubs", *options, "--json")
    assert done.returncode == 0, done.err
    found = json.loads(done.out)
    assert found["held_out"] == "1 other graph" and found["transfer"]["examples"] == 200
    shares = [found["transfer"][name] for name in ("cosine", "head", "mixed")]
    assert all(0 < share <= 1 for share in shares)


def test_asking_with_a_ranker(trained):
    folder, _ = trained
    questions = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    asked = "".join(
        json.dumps({"question": row["question"], "topics": [row["sparql"].split("<")[1].split(">")[0]]}) + "\n"
        for row in questions
    )
    options = ("--depth", "1", "--chooser", "trained", "--prefilter", "trained", "--ranker", "my.ranker")
    done = run_cli("ask", "--graph", "graph", "--json", *options, input=asked, cwd=folder)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert len(answers) == len(questions), done.err
    relations = [row["sparql"].split("<")[2].split(">")[0] for row in questions]
    right = sum(relation in answer["sparql"].replace("ns:", NS) for relation, answer in zip(relations, answers))
    assert right >= 0.8 * len(questions)


def test_train_on_an_ontology(kgqa, files):
    done = kgqa("rank", "train", "train.jsonl", "--ontology", "roles", "--out", "my.ranker", "--json", "--epochs", "2")
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["unused"] == 0
    assert TrainedRanker.load(files / "my.ranker").size == 384


def test_evaluated_questions_are_not_trained_on(kgqa, files):
    lines = (files / "train.jsonl").read_text().splitlines()
    (files / "test.jsonl").write_text("\n".join(lines[:30]) + "\n")
    done = kgqa("rank", "train", "train.jsonl", "--ontology", "roles", "--evaluate", "test.jsonl", "--out", "my.ranker",
                "--epochs", "1")  # fmt: skip
    assert done.returncode == 0, done.err
    assert f"{COUNT} questions; 30 excluded by --evaluate" in done.out
    done = kgqa(
        "rank", "train", "train.jsonl", "--ontology", "roles", "--evaluate", "train.jsonl", "--out", "none.ranker"
    )
    assert done.returncode == 2 and f"nothing to train on. Of {COUNT} questions, {COUNT} are excluded" in done.err
    assert not (files / "none.ranker").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.jsonl", "--out", "my.ranker"], "Give --graph or --ontology"),
        (["missing.jsonl", "--ontology", "roles", "--out", "my.ranker"], "missing.jsonl cannot be read"),
        (["roles", "--ontology", "roles", "--out", "my.ranker"], "roles, line 1 is not JSON"),
        (["train.jsonl", "--ontology", "missing", "--out", "my.ranker"], "Cannot read the ontology file missing"),
        (["train.jsonl", "--ontology", "train.jsonl", "--out", "my.ranker"], "is not an ontology"),
        (["train.jsonl", "--ontology", "roles", "--out", "nowhere/my.ranker"], "Cannot write --out nowhere/my.ranker"),
        (["train.jsonl", "--ontology", "roles", "--out", "."], "Cannot write --out"),
        (["train.jsonl", "--ontology", "roles", "--out", "my.ranker", "--epochs", "0"], "--epochs"),
        (["train.jsonl", "--graph", "missing", "--out", "my.ranker"], "missing"),
        (["train.jsonl", "--ontology", "roles", "--schema", "unheard", "--out", "my.ranker"], "unheard"),
        (["--ontology", "roles", "--out", "my.ranker"], "QUESTIONS"),
    ],
)
def test_bad_arguments(kgqa, files, arguments, message):
    done = kgqa("rank", "train", *arguments)
    assert done.returncode in (1, 2) and message in done.err
    assert not (files / "my.ranker").exists()


@pytest.mark.parametrize("content", [b"", b"no ranker"])
def test_asking_with_a_damaged_ranker(kgqa, tmp_path, content):
    (tmp_path / "my.ranker").write_bytes(content)
    done = kgqa("ask", "Who directed the film Parasite?", "--chooser", "trained", "--ranker", "my.ranker")
    assert done.returncode == 2 and "my.ranker is damaged or not a ranker" in done.err


@pytest.mark.slow
def test_ctrl_c_leaves_no_file(started, files):
    (files / "many.jsonl").write_text((files / "train.jsonl").read_text() * 30)  # trains far longer than the test
    process = started("rank", "train", "many.jsonl", "--ontology", "roles", "--out", "my.ranker", "--epochs", "100")
    time.sleep(4)
    assert process.poll() is None, "it ended before it was stopped"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and b"Traceback" not in errors and b"Stopped" in errors
    assert not [file.name for file in files.iterdir() if "ranker" in file.name]
