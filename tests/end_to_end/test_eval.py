"""`kgqa eval`: runs, resuming, merging, budgets and failures."""

from __future__ import annotations

import json
import random
import re
import shlex
import signal
import time
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from kgqa import open_resources
from kgqa.evaluation.datasets.questions import read_questions
from kgqa.evaluation.published.printed_tables import tables
from kgqa.graph.opening import open_graph
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.faults import half_json, hangs, rate_limited, server_error
from kgqa.testing.gold_table import gold_for
from kgqa.testing.model_oracle import Gold, ModelOracle
from kgqa.testing.server import ScriptedServer
from tests.conftest import SOAK

WORDS = ("--embeddings", "off")
KILLS = 20 if SOAK else 2
QUESTIONS = 200 if SOAK else 24
IN_FLIGHT = 4
DEMO = Path(str(files("kgqa.demo"))) / "questions.jsonl"
NUMBER = re.compile(r"\(number (\d+)\)")


@pytest.fixture(autouse=True)
def _no_embeddings(monkeypatch):
    """Switch off embeddings, which these tests do not need."""
    monkeypatch.setenv("KGQA_RANK_EMBEDDINGS", "off")


@pytest.fixture
def questions(tmp_path):
    """Write demo questions, each with a number in its text that identifies it in prompts."""

    def write(count: int, name: str = "q.jsonl") -> str:
        demo = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
        with open(tmp_path / name, "w", encoding="utf-8") as file:
            for number in range(count):
                row = {**demo[number % len(demo)], "id": f"q{number}"}
                row["question"] = f"{row['question'].rstrip('?')} (number {number})?"
                file.write(json.dumps(row) + "\n")
        return name

    return write


@pytest.fixture
def model():
    """A server with a deterministic model that knows no gold path."""
    with ScriptedServer(ModelOracle({"": Gold()}), constrains="structured_outputs") as server:
        yield server


@pytest.fixture(scope="module")
def oracle(session_cache):
    """A deterministic model that knows the gold paths of the demo questions."""
    with open_graph(cache=Cache(session_cache)) as demo:
        resources = open_resources(demo, settings=resolve({"rank.embeddings": "off", "ask.method": "top-2"}))
        found = [gold_for(question, resources) for question in read_questions(DEMO)]
    solutions = tuple(solution for each in found for solution in each.solutions)
    return ModelOracle({"": Gold(solutions, frozenset(node for each in found for node in each.nodes))})


@pytest.fixture
def oracle_server(oracle):
    with ScriptedServer(oracle, constrains="structured_outputs") as server:
        yield server


def predictions(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]


def reproducible(record: dict) -> dict:
    """Return what is equal in every run: no times, and no query counts, because names are cached between questions."""
    answer = {key: value for key, value in record["answer"].items() if key not in ("usage", "trace")}
    usage = {key: value for key, value in record["answer"]["usage"].items() if key not in ("seconds", "queries")}
    trace = [{k: v for k, v in event.items() if k not in ("at", "seconds")} for event in record["answer"]["trace"]]
    rest = {key: value for key, value in record.items() if key not in ("answer", "seconds", "at")}
    return {**rest, "answer": answer, "usage": usage, "trace": trace}


def test_complete_run(kgqa, questions, tmp_path):
    done = kgqa("eval", "run", "--dataset", questions(12), "--out", "runs/a", *WORDS)
    assert done.returncode == 0, done.err
    assert "Hit@1" in done.out and "EM" in done.out
    records = predictions(tmp_path / "runs/a")
    assert sorted(record["id"] for record in records) == sorted(f"q{n}" for n in range(12))
    manifest = json.loads((tmp_path / "runs/a/run.json").read_text())
    assert manifest["method"] == "top" and manifest["graph"]["fingerprint"] and manifest["prompts"]
    digest = manifest["dataset"]["digest"]
    assert manifest["dataset"] == {"source": "q.jsonl", "questions": 12, "digest": digest, "whole": digest}
    metrics = json.loads((tmp_path / "runs/a/metrics.json").read_text())
    right = sum(record["scores"]["em"] for record in records)
    assert metrics["n"] == 12 and metrics["scores"]["em"]["value"] == pytest.approx(right / 12)
    assert right >= 4, "the offline chooser answers most of the first questions of the demo"
    status = json.loads(kgqa("eval", "status", "runs/a", "--json").out)
    assert [(line["done"], line["questions"], line["running"]) for line in status] == [(12, 12, False)]
    asked_again = kgqa("eval", "run", "--dataset", "q.jsonl", "--out", "runs/a", *WORDS)
    assert (
        asked_again.returncode == 1
        and "already contains a run. Choose another folder with --out, or resume the run: kgqa eval resume runs/a"
        in asked_again.err
    )
    assert kgqa("eval", "resume", "runs/a").returncode == 0 and predictions(tmp_path / "runs/a") == records


