"""Base URLs of servers with the OpenAI interface."""

from __future__ import annotations

import pytest

from kgqa.errors import SettingsError
from kgqa.net.servers import base_url


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
