"""Runs on a Ray cluster: the predictions of a run without one, killed nodes, keys, limits, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kgqa.errors import ClusterError, SettingsError
from kgqa.evaluation import Changes, RunPlan, open_run, resume, run
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.runs.workers import Division, ask_on, divided, opened_cluster
from kgqa.graph.opening import load_into_folder
from kgqa.methods.ask import open_resources
from kgqa.settings.values import resolve
from kgqa.testing.server import ScriptedServer
from kgqa.text.hints import command_line_wording, repeat_options
from tests.cli_runner import KGQA
from tests.cluster_nodes import kill_node, nodes, processes_of
from tests.conftest import SOAK
from tests.end_to_end.test_outages import reproducible_records
from tests.evaluation.runs.test_start import Recorder

KEY = "sk-0123456789"
OFFLINE = {"rank.embeddings": "off"}


@pytest.fixture(scope="module", autouse=True)
def hints():
    """Answers contain hints, which workers give in the words of the place where the run was started."""
    with command_line_wording():
        yield


@pytest.fixture(scope="module")
def model():
    """A language model that needs a key and takes its time, so that questions are in flight when a node is killed."""
    with ScriptedServer(lambda messages: "1", constrains="structured_outputs", latency=0.05, key=KEY) as server:
        yield server


@pytest.fixture(scope="module")
def settings(model):
    return {**OFFLINE, "llm.model": f"{model.url}#scripted", "ask.method": "top-1"}


@pytest.fixture(scope="module")
def alone(settings, tmp_path_factory):
    """The records of a run without a cluster."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGQA_LLM_KEY", KEY)
        assert run(RunPlan("demo", sample=40), folder / "x", settings).complete
    return reproducible_records(folder / "x")


@pytest.fixture(scope="module")
def two_nodes():
    """Address and second node of a cluster whose nodes have the key in their environment."""
    with pytest.MonkeyPatch.context() as patch, nodes(patch, KGQA_LLM_KEY=KEY) as found:
        patch.setenv("KGQA_LLM_KEY", KEY)
        yield found


class Killer(Recorder):
    """Kills a node when some questions are done."""

    def __init__(self, node: Path, after: int) -> None:
        super().__init__()
        self.node, self.after, self.killed = node, after, False

    def progressed(self, progress):
        super().progressed(progress)
        if progress.done >= self.after and not self.killed:
            self.killed = True
            kill_node(self.node)


@pytest.mark.slow
class TestTwoNodes:
    """The tests run in this order: the last one kills a node."""

    def test_graph_is_missing_on_a_node(self, two_nodes, tmp_path, monkeypatch):
        (tmp_path / "g.nt").write_text("<http://x/a> <http://x/p> <http://x/b> .\n")
        load_into_folder([tmp_path / "g.nt"], tmp_path / "graph")
        monkeypatch.chdir(tmp_path)
        only_here = {**OFFLINE, "graph.path": "/proc/self/cwd/graph"}  # the workers have another working folder
        with pytest.raises(ClusterError, match=r"The node .*127\.0\.0\.[23]\) cannot ask questions: .*cwd/graph"):
            run(RunPlan("demo", sample=3, ray=two_nodes[0]), tmp_path / "x", only_here)
        assert not (tmp_path / "x" / "run.json").exists()  # the same command works when the graph is there

    def test_node_with_other_settings(self, two_nodes, settings, tmp_path):
        """Settings that may hold keys are not sent, so they have to be the same on each node."""
        given = {**settings, "llm.extra_body": {"min_p": 0.1}}
        with pytest.raises(ClusterError, match=r"has another language model \(llm.model, .*llm.extra_body\)"):
            run(RunPlan("demo", sample=3, ray=two_nodes[0]), tmp_path / "x", given)

    def test_killed_node_loses_nothing(self, two_nodes, model, settings, alone, tmp_path, monkeypatch, capfd):
        address, second = two_nodes
        observer = Killer(second, after=10)
        before = model.calls
        result = run(RunPlan("demo", sample=40, ray=address), tmp_path / "x", settings, observer=observer)
        assert result.complete and result.done == 40, (result.reason, result.failure)
        assert reproducible_records(tmp_path / "x") == alone
        assert not processes_of(second), "the node was not killed"
        assert observer.notes[0].startswith("Asking on 2 workers of the Ray cluster, 4 questions each at a time.")
        assert "llm.concurrency 8" in observer.notes[0]
        assert observer.notes[1:] == ["A worker of the Ray cluster was lost; its work is given to another one."]
        assert model.calls > before and capfd.readouterr().out == ""
        # the node that is left goes on with a run that was started without a cluster
        monkeypatch.setenv("KGQA_LLM_KEY", KEY)
        stopped = run(RunPlan("demo", sample=40), tmp_path / "y", settings, observer=Recorder(stop_after=5))
        assert stopped.interrupted and 5 <= stopped.done < 40
        (resumed,) = resume(tmp_path / "y", Changes(ray=address))
        assert resumed.complete and reproducible_records(tmp_path / "y") == alone


