"""Base URLs of servers with the OpenAI interface, and the header Retry-After."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from kgqa.errors import SettingsError
from kgqa.net.servers import base_url, retry_after


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/chat/completions", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/embeddings", "http://localhost:8000/v1"),
        ("https://example.org/api/openai ", "https://example.org/api/openai"),
        ("http://[::1]:80", "http://[::1]:80/v1"),
    ],
)
def test_base_url(url, base):
    assert base_url(url) == base


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://a.org", "http://", "http://me:pass@a.org", "ftp://me:pass@a.org", "me:pass@a.org",
     "http://a.org?key=pass", "http://a.org#pass", "http://a.org:99999", "file:///etc/passwd", "http://[::1",
     f"http://{'a' * 70}.org"],
)  # fmt: skip
def test_invalid_urls(url):
    with pytest.raises(SettingsError) as caught:
        base_url(url)
    assert "pass@" not in str(caught.value) and "=pass" not in str(caught.value) and "#pass" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3), ("0.5", 0.5), (" 7 ", 7), ("0", 0), ("-4", 0), ("", None), ("soon", None), ("nan", None), ("inf", None),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("Wed, 99 Oct 2015 07:28:00 GMT", None)],
)  # fmt: skip
def test_retry_after_header(text, seconds):
    assert retry_after({"retry-after": text}) == seconds


def test_retry_after_date():
    assert retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) == pytest.approx(60, abs=3)
    assert retry_after({}) is None
