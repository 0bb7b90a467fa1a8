"""Messages between a worker process and its parent: a length of four bytes and the content, on a pair of sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

_LENGTH = struct.Struct(">I")


def send(connection: socket.socket, kind: bytes, content: bytes | bytearray) -> None:
    """Send a message that begins with a letter for its kind. Raises OSError if the other end is closed."""
    connection.sendall(_LENGTH.pack(len(content) + 1) + kind + content)


def receive(connection: socket.socket, wait: Callable[[], object] = lambda: None) -> tuple[bytes, memoryview]:
    """Wait for a message, and return its kind and its content.

    Args:
        wait: called before each part of the message is read; it may wait for the part, and raise an error.

    Raises:
        EOFError, OSError: the other end is closed.
    """
    (size,) = _LENGTH.unpack(_read(connection, _LENGTH.size, wait))
    message = memoryview(_read(connection, size, wait))
    return bytes(message[:1]), message[1:]


def _read(connection: socket.socket, size: int, wait: Callable[[], object]) -> bytearray:
    data = bytearray(size)
    missing = memoryview(data)
    while missing:
        wait()
        count = connection.recv_into(missing)
        if not count:
            raise EOFError
        missing = missing[count:]
    return data