def started(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start `kgqa eval ARGUMENTS` with its own folder for temporary files, to find what it leaves behind."""
    return subprocess.Popen(
        [KGQA, "eval", *arguments, "--ray", "local"],
        env={**os.environ, "TMPDIR": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2] if SOAK else [1])
def test_ctrl_c_on_this_machine(signals, model, settings, alone, tmp_path, monkeypatch):
    """What is answered is kept, no process is left, and the run goes on without a cluster. Workers have the key."""
    with tempfile.TemporaryDirectory(prefix="kt-", dir="/tmp") as folder:  # paths of sockets have to be short
        options = [f"--llm={settings['llm.model']}", "--method=top-1", "--embeddings=off", "--concurrency=2"]
        arguments = ("run", "--dataset=demo", "--sample=40", f"--out={tmp_path / 'x'}", *options)
        process = started(Path(folder), *arguments, KGQA_LLM_KEY=KEY)
        predictions = tmp_path / "x" / "predictions.jsonl"
        until = time.monotonic() + 120
        while not (predictions.is_file() and predictions.read_text().count("\n") >= 4) and time.monotonic() < until:
            time.sleep(0.02)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130 and "Resume: kgqa eval resume" in errors, errors
        while processes_of(Path(folder)) and time.monotonic() < until:
            time.sleep(0.1)
        assert not processes_of(Path(folder))
    assert 4 <= len(list(open_run(tmp_path / "x").records())) < 40
    monkeypatch.setenv("KGQA_LLM_KEY", KEY)
    (resumed,) = resume(tmp_path / "x")
    assert resumed.complete and reproducible_records(tmp_path / "x") == alone


def test_what_a_cluster_cannot_do_is_refused_before_it_is_opened(model, settings, tmp_path):
    recording = resolve({**settings, "llm.replay": str(tmp_path / "kept.sqlite")})
    in_order = resolve({**settings, "ask.method": "evograph", "ask.preset": "one-graph"})
    plan = RunPlan("demo", ray="127.0.0.1:1")
    for refused, message in (
        (recording, "cannot be recorded .* several machines"),
        (in_order, "depends on those before"),
    ):
        resources = SimpleNamespace(settings=refused)
        with pytest.raises(SettingsError, match=message), opened_cluster(plan, resources):
            pass


def test_limits_of_servers_hold_for_all_workers_together(settings):
    plan, server = RunPlan("demo", ray="here"), SimpleNamespace(remote=True, rate=2.0, concurrency=6)

    def division(cluster, questions=100, plan=plan, **given):
        resources = SimpleNamespace(
            settings=resolve({**settings, **given}),
            models=object(),
            graph=SimpleNamespace(store=SimpleNamespace(capabilities=server)),
        )
        return divided(cluster, plan, questions, resources)

    found = division(SimpleNamespace(workers=4, gpus=0))
    keys = ("llm.concurrency", "endpoint.concurrency", "endpoint.rate")
    assert (found.workers, found.threads) == (4, 2) and [found.settings.values[key] for key in keys] == [4, 1, 0.5]
    assert "endpoint.rate 0.5" in found.note
    found = division(SimpleNamespace(workers=64, gpus=0))
    assert (found.workers, found.threads) == (
        6,
        10,
    ) and "64 processors could be used: raise endpoint.conc" in found.note
    found = division(SimpleNamespace(workers=64, gpus=0), **{"llm.concurrency": 3})
    assert found.workers == 3 and found.settings.llm.concurrency == 1
    found = division(SimpleNamespace(workers=64, gpus=0), plan=RunPlan("demo", concurrency=2, ray="here"))
    assert found.in_flight == 2 and "raise --concurrency" in found.note
    assert division(SimpleNamespace(workers=64, gpus=0), questions=1).workers == 1
    vllm = {"llm.model": "vllm:some/model"}
    assert division(SimpleNamespace(workers=64, gpus=2), **vllm).workers == 2
    with pytest.raises(ClusterError, match="needs a GPU"):
        division(SimpleNamespace(workers=64, gpus=0), **vllm)


def test_a_worker_repeats_the_options_of_the_command(session_cache):
    with open_resources(cache_folder=str(session_cache), embeddings="off") as resources:
        repeat_options([("--graph", "mine/")], {})
        cluster, division = SimpleNamespace(stream=print), Division(1, 1, resources.settings, 0.0, "")
        (task,) = ask_on(cluster, division, resources, topics="linked", losses=False, say=print).args
        repeat_options([], {})  # as in the process of a worker
        record = task(GoldQuestion("Who is Zzyzx?", "1", "demo", 0))
        task.opened.close()
    assert "kgqa graph search --graph mine/" in record.answer["reason"]
