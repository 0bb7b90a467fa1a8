import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from kgqa.storage.lock_files import held, only_one

HOLD = """
import subprocess, sys, time
from pathlib import Path
from kgqa.storage.lock_files import only_one
with only_one(Path(sys.argv[1])) as only:
    # as a server that outlives its kgqa: what is started has none of the locks
    child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
    print(only, child.pid, flush=True)
    time.sleep(60)
"""


def test_second_lock_is_refused(tmp_path):
    path = tmp_path / "a.lock"
    assert not held(path)
    with only_one(path) as first:
        assert first and held(path) and path.stat().st_mode & 0o077 == 0
        start = time.monotonic()
        with only_one(path, wait_seconds=0.2) as second:
            assert not second and 0.2 <= time.monotonic() - start < 5
        assert held(path), "whoever did not get it gave it back all the same"
    assert not held(path)


def test_lock_waits_for_its_release(tmp_path):
    def second() -> bool:
        with only_one(tmp_path / "a.lock", wait_seconds=60) as only:
            return only

    with ThreadPoolExecutor(1) as pool:
        with only_one(tmp_path / "a.lock"):
            waiting = pool.submit(second)
            time.sleep(0.2)
            assert not waiting.done()
        assert waiting.result(30) is True


def test_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "a.lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout
        only, child = process.stdout.readline().split()
        assert only == b"True" and held(path)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    try:
        with only_one(path, wait_seconds=0) as only:
            assert only
    finally:
        os.kill(int(child), signal.SIGKILL)
