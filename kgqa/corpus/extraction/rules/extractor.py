"""The extractor without a language model: it applies the rules to each chunk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kgqa.corpus.documents.document import Document, Span
from kgqa.corpus.extraction.requests import ExtractionRequest
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.extraction.rules.english import EnglishReader, find_definition
from kgqa.corpus.extraction.rules.facts import RuleFact
from kgqa.corpus.extraction.rules.layout import Layout
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.corpus.items import Addition, ChunkItem, Item, Party, digest
from kgqa.text.words import clean

VERSION = "1"
"""Changes when a rule changes, so that chunks are read again."""
MAX_FACTS = 500
"""Most facts that rules take from one chunk."""
MAX_TITLE_CHARS = 200
MAX_OPENING_CHARS = 5_000
_PARAGRAPH = re.compile(r"\S(?:[^\n]|\n(?!\s*\n))*")


class RuleExtractor:
    """Finds facts by rules: the layout of any language, and common forms of English sentences.

    Every addition has the model `rule:NAME` and the confidence of this rule.
    """

    name = "rules"
    key = digest("rules", VERSION)
    needs_model = False

    def extract(self, requests: Iterable[ExtractionRequest]) -> Iterator[ChunkResult]:
        """Yield the result of each chunk, in order."""
        reader: _DocumentReader | None = None
        for request in requests:
            if reader is None or reader.document is not request.document:
                reader = _DocumentReader(request.document)
            yield reader.read(request)


class _DocumentReader:
    """Reads the chunks of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        name = clean(document.title)[:MAX_TITLE_CHARS] or document.source
        begin, end = self._opening()
        self._sentences = [(begin + one, begin + two) for one, two in sentence_spans(document.text[begin:end])]
        definition = find_definition(document.text, self._sentences, name)
        self._topic = Party(name, definition.type if definition else "")
        self._layout = Layout(document, self._topic)
        self._english = EnglishReader(document.text, self._topic, definition) if definition else None

    def read(self, request: ExtractionRequest) -> ChunkResult:
        chunk = request.chunk
        iri = chunk.chunk
        additions: dict[Item, Addition] = {}
        more = 0
        for fact in self._facts(chunk):
            if fact.item in additions:
                continue
            if len(additions) < MAX_FACTS:
                place = (chunk.document, iri, fact.begin, fact.end)
                additions[fact.item] = Addition(fact.item, *place, fact.confidence, f"rule:{fact.rule}")
            else:
                more += 1
        rejected = (f"{more:,} more than {MAX_FACTS:,} facts",) if more else ()
        return ChunkResult(iri, tuple(additions.values()), rejected=rejected)

    def _facts(self, chunk: ChunkItem) -> Iterator[RuleFact]:
        yield from self._layout.facts(chunk.begin, chunk.end)
        if self._english is not None and chunk.begin < self._sentences[-1][1]:
            for fact in self._english.facts(self._sentences):
                if chunk.begin <= fact.begin and fact.end <= chunk.end:
                    yield fact

    def _opening(self) -> Span:
        """Return the first paragraph that is not a heading."""
        text = self.document.text
        begin = 0
        for element in self.document.elements:
            if element.kind == "heading" and not text[begin : element.begin].strip():
                begin = element.end
            else:
                break
        first = _PARAGRAPH.search(text, begin, begin + MAX_OPENING_CHARS)
        return first.span() if first else (begin, begin)
