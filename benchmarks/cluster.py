"""Measures how a batch of questions is spread: threads of one process, two shards, workers of a Ray cluster.

Each way asks the same questions, alone on one processor or on two, without a language model and with a scripted one that
takes 200 ms for a reply. Measured are the processor time of all processes of kgqa and Ray, the time until the first
answer, questions per second after it, and the memory of the processes (PSS: shared memory is divided). On a busy machine
trust only the processor time, and the ratios of rows of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa.evaluation import dataset_questions
from kgqa.testing.server import ScriptedServer

KGQA = str(Path(sys.executable).with_name("kgqa"))
SAMPLE_SECONDS = 0.05
TICKS = os.sysconf("SC_CLK_TCK")
LATENCY = 0.2


@dataclass
class Usage:
    """What the processes of one way used. `cpu`: seconds of each process; `memory`: largest PSS in MB, by kind."""

    answers: list[float] = field(default_factory=list)
    cpu: dict[int, float] = field(default_factory=dict)
    cpu_first: float = 0.0
    memory: dict[str, dict[int, float]] = field(default_factory=dict)

    def sample(self, mark: str, predictions: Sequence[Path], started: float) -> None:
        """Look at all processes whose environment contains `mark`, and count the answers."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError, ValueError):
                if mark.encode() not in (process / "environ").read_bytes():
                    continue
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                number = int(process.name)
                self.cpu[number] = (int(fields[11]) + int(fields[12])) / TICKS
                pss = next(line for line in (process / "smaps_rollup").read_text().splitlines() if line[:4] == "Pss:")
                of_kind = self.memory.setdefault(_kind((process / "cmdline").read_bytes().decode()), {})
                of_kind[number] = max(of_kind.get(number, 0.0), int(pss.split()[1]) / 1024)
        count = sum(file.read_bytes().count(b"\n") for file in predictions if file.exists())
        if count and not self.answers:
            self.cpu_first = sum(self.cpu.values())
        self.answers += [time.monotonic() - started] * (count - len(self.answers))


def _kind(command: str) -> str:
    if command.startswith("ray::_Worker"):
        return "worker"
    if "kgqa.graph.embedded" in command:
        return "store"
    return "ray" if "ray" in command.replace(str(Path(sys.executable).parent), "") else "kgqa"


def measure(commands: Sequence[Sequence[str]], outs: Sequence[Path], processors: set[int]) -> tuple[Usage, float]:
    """Run commands at the same time; return what they used, and the wall time."""
    usage, folder = Usage(), tempfile.mkdtemp(prefix="kb-", dir="/tmp")
    environment = {**os.environ, "TMPDIR": folder, "TOKENIZERS_PARALLELISM": "false"}
    started = time.monotonic()
    with _only(processors):
        running = [subprocess.Popen(each, env=environment, stdout=subprocess.DEVNULL, stderr=-1) for each in commands]
    while any(process.poll() is None for process in running):
        usage.sample(f"TMPDIR={folder}", [out / "predictions.jsonl" for out in outs], started)
        time.sleep(SAMPLE_SECONDS)
    wall = time.monotonic() - started
    for process in running:
        if process.returncode:
            sys.exit(f"{' '.join(process.args)} failed: {process.communicate()[1].decode()}")  # type: ignore[arg-type]
    shutil.rmtree(folder, ignore_errors=True)
    return usage, wall


@contextmanager
def _only(processors: set[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def ways(arguments: Sequence[str], out: Path, in_flight: int) -> Iterator[tuple[str, list[list[str]], list[Path], int]]:
    """Yield each way: its name, its commands, their folders, and the number of processors."""

    def command(name: str, count: int, *more: str) -> list[str]:
        return [KGQA, "eval", "run", f"--out={out / name}", f"--concurrency={count}", "-q", *arguments, *more]

    for count in (1, 2):
        yield f"threads, {count} cpu", [command(f"t{count}", in_flight)], [out / f"t{count}"], count
    shards = [command(f"s{n}", in_flight // 2, f"--shard={n}/2") for n in (1, 2)]
    yield "2 shards, 2 cpu", shards, [out / "s1", out / "s2"], 2
    for count in (1, 2):
        yield f"Ray, {count} cpu", [command(f"r{count}", in_flight, "--ray=local")], [out / f"r{count}"], count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="demo")
    parser.add_argument("--graph", help="graph folder; by default the demo graph")
    parser.add_argument("--repeat", type=int, default=4, help="how often each question is asked")
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--embeddings", choices=["auto", "off"], default="auto")
    parser.add_argument("--model", action="store_true", help="only with the scripted model")
    parser.add_argument("--no-model", action="store_true", help="only without a model")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as name,
        ScriptedServer(lambda messages: "1", constrains="structured_outputs", latency=LATENCY) as server,
    ):
        folder = Path(name)
        questions = list(dataset_questions(options.dataset))
        with open(folder / "questions.jsonl", "w") as file:
            for number in range(options.repeat):
                for each in questions:
                    row = {"id": f"{each.id}-{number}", "question": each.text, "topics": list(each.topics)}
                    file.write(json.dumps(row) + "\n")
        base = [f"--dataset={folder / 'questions.jsonl'}", f"--embeddings={options.embeddings}"]
        base += [f"--graph={options.graph}"] if options.graph else []
        variants = {"no model": base, "model, 200 ms": [*base, "--method=top-1", f"--llm={server.url}#scripted"]}
        for variant, arguments in variants.items():
            if (options.model and variant == "no model") or (options.no_model and variant != "no model"):
                continue
            for way, commands, outs, count in ways(arguments, folder / variant.split(",")[0], options.in_flight):
                usage, wall = measure(commands, outs, set(processors[:count]))
                total = len(usage.answers)
                cpu = sum(usage.cpu.values())
                rows.append(
                    {
                        "model": variant,
                        "way": way,
                        "questions": total,
                        "wall_s": round(wall, 1),
                        "first_s": round(usage.answers[0], 1),
                        "per_second": round((total - 1) / (usage.answers[-1] - usage.answers[0]), 1),
                        "cpu_start_s": round(usage.cpu_first, 1),
                        "cpu_ms_per_question": round(1000 * (cpu - usage.cpu_first) / total, 1),
                        "memory_mb": {
                            kind: [len(each), round(sum(each.values()) / len(each))]
                            for kind, each in sorted(usage.memory.items())
                        },
                    }
                )
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(rows))
    else:
        for found in rows:
            memory = ", ".join(f"{kind} {count} x {mb}" for kind, (count, mb) in found["memory_mb"].items())
            print(
                f"{found['model']:14} {found['way']:16} {found['per_second']:7} q/s  {found['cpu_ms_per_question']:7} ms cpu/q  "
                f"start {found['first_s']} s, {found['cpu_start_s']} s cpu;  MB: {memory}"
            )


if __name__ == "__main__":
    main()
