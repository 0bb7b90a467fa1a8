"""A command in a pseudo-terminal, as a person at a keyboard uses it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")
CTRL_C, CTRL_D, TAB, UP, LEFT = "\x03", "\x04", "\t", "\x1b[A", "\x1b[D"


@dataclass
class Terminal:
    """A running command. `shown`: all that it has written so far, without escape sequences."""

    process: subprocess.Popen[bytes]
    _master: int
    _written: bytearray = field(default_factory=bytearray)
    _from: int = 0

    @property
    def shown(self) -> str:
        return _ESCAPE.sub("", self._written.decode("utf-8", "replace"))

    def type(self, keys: str) -> None:
        """Type keys. What is expected next must appear after that."""
        self._from = len(self._written)
        os.write(self._master, keys.encode())

    def expect(self, text: str, seconds: float = 30) -> str:
        """Wait until a text appears after the last keys, apart from line breaks; return what appeared."""
        end = time.monotonic() + seconds
        while text not in (new := self._after_keys()):
            left = end - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"{text!r} does not appear in:\n{new}")
        return new

    def _after_keys(self) -> str:
        # the room for a menu below the line is made with line breaks, in the middle of what is typed
        new = _ESCAPE.sub("", self._written[self._from :].decode("utf-8", "replace"))
        return re.sub(r"[\r\n]+| \x08", "", new)

    def ended(self, seconds: float = 30) -> int:
        """Wait for the end of the command; return its exit code."""
        while self._read(1.0):
            pass
        return self.process.wait(seconds)

    def _read(self, seconds: float) -> bool:
        """Read what the command writes; return False at its end."""
        if select.select([self._master], [], [], min(seconds, 0.5))[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the command has closed the terminal
                return False
            # a terminal answers the question for the position of the cursor
            if b"\x1b[6n" in data:
                os.write(self._master, b"\x1b[1;1R")
            self._written += data
            return bool(data)
        return self.process.poll() is None


@contextmanager
def terminal(command: Sequence[str], *, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Run a command in a pseudo-terminal of 100 columns, until the context ends."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment, "TERM": "xterm"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C becomes a signal
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
