"""The page in a browser: its shell, its style sheet and its scripts, all read from this package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from kgqa.report.answer import EVIDENCE_CLASSES, QUERY_CLASSES, SCORE, STATUS_WORDS, UNQUOTED
from kgqa.report.pages import data_block
from kgqa.report.site.question_page import GROUNDS

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of the page: a browser runs and fetches only what this service serves, and makes no HTML of texts."""
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
}
_SCRIPT = "main.js"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page. `tag`: changes with the content (an ETag)."""

    content: bytes
    media_type: str
    tag: str


@lru_cache(maxsize=1)
def page_files() -> dict[str, PageFile]:
    """Return the style sheet, the scripts and the icon by name. No other file can be asked for."""
    found = {}
    for each in files("kgqa.serve").joinpath("static").iterdir():
        media_type = _TYPES.get(each.name.rpartition(".")[2])
        if media_type:
            found[each.name] = _page_file(each.read_bytes(), media_type)
    return found


@lru_cache(maxsize=1)
def page() -> PageFile:
    """Return the HTML of the page; it is the same for all graphs and contains no data of them."""
    text = files("kgqa.serve").joinpath("templates", "page.html").read_text(encoding="utf-8")
    scripts = sorted(name for name in page_files() if name.endswith(".js") and name != _SCRIPT)
    preloads = "\n".join(f'<link rel="modulepreload" href="/static/{name}">' for name in scripts)
    texts = data_block(
        {
            "score": SCORE,
            "statuses": STATUS_WORDS,
            "queries": QUERY_CLASSES,
            "evidence": EVIDENCE_CLASSES,
            "grounds": GROUNDS,
            "unquoted": UNQUOTED,
        }
    )
    block = f'{preloads}\n<script type="application/json" id="texts">{texts}</script>'
    return _page_file(text.replace("<!-- preloads -->", block).encode(), "text/html; charset=utf-8")


def _page_file(content: bytes, media_type: str) -> PageFile:
    return PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
