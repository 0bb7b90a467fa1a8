"""The process that parses files: `python -m kgqa.corpus.documents.parser_process`.

It reads requests from stdin and writes responses to stdout, one after the other. A library that crashes, never ends or
needs too much memory ends this process and not the caller's.

A message is the length of a JSON header and the length of the data after it, 8 bytes each, then the header and the
data. A request has the fields `format` and `limits`, and the file as data. A response has the content of the file and
the data of its figures, or the field `error`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import IO, Any

from kgqa.corpus.documents.formats.content import Content
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError
from kgqa.graph.embedded.worker import deny_network

LENGTHS = struct.Struct(">QQ")
READERS = {
    "plain_text": "read_plain_text",
    "markdown": "read_markdown",
    "html": "read_html",
    "pdf": "read_pdf",
    "docx": "read_docx",
    "images": "read_image",
}
"""The function in each module of `kgqa.corpus.documents.formats`."""
_GRACE_SECONDS = 5


def main() -> None:
    """Answer requests until stdin is closed."""
    requests = os.fdopen(os.dup(0), "rb")
    responses = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # libraries print warnings
        os.dup2(nowhere, descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    deny_network()
    while True:
        lengths = requests.read(LENGTHS.size)
        if len(lengths) < LENGTHS.size:
            return
        header_length, data_length = LENGTHS.unpack(lengths)
        header = json.loads(requests.read(header_length))
        data = requests.read(data_length)
        limits = Limits(**header["limits"])
        # ends the process even if a library never returns and the parent is gone
        signal.alarm(int(limits.seconds) + _GRACE_SECONDS)
        fields, figures = _answer(header["format"], data, limits)
        del data
        signal.alarm(0)
        _write(responses, fields, figures)


def _answer(format_: str, data: bytes, limits: Limits) -> tuple[dict[str, Any], list[bytes]]:
    try:
        _limit_memory(limits.memory_bytes)
        content = reader(format_)(data, limits)
        return encode_content(content)
    except DocumentError as error:
        return {"error": error.reason}, []
    except MemoryError:
        return {"error": f"reading it takes more than {limits.memory_bytes:,} bytes of memory"}, []
    except Exception as error:  # noqa: BLE001  # parsers raise exceptions of their own on damaged files
        return {"error": f"it is damaged ({type(error).__name__}: {str(error)[:100]})"}, []


def reader(format_: str) -> Callable[[bytes, Limits], Content]:
    """Return the function that reads a format."""
    module = import_module(f"kgqa.corpus.documents.formats.{format_}")
    function: Callable[[bytes, Limits], Content] = getattr(module, READERS[format_])
    return function


def _limit_memory(size: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = now + size
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def encode_content(content: Content) -> tuple[dict[str, Any], list[bytes]]:
    """Return content as the fields of a JSON object, and the data of its figures."""
    fields = {
        "text": content.text,
        "title": content.title,
        "pages": content.pages,
        "elements": [
            [each.kind, each.begin, each.end, each.level, each.cells, each.header, each.target]
            for each in content.elements
        ],
        "figures": [
            {key: value for key, value in asdict(each).items() if key != "data"} | {"size": len(each.data)}
            for each in content.figures
        ],
    }
    return fields, [each.data for each in content.figures]


def _write(file: IO[bytes], fields: dict[str, Any], figures: list[bytes]) -> None:
    header = json.dumps(fields, ensure_ascii=False).encode()
    file.write(LENGTHS.pack(len(header), sum(map(len, figures))))
    file.write(header)
    for data in figures:
        file.write(data)
    file.flush()


if __name__ == "__main__":
    main()
