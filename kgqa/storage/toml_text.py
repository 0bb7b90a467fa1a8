"""Reads TOML from untrusted sources, with limits on its size and its keys.

The memory that `tomllib` needs grows with the square of the number of parts in a dotted key.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

MAX_BYTES = 1_000_000
MAX_KEY_PARTS = 16

# an unclosed string extends to the end of the text; tomllib then rejects it
_STRING_OR_COMMENT = re.compile(
    r'"""(?:[^"\\]|\\(?:.|\Z)|"{1,2}(?!"))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML, with limits on its size and on the parts of a dotted key.

    Raises:
        ValueError: the text is not TOML, or exceeds the limits.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    if _DEEP_KEY.search(_STRING_OR_COMMENT.sub("s", text)):
        raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def read_toml(file: Path) -> dict[str, Any]:
    """Read a TOML file. Raises OSError, or ValueError for the same reasons as `parse_toml`."""
    with open(file, "rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    return parse_toml(data.decode("utf-8"))