@pytest.mark.slow
def test_commands_that_come_next(kgqa, questions, tmp_path):
    """Each command that a run prints can be pasted as it is, also if the folder's name has spaces and quotes."""
    done = kgqa("eval", "run", "--dataset", questions(7), "--out", "runs/what's new", "--estimate", *WORDS)
    assert done.returncode == 3
    commands = [shlex.split(line.partition(": kgqa ")[2]) for line in done.err.splitlines() if ": kgqa " in line]
    assert [command[:2] for command in commands] == [
        ["eval", "resume"],
        ["report", "runs/what's new"],
        ["report", "runs/what's new"],
        ["eval", "status"],
    ]
    for command in commands:
        assert kgqa(*command).returncode == 0
    assert (tmp_path / "runs" / "what's new-report" / "index.html").is_file()


def test_several_methods(kgqa, questions, tmp_path, model):
    done = kgqa(
        "eval", "run", "--dataset", questions(4), "--out", "x", "--method", "top-2,io", *WORDS, "--llm", f"{model.url}#m"
    )  # fmt: skip
    assert done.returncode == 0, done.err
    assert len(predictions(tmp_path / "x/top-2")) == len(predictions(tmp_path / "x/io")) == 4
    assert {each["answer"]["method"] for each in predictions(tmp_path / "x/io")} == {"io"}
    found = json.loads(kgqa("eval", "status", "x", "--json").out)
    assert [line["method"] for line in found] == ["io", "top-2"]
    command = ("--dataset", questions(12), "--method", "io,cot", "--llm", f"{model.url}#m")
    stopped = kgqa("eval", "run", *command, "--out", "y", "--estimate")
    assert stopped.returncode == 3 and stopped.err.count("only an estimate was requested") == 2
    assert [len(predictions(tmp_path / "y" / name)) for name in ("io", "cot")] == [5, 5]
    assert kgqa("eval", "resume", "y").returncode == 0
    assert [len(predictions(tmp_path / "y" / name)) for name in ("io", "cot")] == [12, 12]


