"""A run of questions that is stopped by a signal and resumed."""

from __future__ import annotations

import signal
import time

from tests.end_to_end.test_eval import predictions, reproducible


def check_stopped_run_resumes(kgqa, started, folder, server, command, *, questions, latency, signal_number):
    """What was done is kept; the resumed run equals an undisturbed one.

    Args:
        folder: the working folder of the commands.
        server: the scripted server of the model, which replies after `latency` seconds while the run is stopped.
        command: `eval run` with its options, without `--out`.
        questions: number of questions.
    """
    assert kgqa(*command, "--out", "quiet").returncode == 0
    server.latency = latency
    process = started(*command, "--out", "stopped")
    file = folder / "stopped" / "predictions.jsonl"
    while not (file.exists() and file.read_bytes().count(b"\n") >= 3):
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.005)
    process.send_signal(signal_number)
    assert process.wait(60) == (130 if signal_number == signal.SIGINT else -signal.SIGKILL)
    kept = {line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")}
    assert 3 <= len(kept) < questions
    server.latency = 0
    assert kgqa("eval", "resume", "stopped", "-q").returncode == 0
    assert kept <= set(file.read_text().splitlines(keepends=True))
    quiet, stopped = ({r["id"]: reproducible(r) for r in predictions(folder / run)} for run in ("quiet", "stopped"))
    assert quiet == stopped
