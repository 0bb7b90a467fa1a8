"""Kills a kgqa command at its N-th change to the file system: a power cut at a chosen moment.

Run as a program in place of `kgqa`, it counts what the command's own process does below one folder (a file opened
for writing, created, renamed, linked, removed or synced) and ends with SIGKILL just before change N. Tests use
`changes_of` for the number of changes and `kill_at` for one killed run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import ROOT

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree"}


def kill_at(number: int, under: Path, arguments: Sequence[str], **options) -> subprocess.CompletedProcess[bytes]:
    """Run `kgqa ARGUMENTS`, killed before its change `number` below the folder `under`; 0 kills never."""
    command = [sys.executable, "-m", "tests.kill_at_write", str(number), str(under), *map(str, arguments)]
    environment = {**os.environ, **options.pop("env", {}), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, env=environment, timeout=options.pop("timeout", 300), **options)


def changes_of(under: Path, arguments: Sequence[str], **options) -> int:
    """How many changes below `under` the command makes when it runs to its end, which it does."""
    done = kill_at(0, under, arguments, **options)
    assert done.returncode == 0, done.stderr.decode()
    return int(done.stderr.decode().rsplit("changes:", 1)[1])


def _watch(number: int, under: str) -> list[int]:
    """Count changes from now on, in the one place of the list, and kill this process before change `number`."""
    count = [0]
    inside = under + os.sep

    def changed() -> None:
        count[0] += 1
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def below(place: object) -> bool:
        if isinstance(place, int):  # a descriptor
            try:
                place = os.readlink(f"/proc/self/fd/{place}")
            except OSError:
                return False
        if not isinstance(place, (str, bytes)):
            return False
        path = os.path.abspath(os.fsdecode(place))
        return path == under or path.startswith(inside)

    def hook(event: str, details: tuple) -> None:
        if event == "open":
            path, _, flags = details
            # a descriptor that is wrapped in a file object has been opened before
            if isinstance(flags, int) and flags & WRITES and not isinstance(path, int) and below(path):
                changed()
        elif event in CHANGES and any(below(place) for place in details[:2]):
            changed()

    def counting(function):
        def wrapper(descriptor, *rest, **named):
            if below(descriptor if isinstance(descriptor, int) else descriptor.fileno()):
                changed()
            return function(descriptor, *rest, **named)

        return wrapper

    for name in ("fsync", "fdatasync", "write", "ftruncate"):
        setattr(os, name, counting(getattr(os, name)))
    sys.addaudithook(hook)
    return count


if __name__ == "__main__":
    from kgqa.cli.main import main

    changes = _watch(int(sys.argv[1]), os.path.abspath(sys.argv[2]))
    try:
        main(sys.argv[3:])
    finally:
        print(f"changes:{changes[0]}", file=sys.stderr)