def test_sample_and_shards(kgqa, questions, tmp_path):
    name = questions(40)
    command = ("eval", "run", "--dataset", name, "--sample", "9", "--seed", "3", *WORDS)
    assert kgqa(*command, "--out", "whole").returncode == 0
    for part in ("1/2", "2/2"):
        assert kgqa(*command, "--out", f"part{part[0]}", "--shard", part).returncode == 0
    merged = kgqa("eval", "merge", "part1", "part2", "--out", "both")
    assert merged.returncode == 0, merged.err
    whole, both = predictions(tmp_path / "whole"), predictions(tmp_path / "both")
    assert {r["id"]: reproducible(r) for r in whole} == {r["id"]: reproducible(r) for r in both} and len(both) == 9
    scores = [json.loads((tmp_path / run / "metrics.json").read_text())["scores"] for run in ("whole", "both")]
    assert scores[0] == scores[1]
    twice = kgqa("eval", "merge", "part1", "part1", "--out", "again")
    assert twice.returncode == 1 and "Shards are missing: 2/2" in twice.err
    assert not (tmp_path / "again").exists()
    other = kgqa("eval", "run", "--dataset", name, "--sample", "9", "--seed", "4", *WORDS, "--out", "other")
    assert other.returncode == 0 and {r["id"] for r in predictions(tmp_path / "other")} != {r["id"] for r in whole}
    assert "dataset, seed differ" in kgqa("eval", "merge", "part1", "other", "--out", "no").err
    assert "is not a shard" in kgqa("eval", "merge", "whole", "part1", "--out", "no").err
    assert kgqa("eval", "resume", "both").returncode == 0 and predictions(tmp_path / "both") == both
    lines = (tmp_path / "part2/predictions.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "part2/predictions.jsonl").write_bytes(b"".join(lines[1:]))
    short = kgqa("eval", "merge", "part1", "part2", "--out", "no")
    assert short.returncode == 1 and "3 of 4 questions are done. Ask the others: kgqa eval resume part2" in short.err


def test_merge_parts_of_different_machines(kgqa, questions, tmp_path, model):
    """Parts may differ in the URL of the model, the path of the graph and the concurrency."""
    name = questions(8)
    for part in ("1", "2"):
        assert kgqa("graph", "load", str(DEMO.with_name("graph.nt")), "--into", f"g{part}").returncode == 0
    with ScriptedServer(lambda messages: "x") as elsewhere:
        for part, server, threads in (("1", model, "32"), ("2", elsewhere, "2")):
            done = kgqa(
                "eval", "run", "--dataset", name, "--method", "io", "--llm", f"{server.url}#m", "--out", f"part{part}",
                "--concurrency", threads, "--shard", f"{part}/2", "--graph", f"g{part}",
            )  # fmt: skip
            assert done.returncode == 0, done.err
    merged = kgqa("eval", "merge", "part1", "part2", "--out", "both")
    assert merged.returncode == 0 and len(predictions(tmp_path / "both")) == 8, merged.err


@pytest.mark.soak
@pytest.mark.slow
def test_run_killed_at_random_equals_an_undisturbed_run(kgqa, started, questions, tmp_path, oracle_server):
    """Kill -9 loses only questions in flight or not yet written, and no question is answered twice."""
    model, name = oracle_server, questions(QUESTIONS)
    model.latency = 0.002
    command = (
        "eval",
        "run",
        "--dataset",
        name,
        "--method",
        "top-2",
        "--tournament",
        "chunked",
        "--concurrency",
        str(IN_FLIGHT),
        *WORDS,
    )
    assert kgqa(*command, "--out", "quiet", "--llm", f"{model.url}#m", timeout=1200).returncode == 0
    chance = random.Random(1)
    folder = tmp_path / "killed"
    done: set[str] = set()
    kills = asked_again = 0
    while True:
        before = len(model.requests)
        if folder.exists() and (folder / "run.json").exists():
            process = started("eval", "resume", "killed", "-q")
        else:
            process = started(*command, "--out", "killed", "--llm", f"{model.url}#m", "-q")
        target_count = len(done) + chance.randint(1, max(2, 2 * QUESTIONS // KILLS))
        while kills < KILLS and process.poll() is None:
            if folder.exists() and _lines(folder) >= min(target_count, QUESTIONS - 1):
                time.sleep(chance.random() / 20)
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.005)
        code = process.wait(600)
        sent = {
            f"q{match[1]}" for each in model.requests[before:] for match in [NUMBER.search(str(each.messages))] if match
        }
        assert not sent & done, "a question whose answer was kept was asked again"
        now = _ids(folder)
        assert done <= now, "an answer was lost"
        asked_again += len(sent - now)
        # in flight, waiting to be written, and being written
        assert len(sent - now) <= 3 * IN_FLIGHT
        done = now
        if code == 0:
            break
        assert code == -signal.SIGKILL, process.stderr.read().decode()
    assert kills >= min(KILLS, 3)
    quiet, killed = predictions(tmp_path / "quiet"), predictions(folder)
    assert len(killed) == len({record["id"] for record in killed}) == QUESTIONS
    quiet, killed = ({r["id"]: reproducible(r) for r in each} for each in (quiet, killed))
    for ident, record in quiet.items():
        assert killed[ident] == record, ident
    assert sum(record["scores"]["em"] for record in quiet.values()) > QUESTIONS / 6


def _lines(folder: Path) -> int:
    try:
        return (folder / "predictions.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _wait_for_lines(process, folder: Path, count: int) -> None:
    while _lines(folder) < count:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)


def _ids(folder: Path) -> set[str]:
    """Return the ids in complete lines."""
    try:
        data = (folder / "predictions.jsonl").read_bytes()
    except FileNotFoundError:
        return set()
    return {json.loads(line)["id"] for line in data[: data.rfind(b"\n") + 1].splitlines()}


def test_ctrl_c_finishes_questions_in_flight(started, questions, tmp_path, model, kgqa):
    model.latency = 0.05
    name = questions(16)
    process = started(
        "eval", "run", "--dataset", name, "--out", "x", "--method", "top-2", "--concurrency", "2", *WORDS,
        "--llm", f"{model.url}#m",
    )  # fmt: skip
    _wait_for_lines(process, tmp_path / "x", 2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Finishing the questions in flight" in err.decode()
    assert "of 16 questions are done. Resume: kgqa eval resume x" in err.decode()
    done = _ids(tmp_path / "x")
    requested = {f"q{match[1]}" for each in model.requests for match in [NUMBER.search(str(each.messages))] if match}
    assert requested == done, "what was in flight was finished"
    model.latency = 0.0
    assert kgqa("eval", "resume", "x").returncode == 0 and len(_ids(tmp_path / "x")) == 16


def test_ctrl_c_twice_stops_at_once(started, questions, tmp_path, model):
    name = questions(30)
    process = started("eval", "run", "--dataset", name, "--out", "x", "--method", "io", "--llm", f"{model.url}#m")
    while _lines(tmp_path / "x") < 2:
        assert process.poll() is None, process.stderr.read().decode()
        model.latency = 0.0
        time.sleep(0.005)
        if _lines(tmp_path / "x") >= 1:
            model.latency = 60.0
            break
    time.sleep(0.5)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() - start < 60
    assert "Stopped at once" in err.decode() or "questions are done" in err.decode()
    assert _ids(tmp_path / "x")


def test_second_process_in_one_folder_is_refused(kgqa, started, questions, tmp_path, model):
    model.latency = 0.2
    process = started(
        "eval", "run", "--dataset", questions(40), "--out", "x", "--method", "io", "--concurrency", "1",
        "--llm", f"{model.url}#m",
    )  # fmt: skip
    _wait_for_lines(process, tmp_path / "x", 1)
    second = kgqa("eval", "resume", "x")
    assert second.returncode == 1 and "Another kgqa is running in x" in second.err
    assert json.loads(kgqa("eval", "status", "x", "--json").out)[0]["running"] is True


@pytest.mark.soak
@pytest.mark.slow
def test_model_faults_in_five_percent_of_calls(kgqa, questions, tmp_path, oracle):
    """The run completes, failed questions count in the scores, and other scores do not change."""
    count = 100 if SOAK else 20
    name = questions(count)
    command = ("eval", "run", "--dataset", name, "--method", "top-2", *WORDS)
    sent: Counter[int] = Counter()
    with ScriptedServer(oracle, constrains="structured_outputs") as server:
        assert kgqa(*command, "--out", "quiet", "--llm", f"{server.url}#m").returncode == 0
    chance = random.Random(2)
    faults = [rate_limited(0.01), server_error(500), hangs(2.0), half_json()]

    def reply(messages):
        if chance.random() >= 0.05:
            return oracle(messages)
        sent[kind := chance.randrange(len(faults))] += 1
        return faults[kind]

    with ScriptedServer(reply, constrains="structured_outputs") as server:
        done = kgqa(*command, "--out", "faulty", "--llm", f"{server.url}#m", timeout=600, KGQA_LLM_TIMEOUT="1.5")
    assert done.returncode == 0, done.err
    quiet = {r["id"]: r for r in predictions(tmp_path / "quiet")}
    faulty = {r["id"]: r for r in predictions(tmp_path / "faulty")}
    assert set(sent) == {0, 1, 2, 3}, "every kind of fault was met"
    scores = json.loads((tmp_path / "quiet/metrics.json").read_text())["scores"]
    assert scores["em"]["value"] > 1 / 6
    metrics = json.loads((tmp_path / "faulty/metrics.json").read_text())
    assert metrics["n"] == count and set(metrics["lost_to_failures"]) >= {"em"}
    assert quiet.keys() == faulty.keys() and all(record["answer"]["status"] for record in faulty.values())
    for ident, record in faulty.items():
        if record["scores"] != quiet[ident]["scores"]:
            stages = record["answer"]["usage"]["stages"]
            assert record["failure"] or any(s["failed"] or s["unparsed"] for s in stages), ident


def test_questions_lost_to_an_outage_are_asked_again(kgqa, questions, tmp_path, model):
    name = questions(30)
    arguments = ("eval", "run", "--dataset", name, "--method", "io", "--out", "x", "--keep-going")
    with ScriptedServer(lambda messages: server_error(500)) as broken:
        port = broken.url
        done = kgqa(*arguments, "--llm", f"{port}#m", KGQA_LLM_RETRIES="0")
    assert done.returncode == 3 and "30 questions were lost to servers (ModelUnavailable 30)" in done.err
    first = predictions(tmp_path / "x")
    assert {record["answer"]["status"] for record in first} == {"failed"}
    failure = first[0]["failure"]
    assert failure in done.out or failure in kgqa("eval", "status", "x").out
    wrong = kgqa("eval", "resume", "x", "--retry", "StoreTimeOut")
    assert wrong.returncode == 1 and f"choose from: {failure} 30, failed 30" in wrong.err
    assert "--retry failed" in kgqa("eval", "status", "x").out
    asked_again = kgqa("eval", "resume", "x", "--llm", f"{model.url}#m")
    assert asked_again.returncode == 0, asked_again.err
    manifest = json.loads((tmp_path / "x/run.json").read_text())
    assert manifest["settings"]["llm.model"] == f"{model.url}#m"
    assert manifest["changed"][0]["before"] == {"llm.model": f"{port}#m"}
    second = predictions(tmp_path / "x")
    assert len(second) == 30 and {record["answer"]["status"] for record in second} != {"failed"}


def test_estimate(kgqa, questions, tmp_path, model):
    (tmp_path / "prices.toml").write_text("m = { prompt = 100.0, completion = 100.0 }\n")
    arguments = ("--method", "io", "--llm", f"{model.url}#m")
    priced = {"KGQA_LLM_PRICES": "prices.toml"}
    command = ("eval", "run", "--dataset", questions(50), *arguments)
    done = kgqa(*command, "--out", "x", "--estimate", **priced)
    assert done.returncode == 3 and "the other" in done.err and "only an estimate was requested" in done.err
    assert re.search(r"and \d+\.\d\d USD", done.err), done.err
    first = predictions(tmp_path / "x")
    assert len(first) == 5
    assert kgqa("eval", "resume", "x").returncode == 0 and len(predictions(tmp_path / "x")) == 50


def test_budget_covers_all_methods(kgqa, questions, tmp_path, model):
    (tmp_path / "prices.toml").write_text("m = { prompt = 100.0, completion = 100.0 }\n")
    command = ("eval", "run", "--dataset", questions(20), "--llm", f"{model.url}#m", "--concurrency", "2")
    unknown = kgqa(*command, "--method", "io", "--out", "u", "--budget", "1")
    assert unknown.returncode == 2 and "--budget needs the price of m" in unknown.err and not model.requests
    priced = {"KGQA_LLM_PRICES": "prices.toml"}
    kgqa(*command, "--method", "io", "--out", "whole", **priced)
    costs = [record["answer"]["usage"]["cost"] for record in predictions(tmp_path / "whole")]
    budget = sum(costs) / 2
    done = kgqa(*command, "--method", "io,cot", "--out", "x", "--budget", f"{budget}", **priced)
    assert done.returncode == 3 and "USD is spent" in done.err
    count = len(predictions(tmp_path / "x/io"))
    assert 8 <= count < 20 and not (tmp_path / "x/cot/predictions.jsonl").exists()
    before = len(model.requests)
    assert kgqa("eval", "resume", "x", **priced).returncode == 3
    assert len(model.requests) == before, "what is spent is spent"


def test_resume_uses_the_original_settings(kgqa, questions, tmp_path):
    """Current settings do not change a resumed run."""
    done = kgqa("eval", "run", "--dataset", questions(12), "--out", "x", *WORDS, "--estimate")
    assert done.returncode == 3
    assert kgqa("eval", "resume", "x", KGQA_EXPLORE_DEPTH="1", KGQA_EXPLORE_BEAM="1").returncode == 0
    assert kgqa("eval", "run", "--dataset", "q.jsonl", "--out", "y", *WORDS).returncode == 0
    x, y = ({r["id"]: reproducible(r) for r in predictions(tmp_path / run)} for run in "xy")
    assert x == y


def test_resume_needs_the_same_plan(kgqa, questions, tmp_path, model):
    command = ("eval", "run", "--resume", "--dataset", questions(9), "--out", "x", *WORDS)
    assert kgqa(*command, "--sample", "4").returncode == 0
    before = predictions(tmp_path / "x")
    assert kgqa(*command, "--sample", "4").returncode == 0 and predictions(tmp_path / "x") == before
    for more, message in ((("--sample", "5"), "sample"), (("--sample", "4", "--seed", "7"), "seed")):
        done = kgqa(*command, *more)
        assert done.returncode == 1 and message in done.err and "Choose another folder" in done.err
    done = kgqa(*command, "--sample", "4", "--llm", f"{model.url}#m")
    assert done.returncode == 1 and "another llm.model" in done.err


def test_all_methods_are_created_or_none(kgqa, questions, tmp_path):
    for second in ("io", "nonsense"):
        done = kgqa("eval", "run", "--dataset", questions(3), "--out", "x", "--method", f"top,{second}", *WORDS)
        assert done.returncode in (1, 2) and not (tmp_path / "x/top/run.json").exists()
    assert kgqa("eval", "run", "--dataset", "q.jsonl", "--out", "x", "--method", "top,top-1", *WORDS).returncode == 0


def test_ctrl_c_ends_all_methods(started, questions, tmp_path, model):
    model.latency = 0.4
    process = started(
        "eval", "run", "--dataset", questions(2), "--out", "x", "--method", "io,cot", "--llm", f"{model.url}#m"
    )
    while not model.requests:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130 and "Resume all of them: kgqa eval resume x" in err
    assert len(predictions(tmp_path / "x/io")) == 2 and not (tmp_path / "x/cot/predictions.jsonl").exists()


def test_names_of_gold_ids_come_from_the_graph(kgqa, questions, tmp_path):
    """Answers of a model have no ids, so they are compared with the names in the graph."""
    rows = [json.loads(line) for line in (tmp_path / questions(1)).read_text().splitlines()]
    name = rows[0]["answers"][0].pop("name")
    (tmp_path / "q.jsonl").write_text(json.dumps(rows[0]) + "\n")
    with ScriptedServer(lambda messages: json.dumps({"answers": [name]})) as server:
        done = kgqa("eval", "run", "--dataset", "q.jsonl", "--out", "x", "--method", "io", "--llm", f"{server.url}#m")
    assert done.returncode == 0 and predictions(tmp_path / "x")[0]["scores"]["em"] == 1.0


def test_run_of_somebody_else_needs_trust(kgqa, questions, tmp_path, model):
    assert (
        kgqa(
            "eval", "run", "--dataset", questions(3), "--out", "x", "--method", "io", "--llm", f"{model.url}#m"
        ).returncode
        == 0
    )
    manifest = json.loads((tmp_path / "x/run.json").read_text())
    with ScriptedServer(lambda messages: "x") as elsewhere:
        manifest["settings"]["llm.model"] = f"{elsewhere.url}#m"
        (tmp_path / "x/run.json").write_text(json.dumps(manifest))
        (tmp_path / "x/predictions.jsonl").unlink()
        done = kgqa("eval", "resume", "x", OPENAI_API_KEY="secret")
        assert done.returncode == 1 and "kgqa eval resume --trust x" in done.err and not elsewhere.requests
        assert kgqa("eval", "resume", "--trust", "x").returncode == 0 and elsewhere.requests


def test_resume_from_another_folder(kgqa, questions, tmp_path):
    """Paths are relative to the folder in which the run was created."""
    assert kgqa("graph", "load", str(DEMO.with_name("graph.nt")), "--into", "g").returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "q.jsonl").write_text("{}\n")
    name = questions(6)
    done = kgqa("eval", "run", "--dataset", name, "--graph", "g", "--out", "runs/x", "--estimate", *WORDS)
    assert done.returncode == 3, done.err
    done = kgqa("eval", "resume", "../runs/x", cwd=elsewhere)
    assert done.returncode == 0 and len(predictions(tmp_path / "runs/x")) == 6, done.err


def test_resume_with_an_unwritable_cache(kgqa, questions, tmp_path):
    """With an unwritable cache the owner of a run cannot be recorded, and a message says so."""
    (tmp_path / "file").touch()
    nowhere = {"KGQA_CACHE_FOLDER": str(tmp_path / "file" / "cache")}
    assert kgqa("graph", "load", str(DEMO.with_name("graph.nt")), "--into", "g").returncode == 0
    command = ("eval", "run", "--dataset", questions(6), "--graph", "g", "--out", "x", "--estimate", *WORDS)
    done = kgqa(*command, **nowhere)
    assert done.returncode == 3 and "kgqa eval resume --trust x" in done.err and "KGQA_CACHE_FOLDER" in done.err
    done = kgqa("eval", "resume", "x", **nowhere)
    assert done.returncode == 1 and "There is no record that you created this run" in done.err
    assert kgqa("eval", "resume", "--trust", "x", **nowhere).returncode == 0
    assert len(predictions(tmp_path / "x")) == 6


def test_changed_graph_is_not_resumed(kgqa, questions, tmp_path):
    demo = DEMO.with_name("graph.nt")
    assert kgqa("graph", "load", str(demo), "--into", "g").returncode == 0
    done = kgqa("eval", "run", "--dataset", questions(6), "--graph", "g", "--out", "x", *WORDS)
    assert done.returncode == 0, done.err
    lines = (tmp_path / "x/predictions.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "x/predictions.jsonl").write_text("".join(lines[:3]))
    (tmp_path / "more.nt").write_text("<http://e/a> <http://e/b> <http://e/c> .\n")
    assert kgqa("graph", "load", "more.nt", "--into", "g").returncode == 0
    done = kgqa("eval", "resume", "x")
    assert done.returncode == 1 and "The graph has changed" in done.err
    assert len(predictions(tmp_path / "x")) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--dataset", "missing.jsonl", "--out", "x"), "missing.jsonl"),
        (("run", "--dataset", "demo", "--out", "x", "--shard", "3/2"), "--shard 1/4"),
        (("run", "--dataset", "demo", "--out", "x", "--method", "top,top"), "twice"),
        (("run", "--dataset", "demo", "--out", "x", "--method", "nonsense"), "nonsense"),
        (("resume", "nowhere"), "There is no run in nowhere"),
        (("status", "nowhere"), "There is no run in nowhere"),
        (("merge", "nowhere", "--out", "x"), "There is no run in nowhere"),
    ],
)
def test_invalid_arguments(kgqa, tmp_path, arguments, message):
    done = kgqa("eval", *arguments)
    assert done.returncode in (1, 2) and message in done.err and not (tmp_path / "x" / "predictions.jsonl").exists()


def test_thesis_table(kgqa, questions, tmp_path, model):
    (tmp_path / "models.toml").write_text(f'[gemma-4-e4b]\ntitle = "A model"\nllm = "{model.url}#m"\n')
    arguments = (
        "eval",
        "table",
        "5.5",
        "--models",
        "models.toml",
        "--dataset",
        f"cwq={questions(20)}",
        "--sample",
        "2",
    )
    few = {"KGQA_BUDGET_CALLS": "20"}  # the search of System 2 has no depth at which it ends
    done = kgqa(*arguments, *WORDS, "--json", **few)
    assert done.returncode == 0, done.err
    found = json.loads(done.out)
    assert "webquestions is not run" in done.err
    assert found["notes"] == ["Topics: cwq: gold", "Embedding model: none; published: Qwen/Qwen3-Embedding-4B"]
    # System 2 is run once for tables 5.4 and 5.5
    assert [each.name for each in (tmp_path / "runs/tables").iterdir()] == ["thesis"]
    for row in found["rows"]:
        assert row["cells"]["webquestions"] == {
            "printed": row["cells"]["webquestions"]["printed"],
            "measured": None,
            "n": 0,
        }
        assert row["cells"]["cwq"]["n"] == 2 and set(row["cells"]["cwq"]["measured"]) == {
            "tog_em", "hit@1", "em", "tog_em_sound",
        }  # fmt: skip
    call_count = len(model.requests)
    asked_again = kgqa(*arguments, *WORDS, **few)
    assert len(model.requests) == call_count and "(n=2)" in asked_again.out and "56.5 | not run" in asked_again.out
    assert "100.0 (0.0 sound) / 0.0 / 0.0 (n=2)" in asked_again.out, (
        "no answer at all passes ToG's EM, and that is said"
    )
    other = kgqa(*arguments[:-1], "3", *WORDS, **few)
    assert other.returncode == 1 and "another sample" in other.err and len(model.requests) == call_count


@pytest.mark.parametrize("number", ["5.2", "5.3", "5.4"])
@pytest.mark.slow
def test_all_rows_of_thesis_tables(kgqa, tmp_path, model, number):
    table = tables()[number]
    row = table.rows[0].model
    (tmp_path / "models.toml").write_text(f'[{row}]\nllm = "{model.url}#m"\n')
    columns = [part for name in table.columns for part in ("--dataset", f"{name}=demo-cwq")]
    arguments = ("eval", "table", number, "--models", "models.toml", "--sample", "1", *columns, *WORDS, "--json")
    done = kgqa(*arguments, timeout=300, KGQA_BUDGET_CALLS="20")
    assert done.returncode == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert len(rows) == len(table.rows)
    for known, found in zip(table.rows, rows, strict=True):
        assert {cell["n"] for cell in found["cells"].values()} == {1 if known.model == row else 0}, found


@pytest.mark.parametrize("dataset", ["demo-webqsp", "demo-cwq", "demo-grailqa"])
def test_published_formats(kgqa, tmp_path, model, dataset):
    """The same questions in three formats, with the offline chooser and with a wrong model."""
    offline = kgqa("eval", "run", "--dataset", dataset, "--sample", "12", "--out", "a", *WORDS)
    assert offline.returncode == 0, offline.err
    scores = json.loads((tmp_path / "a/metrics.json").read_text())["scores"]
    assert scores["em"]["n"] == 12 and scores["em"]["value"] > 0.2
    with_model = kgqa(
        "eval", "run", "--dataset", dataset, "--sample", "3", "--out", "b", *WORDS, "--llm", f"{model.url}#m"
    )
    assert with_model.returncode == 0, with_model.err
    assert len(predictions(tmp_path / "b")) == 3 and model.requests


def test_ask_a_question_of_a_dataset(kgqa):
    done = kgqa("ask", "--dataset", "demo-webqsp", "--id", "demo-001", *WORDS, "--topic", "m.demo_kimigayo")
    assert done.returncode == 0 and "gold   Tokyo (m.demo_tokyo)" in done.out
    assert "score  hit@1 " in done.out
    found = json.loads(kgqa("ask", "--dataset", "demo", "--id", "demo-001", "--json", *WORDS).out)
    assert found["id"] == "demo-001" and found["gold"] == [[{"id": "m.demo_tokyo", "name": "Tokyo"}]]
    assert found["scores"]["em"] in (0.0, 1.0)
    wrong = kgqa("ask", "--dataset", "demo", "--id", "nonsense")
    assert wrong.returncode == 2 and "no question with the id 'nonsense'. Similar ids in it: " in wrong.err
    for arguments in (("--dataset", "demo"), ("--id", "demo-001"), ("--dataset", "demo", "--id", "demo-001", "Who?")):
        assert kgqa("ask", *arguments).returncode == 2


@pytest.mark.slow
def test_unreachable_model_gives_no_predictions(kgqa, questions, tmp_path, model):
    """Questions lost to a model that does not answer are asked again, if need be at another URL."""
    dead = "http://127.0.0.1:9/v1#m"
    quick = {"KGQA_LLM_RETRIES": "0"}
    command = ("eval", "run", "--resume", "--dataset", questions(3), "--method", "io", "--out", "x", "--llm")
    done = kgqa(*command, dead, **quick)
    assert done.returncode == 3 and "0 of 3 questions are done because the language model m" in done.err, done.err
    assert "3 questions lost to servers (ModelUnavailable 3)" in done.err
    assert predictions(tmp_path / "x") == []
    assert kgqa(*command, f"{model.url}#m").returncode == 0 and len(predictions(tmp_path / "x")) == 3
    (tmp_path / "models.toml").write_text(f'[gemma-4-e4b]\nllm = "{dead}"\n')
    table = ("eval", "table", "5.5", "--models", "models.toml", "--dataset", "cwq=q.jsonl", "--sample", "2", *WORDS)
    done = kgqa(*table, **quick, KGQA_BUDGET_CALLS="20")
    assert done.returncode == 1 and "46.0 | not run" in done.out and "(n=" not in done.out
    (tmp_path / "models.toml").write_text(f'[gemma-4-e4b]\nllm = "{model.url}#m"\n')
    assert "(n=2)" in kgqa(*table, **quick, KGQA_BUDGET_CALLS="20").out


def test_second_process_in_a_folder_of_several_methods_is_refused(kgqa, started, questions, tmp_path, model):
    model.latency = 0.3
    process = started(
        "eval", "run", "--dataset", questions(12), "--out", "x", "--method", "io,cot", "--concurrency", "1",
        "--llm", f"{model.url}#m",
    )  # fmt: skip
    _wait_for_lines(process, tmp_path / "x/io", 1)
    for folder in ("x", "x/cot"):
        second = kgqa("eval", "resume", folder)
        assert second.returncode == 1 and "Another kgqa is running in x" in second.err
    status = kgqa("eval", "status", "x").out
    assert "cot: 0 of 12 questions, waiting" in status and "  resume  " not in status
    model.latency = 0.0
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and len(predictions(tmp_path / "x/cot")) == 12
    assert "cot: 12 of 12" in err.decode() and out.decode().count("Hit@1") >= 1


def test_message_to_resume_all_methods(kgqa, questions, tmp_path):
    done = kgqa(
        "eval", "run", "--dataset", questions(3), "--method", "io,cot", "--out", "x", "--llm", "http://127.0.0.1:9/v1#m",
        KGQA_LLM_RETRIES="0",
    )  # fmt: skip
    assert done.returncode == 3 and "1 more run has not started. Resume all of them: kgqa eval resume x\n" in done.err
    assert ".. Resume" not in done.err


def test_unwritable_output_folders(kgqa, tmp_path):
    (tmp_path / "file").touch()
    for arguments in (
        ("eval", "run", "--dataset", "demo", "--out", "file/x", *WORDS),
        ("eval", "run", "--dataset", "demo", "--out", "file/x", "--method", "top,top-1", *WORDS),
        ("graph", "fictionalise", "--out", "file/x"),
    ):
        done = kgqa(*arguments)
        assert done.returncode == 1 and "file" in done.err, done.err
