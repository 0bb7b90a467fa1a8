"""Reads JSON value by value while the text arrives; text that has been read is dropped from memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

MAX_VALUE_CHARS = 16 << 20
_LONGEST_WORD = len("-Infinity") + len("\\u0000\\u0000")
_SPACE = " \t\r\n"
_SPACES = re.compile(r"[ \t\r\n]*+")
_TEXTS = re.compile(r'(?:"[^"\\]*+"[ \t\r\n]*+,[ \t\r\n]*+){1,50000}+')
"""Texts without escapes in a list, before another item."""
_decode_at = json.JSONDecoder().raw_decode


class DamagedJson(Exception):
    """The text is truncated or not JSON; the message says what was expected."""


class LongValue(Exception):
    """A value is longer than the limit."""


class JsonStream:
    """A reader of JSON text. Each method continues where the previous call stopped reading.

    Args:
        chunks: the text in UTF-8, with or without a byte order mark.
        max_value_chars: the longest value, such as a row, that is read into memory.

    Raises:
        DamagedJson, LongValue.
        ValueError: the next value is not of the requested type, or nested too deeply.
    """

    def __init__(self, chunks: Iterator[bytes], *, max_value_chars: int = MAX_VALUE_CHARS) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._chunks = chunks
        self._max_value_chars = max_value_chars
        self._at = 0
        self._text = ""
        self._dropped = 0

    @property
    def position(self) -> int:
        """The number of characters that have been read."""
        return self._dropped + self._at

    def members(self) -> Iterator[str]:
        """Yield the names of an object's members. The caller must read each member's value before the next name."""
        more = self._enters("{", "}", "an object")
        while more:
            name = self.value()
            if not isinstance(name, str) or self._next_character() != ":":
                raise DamagedJson("a name was expected")
            self._at += 1
            yield name
            more = self._has_next("}")

    def items(self) -> Iterator[Any]:
        """Yield the values of a list."""
        more = self._enters("[", "]", "a list")
        while more:
            yield self.value()
            more = self._has_next("]")

    def batches(self) -> Iterator[list[Any]]:
        """Yield the values of a list, many texts at a time."""
        more = self._enters("[", "]", "a list")
        while more:
            self.peek()
            if texts := _TEXTS.match(self._text, self._at):
                self._at = texts.end()
                yield json.loads(f"[{texts[0].rstrip(_SPACE)[:-1]}]")
                continue
            yield [self.value()]
            more = self._has_next("]")

    def _enters(self, opening: str, closing: str, what: str) -> bool:
        """Read an opening bracket; if the closing bracket follows, read it too and return False."""
        if self._next_character() != opening:
            raise ValueError(f"{what} was expected")
        self._at += 1
        empty = self._next_character() == closing
        self._at += empty
        return not empty

    def value(self) -> Any:
        """Read the next value completely."""
        self._next_character()
        more = True
        while True:
            try:
                found, end = _decode_at(self._text, self._at)
                if not (more and isinstance(found, (int, float)) and self._may_continue(end)):
                    self._at = end
                    return found
            except RecursionError as error:
                raise ValueError("the JSON is nested too deeply") from error
            except json.JSONDecodeError as error:
                # an incomplete value is wrong only near the end of the text; a string has no known end
                if not error.msg.startswith("Unterminated") and len(self._text) - error.pos > _LONGEST_WORD:
                    self._at = error.pos
                    raise DamagedJson(error.msg) from error
            except ValueError:
                pass  # a number with too many digits, perhaps
            length = len(self._text) - self._at
            if length >= self._max_value_chars:
                raise LongValue
            if not more:
                raise DamagedJson("the last value is incomplete")
            # decode again only when the text is twice as long; otherwise a long value would be decoded once per packet
            more = self._fill(min(2 * length, self._max_value_chars))

    def _may_continue(self, end: int) -> bool:
        """Return whether a number that ends here may have more digits in the next chunk."""
        return not self._text[end:].strip("0123456789+-.eE")

    def end(self) -> None:
        """Check that only white space follows."""
        if self.peek():
            raise DamagedJson("text follows the end of the JSON")

    def _has_next(self, closing: str) -> bool:
        character = self._next_character()
        if character not in (",", closing):
            raise DamagedJson(f"a comma or {closing} was expected")
        self._at += 1
        return character == ","

    def peek(self) -> str:
        """Return the next character that is not white space, without consuming it; "" at the end of the text."""
        if self._at < len(self._text) and (character := self._text[self._at]) not in _SPACE:
            return character
        while True:
            spaces = _SPACES.match(self._text, self._at)
            assert spaces is not None
            self._at = spaces.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill(1):
                return ""

    def _next_character(self) -> str:
        if found := self.peek():
            return found
        raise DamagedJson("the end is missing")

    def _fill(self, length: int) -> bool:
        """Read until there are `length` unread characters, at least one more than before; return False at the end."""
        pieces = [self._text[self._at :]]
        self._dropped += self._at
        have, self._at = len(pieces[0]), 0
        wanted = max(length, have + 1)
        ended = False
        while have < wanted and not ended:
            chunk = next(self._chunks, None)
            ended = chunk is None
            pieces.append(self._decode(chunk or b"", final=ended))
            have += len(pieces[-1])
        self._text = "".join(pieces)
        return not ended

    def _decode(self, data: bytes, *, final: bool) -> str:
        try:
            return self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            raise DamagedJson("the text is not UTF-8") from error
