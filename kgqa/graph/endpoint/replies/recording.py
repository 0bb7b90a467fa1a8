"""Records the chunks of a reply while they are read, so that the reply can be cached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_BODY_BYTES = 64 << 20
"""The longest body that is recorded."""
TAIL_BYTES = 16 << 10


class RecordingStream:
    """Yields the chunks of a body, once, and records them.

    Args:
        record: whether to keep the whole body; otherwise only the tail is kept.

    Attributes:
        tail: the last TAIL_BYTES bytes read so far.
    """

    def __init__(self, chunks: Iterable[bytes], *, record: bool) -> None:
        self._chunks = chunks
        self._recorded: list[bytes] | None = [] if record else None
        self._size = 0
        self._ended = False
        self.tail = b""

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._size += len(chunk)
            self.tail = chunk[-TAIL_BYTES:] if len(chunk) >= TAIL_BYTES else (self.tail + chunk)[-TAIL_BYTES:]
            if self._size > MAX_BODY_BYTES:
                self._recorded = None
            if self._recorded is not None:
                self._recorded.append(chunk)
            yield chunk
        self._ended = True

    @property
    def body(self) -> bytes | None:
        """The whole body; None if the body was not read to its end, is too long, or `record` is false."""
        return b"".join(self._recorded) if self._recorded is not None and self._ended else None
