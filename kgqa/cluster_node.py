"""Runs a Ray cluster of one node on this machine, which ends with the process that started it.

The node listens on the loopback interface only and wants a random token. Its folder, with its logs of limited size, is
removed at the end, also if the process that started the node is killed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from kgqa.errors import ClusterError
from kgqa.text.hints import Option

PASSED_ON = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH"),
    *("VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM"),
    *("CUDA_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_OFFLINE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "KGQA_CACHE_FOLDER"),
)
"""The environment variables of this process that the workers of the node get."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # would upload the working folder
    "RAY_enable_metrics_collection": "0",
    "RAY_task_events_report_interval_ms": "0",  # tasks are not listed for the dashboard
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning about GPUs
}
"""Environment variables of the process that uses a cluster, and of nodes."""
LOCAL_SETTINGS = {
    # without it, Ray replaces 127.0.0.1 by the address of the machine and listens on all interfaces
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
"""Those for a node of this module."""
_NODE_SETTINGS = {
    "RAY_ROTATION_MAX_BYTES": str(4 << 20),
    "RAY_ROTATION_BACKUP_COUNT": "1",
    "RAY_BACKEND_LOG_LEVEL": "warning",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
}
_OBJECT_STORE = 200 << 20
START_SECONDS = 60.0


@contextmanager
def local_node(more: Mapping[str, str]) -> Iterator[str]:
    """Run a node with all processors of this machine until the context ends. Yield its address.

    Args:
        more: Environment variables for its workers, beside those in `PASSED_ON`.

    Raises:
        ClusterError: It cannot be started.
    """
    # short, because the paths of sockets may have 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="kgqa-"))
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    variables |= {**more, **SETTINGS, **_NODE_SETTINGS, **LOCAL_SETTINGS}
    arguments = ["--head", "--block", "--node-ip-address", "127.0.0.1", "--port", "0", "--include-dashboard", "false"]
    arguments += ["--disable-usage-stats", "--temp-dir", str(folder), "--object-store-memory", str(_OBJECT_STORE)]
    arguments += ["--num-cpus", str(_processors()), "--num-gpus", "0"]
    command = [sys.executable, "-m", "kgqa.cluster_node", *arguments]
    output = folder / "start.log"
    try:
        with open(output, "wb") as log:
            process = subprocess.Popen(
                command, env=variables, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        try:
            yield _address_in(folder, process, output)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(START_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _address_in(folder: Path, process: subprocess.Popen[bytes], output: Path) -> str:
    """Wait for a node to run; return its address, which is written into its folder."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if b"Ray runtime started" in output.read_bytes():
            return (folder / "ray_current_cluster").read_text().strip()
        time.sleep(0.05)
    lines = output.read_text(errors="replace").strip().splitlines() or ["no output"]
    raise ClusterError(f"Ray cannot be started on this machine: {lines[-1]}", "Leave out ", Option("ray"))


def _end_with_parent() -> None:
    while os.read(0, 1):  # ends with the process that holds the other end of the pipe
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _run_node() -> None:
    """Run `ray start` with the arguments of this process, until the process that started it ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv[:1] = ["ray", "start"]
    from ray.scripts.scripts import main

    try:
        main()
    finally:
        shutil.rmtree(sys.argv[sys.argv.index("--temp-dir") + 1], ignore_errors=True)


if __name__ == "__main__":
    _run_node()
