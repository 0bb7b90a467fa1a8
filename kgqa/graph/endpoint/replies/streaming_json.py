"""JSON that is read while it is still coming in, one value after another, with what was read of it dropped."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from kgqa.errors import DamagedResult, PartialResult

CUT = "The server's answer breaks off in the middle: {}. Nothing of it is used. Try again, or ask for less."
MAX_VALUE_CHARS = 16 << 20
"""Characters of one value, such as a row: more of them is no row, but somebody who fills our memory."""
_SPACE = " \t\r\n"
_SPACES = re.compile(r"[ \t\r\n]*+")
_SCAN = json.JSONDecoder().raw_decode


class JsonText:
    """Walks through JSON text. Every method reads on from where the one before it stopped.

    Raises:
        DamagedResult: the text breaks off, or is no JSON at some place. PartialResult: a value is too long.
        ValueError: what stands there is not what was asked for.
    """

    def __init__(self, data: bytes, parts: Iterator[bytes]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._parts = parts
        self._at = 0
        self._text = self._decoded(data, final=False)

    def members(self) -> Iterator[str]:
        """The names in an object, one after another; the value of each has to be read before the next."""
        if self._next_sign() != "{":
            raise ValueError("an object was expected")
        self._at += 1
        if self._next_sign() == "}":
            self._at += 1
            return
        while True:
            name = self.value()
            if not isinstance(name, str) or self._next_sign() != ":":
                raise DamagedResult(CUT.format("a name was expected"))
            self._at += 1
            yield name
            if not self._another("}"):
                return

    def items(self) -> Iterator[Any]:
        """The values in a list, one after another."""
        if self._next_sign() != "[":
            raise ValueError("a list was expected")
        self._at += 1
        if self._next_sign() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if not self._another("]"):
                return

    def value(self) -> Any:
        """The next value as a whole."""
        self._next_sign()
        more = True
        while True:
            try:
                found, end = _SCAN(self._text, self._at)
                if not (more and isinstance(found, (int, float)) and self._may_go_on(end)):
                    self._at = end
                    return found
            except RecursionError as error:
                raise ValueError("it is nested too deeply") from error
            except ValueError:
                pass  # the rest of it has not come yet
            length = len(self._text) - self._at
            if length >= MAX_VALUE_CHARS:
                raise PartialResult(f"A row of the result is longer than {MAX_VALUE_CHARS:,} characters. Ask for less.")
            if not more:
                raise DamagedResult(CUT.format("the last value is not whole"))
            # looked at again when it has doubled: else a long value would be read once a packet
            more = self._fill(min(2 * length, MAX_VALUE_CHARS))

    def _may_go_on(self, end: int) -> bool:
        """Whether a number that ends here may have more digits in what has not come yet."""
        return not self._text[end:].strip("0123456789+-.eE")

    def end(self) -> None:
        """Nothing may follow but white space."""
        while True:
            if self._text[self._at :].strip(_SPACE):
                raise DamagedResult(CUT.format("something follows its end"))
            self._at = len(self._text)
            if not self._fill(1):
                return

    def _another(self, closing: str) -> bool:
        sign = self._next_sign()
        if sign not in (",", closing):
            raise DamagedResult(CUT.format(f"a comma or {closing} was expected"))
        self._at += 1
        return sign == ","

    def _next_sign(self) -> str:
        """The next character that is no white space, which stays where it is."""
        while True:
            self._at = _SPACES.match(self._text, self._at).end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill(1):
                raise DamagedResult(CUT.format("its end is missing"))

    def _fill(self, length: int) -> bool:
        """Wait until there are so many characters ahead, one more than now at least. False at the end of the text."""
        pieces = [self._text[self._at :]]
        have, self._at = len(pieces[0]), 0
        wanted = max(length, have + 1)
        ended = False
        while have < wanted and not ended:
            part = next(self._parts, None)
            ended = part is None
            pieces.append(self._decoded(part or b"", final=ended))
            have += len(pieces[-1])
        self._text = "".join(pieces)
        return not ended

    def _decoded(self, data: bytes, *, final: bool) -> str:
        try:
            return self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            raise DamagedResult(CUT.format("it is not UTF-8")) from error
