"""Hostile and damaged files cost only themselves: a reason, in limited time and memory."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
import zlib

import pytest

from kgqa.corpus.documents import parsers
from kgqa.corpus.documents.formats.docx import read_docx
from kgqa.corpus.documents.formats.html import read_html
from kgqa.corpus.documents.limits import Limits
from kgqa.corpus.documents.parsers import parse
from kgqa.corpus.documents.reading import read_source
from kgqa.corpus.documents.sources import Source
from kgqa.errors import DocumentError
from tests.corpus.documents.samples import changed_archive, docx, pdf, raw_pdf

LIMITS = Limits(seconds=20)
CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 100 100]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>"


def bomb(name: str, content: bytes) -> bytes:
    if name != "word/document.xml":
        return content
    return content[: content.index(b"<w:body>") + 8] + b"<w:p/>" * 2_000_000


def entities(name: str, content: bytes) -> bytes:
    declaration = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    return content.replace(b"<w:document", declaration + b"<w:document", 1) if name == "word/document.xml" else content


def deep(name: str, content: bytes) -> bytes:
    if name != "word/document.xml":
        return content
    tail = b"<w:sdt>" * 5_000 + b"</w:sdt>" * 5_000 + b"</w:body></w:document>"
    return content[: content.index(b"<w:body>") + 8] + tail


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (changed_archive(docx(), bomb), "compressed more than 200 to 1"),
        (changed_archive(docx(), entities), "declares a document type"),
        (changed_archive(docx(), deep), "not a valid DOCX file: Excessive depth"),
        (docx()[:5_000], "the archive is damaged"),
        (docx()[:3_000] + b"\xff" * 50 + docx()[3_050:], "the archive is damaged"),
        (b"PK\x03\x04" + b"x" * 1_000, "the archive is damaged"),
        (b"\xd0\xcf\x11\xe0" + b"x" * 100, "protected by a password, or in the old DOC format"),
        (
            changed_archive(docx(), lambda name, content: b"" if name == "word/document.xml" else content),
            "not a valid DOCX",
        ),
    ],
)
def test_docx(data, reason):
    start = time.monotonic()
    with pytest.raises(DocumentError, match=reason):
        read_docx(data, LIMITS)
    assert time.monotonic() - start < 20


def test_archives_with_too_many_or_too_large_entries():
    for limits, reason in (
        (Limits(archive_entries=3), "more than 3 entries"),
        (Limits(archive_bytes=10), "more than 10 bytes"),
    ):
        with pytest.raises(DocumentError, match=reason):
            read_docx(docx(), limits)


@pytest.mark.parametrize("tag", ["<div>", "<b>", "<table><tr><td>", "<ul><li>"])
def test_deeply_nested_html(tag):
    with pytest.raises(DocumentError, match="nested too deeply"):
        read_html(tag.encode() * 100_000, LIMITS)
    assert read_html((tag * 40 + "text").encode(), LIMITS).text == "text"


@pytest.mark.parametrize(
    "page",
    ["<p>a <a href=x>b</a>" * 9_000, "<li>" * 30_000, "<p " + "a=b " * 30_000 + ">x", "<td colspan=9999>" * 9_000],
)
def test_large_html_takes_linear_time(page):
    start = time.process_time()
    read_html(page.encode(), LIMITS)
    assert time.process_time() - start < 30


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.4 garbage", "damaged, or not a PDF file"),
        (pdf()[:5_000], "damaged, or not a PDF file"),
        (raw_pdf(CATALOG, b"<</Type/Pages/Kids[2 0 R]/Count 1>>"), "damaged"),
        (raw_pdf(CATALOG, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2000000000>>"), "damaged"),
        (raw_pdf(CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 4000>>", PAGE), "damaged"),
        (raw_pdf(CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 1>>", PAGE), "no text and no images"),
    ],
)
def test_damaged_pdf(data, reason):
    with pytest.raises(DocumentError, match=reason):
        parse("pdf", data, LIMITS)


def stream(content: bytes, fields: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>\nstream\n%s\nendstream" % (fields, len(content), content)


@pytest.mark.parametrize("limits", [Limits(seconds=1), Limits(seconds=20, memory_bytes=60 << 20)])
@pytest.mark.slow
def test_pdf_that_draws_itself_or_unpacks_without_end(limits):
    """The process of the parser ends; the next file is read by another one."""
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    form = stream(b"/F Do " * 3, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 5 0 R>>>>")
    zeros = zlib.compress(zlib.compress(b"0 " * 60_000_000, 9), 9)
    unpacked = stream(zeros, b"/Filter[/FlateDecode/FlateDecode]")
    for data in (raw_pdf(CATALOG, pages, PAGE, stream(b"/F Do"), form), raw_pdf(CATALOG, pages, PAGE, unpacked)):
        start = time.monotonic()
        with pytest.raises(DocumentError) as caught:
            parse("pdf", data, limits)
        assert caught.value.reason
        assert time.monotonic() - start < limits.seconds + 5
    assert parse("markdown", b"# Next", LIMITS).title == "Next"


def test_time_and_memory_of_parsers():
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(DocumentError, match=r"takes longer than 0\.3 seconds"):
        parse("markdown", b"![" * 400_000, Limits(seconds=0.3))
    with pytest.raises(DocumentError, match="more than 20,000,000 bytes of memory"):
        parse("html", b"<p>text <b>x</b></p>" * 300_000, Limits(memory_bytes=20_000_000))
    assert parse("html", b"<p>next", LIMITS).text == "next"
    assert resource.getrlimit(resource.RLIMIT_AS) == before  # only the parser's own process is limited


def test_a_parser_that_is_killed_is_replaced(monkeypatch):
    started = []
    start = parsers.subprocess.Popen

    def popen(*args, **kwargs):
        started.append(start(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(parsers.subprocess, "Popen", popen)
    parsers.close_parsers()
    threading.Timer(0.7, lambda: os.kill(started[0].pid, signal.SIGKILL)).start()
    with pytest.raises(DocumentError, match="the parser was killed"):
        parse("markdown", b"![" * 2_000_000, LIMITS)
    assert parse("markdown", b"# Next", LIMITS).title == "Next"
    os.kill(started[1].pid, signal.SIGKILL)  # while it is idle
    started[1].wait()
    assert parse("markdown", b"# Next", LIMITS).title == "Next"
    assert len(started) == 3


def test_parsers_serve_many_threads():
    found: dict[int, str] = {}
    threads = [
        threading.Thread(
            target=lambda number=number: found.update({number: parse("html", b"<p>%d" % number, LIMITS).text})
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: str(number) for number in range(8)}


def test_a_file_that_grows_or_vanishes_after_it_was_found(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("long enough")
    with pytest.raises(DocumentError, match=r"^a\.txt cannot be read: it is larger than 5 bytes$"):
        next(read_source(Source("a.txt", path, 3), limits=Limits(file_bytes=5)))
    path.unlink()
    with pytest.raises(DocumentError, match="no such file"):
        next(read_source(Source("a.txt", path, 3)))
