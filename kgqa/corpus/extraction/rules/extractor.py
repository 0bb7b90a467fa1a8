"""The extractor without a language model: it applies the rules to each chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgqa.corpus.documents.document import Document
from kgqa.corpus.extraction.requests import ExtractionRequest
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.extraction.rules.facts import RuleFact
from kgqa.corpus.extraction.rules.layout import Layout
from kgqa.corpus.items import Addition, Party, digest, item_key
from kgqa.words import clean

VERSION = "1"
"""Changes when a rule changes, so that chunks are read again."""
MAX_FACTS = 500
"""Most facts that rules take from one chunk."""


class RuleExtractor:
    """Finds facts by rules: the layout of any language, and common forms of English sentences.

    Every addition has the model `rule:NAME` and the confidence of this rule.
    """

    name = "rules"
    key = digest("rules", VERSION)
    needs_model = False

    def extract(self, requests: Sequence[ExtractionRequest]) -> Iterator[ChunkResult]:
        """Yield the result of each chunk, in order."""
        reader: _DocumentReader | None = None
        for request in requests:
            if reader is None or reader.document is not request.document:
                reader = _DocumentReader(request.document)
            yield reader.read(request)


class _DocumentReader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self._topic = Party(clean(document.title) or document.source)
        self._layout = Layout(document, self._topic)

    def read(self, request: ExtractionRequest) -> ChunkResult:
        chunk = request.chunk
        facts = self._layout.facts(chunk.begin, chunk.end)
        additions: dict[str, Addition] = {}
        rejected = 0
        for fact in facts:
            key = item_key(fact.item)
            if key in additions:
                continue
            if len(additions) >= MAX_FACTS:
                rejected += 1
                continue
            additions[key] = self._addition(fact, request)
        more = (f"{rejected:,} more than {MAX_FACTS:,} facts",) if rejected else ()
        return ChunkResult(chunk.chunk, tuple(additions.values()), rejected=more)

    def _addition(self, fact: RuleFact, request: ExtractionRequest) -> Addition:
        return Addition(
            fact.item,
            request.chunk.document,
            request.chunk.chunk,
            fact.begin,
            fact.end,
            fact.confidence,
            model=f"rule:{fact.rule}",
        )
