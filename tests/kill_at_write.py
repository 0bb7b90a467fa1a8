"""Kills a kgqa command at its N-th change of the file system, to simulate a power cut.

Run as a program in place of `kgqa`, it counts the changes of the command's own process below one folder (a file opened
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
    """Return the number of changes below `under` in a complete run of the command."""
    done = kill_at(0, under, arguments, **options)
    assert done.returncode == 0, done.stderr.decode()
    return int(done.stderr.decode().rsplit("changes:", 1)[1])


def _watch(number: int, under: str) -> list[int]:
    """Count changes in the single item of the returned list, and kill this process before change `number`."""
    count = [0]
    inside = under + os.sep

    def changed() -> None:
        count[0] += 1
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def below(target: object) -> bool:
        if isinstance(target, int):  # a descriptor
            try:
                target = os.readlink(f"/proc/self/fd/{target}")
            except OSError:
                return False
        if not isinstance(target, (str, bytes)):
            return False
        path = os.path.abspath(os.fsdecode(target))
        return path == under or path.startswith(inside)

    def hook(event: str, details: tuple) -> None:
        if event == "open":
            path, _, flags = details
            # a descriptor wrapped in a file object was opened before
            if isinstance(flags, int) and flags & WRITES and not isinstance(path, int) and below(path):
                changed()
        elif event in CHANGES and any(below(target) for target in details[:2]):
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
