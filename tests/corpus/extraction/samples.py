"""Small documents and models for the tests of extraction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack

from kgqa.corpus.documents.document import Document, Figure
from kgqa.corpus.extraction.model_extractor import ModelExtractor
from kgqa.corpus.extraction.requests import ExtractionRequest, extraction_requests
from kgqa.corpus.items import Addition, ChunkItem, EntityItem, HyperedgeItem, Party, StatementItem
from kgqa.llm.client import CORPUS_STAGES
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.settings.values import resolve
from kgqa.testing.server import ScriptedServer

BRIDGE = "The bridge over the Lavern was designed by Ann Li. It was opened on 3 May 1921."
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def request_for(text: str = BRIDGE, title: str = "Halden Bridge", source: str = "") -> ExtractionRequest:
    """Return a request for a document that is one chunk."""
    document = Document(source or title, title, "text/plain", "d", text)
    return ExtractionRequest(document, ChunkItem(document.iri, 0, len(text), text))


def figure_request(
    caption: str = "Figure 1: Halden", text: str = "[image] Figure 1: Halden", **more
) -> ExtractionRequest:
    figure = Figure(**{"data": PNG, "media_type": "image/png", "begin": 0, "caption": caption, **more})
    document = Document("a.png", "a.png", "image/png", "d", text, figures=(figure,))
    (request,) = extraction_requests(document, [ChunkItem(document.iri, 0, len(text), text)])
    return request


def triple(subject: str, relation: str, object_: str, quote: str) -> dict[str, str]:
    return {"subject": subject, "relation": relation, "object": object_, "quote": quote}


GOOD = {
    "entities": [{"name": "Halden Bridge", "type": "bridge"}, {"name": "Ann Li", "type": "person"}],
    "triples": [
        triple("Halden Bridge", "designed by", "Ann Li", "was designed by Ann Li"),
        triple("Halden Bridge", "date of opening", "3 May 1921", "It was opened on 3 May 1921"),
    ],
}


def reply_of(*triples: dict, entities: Sequence[dict] = ()) -> str:
    return json.dumps({"entities": list(entities), "triples": list(triples)}, ensure_ascii=False)


class Extraction:
    """A model extractor on a scripted server; use it as a context."""

    def __init__(self, replies, *, constrains="none", **settings) -> None:
        self._stack = ExitStack()
        self.server = self._stack.enter_context(ScriptedServer(replies, constrains=constrains))
        given = {"llm.model": f"{self.server.url}#m", "llm.retries": 0, "corpus.images": "on"} | {
            k.replace("_", ".", 1): v for k, v in settings.items()
        }
        self.settings = resolve(given, environment={})
        self.models = open_models(self.settings, stages=CORPUS_STAGES)
        self._stack.callback(self.models.close)
        self.extractor = ModelExtractor(self.models, Prompts(), self.settings)

    def __call__(self, *requests: ExtractionRequest):
        return {result.chunk: result for result in self.extractor.extract(requests)}

    def one(self, request: ExtractionRequest | None = None):
        (result,) = self.extractor.extract([request or request_for()])
        return result

    def __enter__(self) -> Extraction:
        return self

    def __exit__(self, *error) -> None:
        self._stack.close()


def facts_of(additions: Sequence[Addition], document: Document | None = None) -> set[tuple]:
    """Return statements as (subject, relation, object), with the words at their place if there is a document."""
    found = set()
    for each in additions:
        item = each.item
        if isinstance(item, StatementItem):
            value = (
                item.object.name
                if isinstance(item.object, Party)
                else (item.object.value, item.object.datatype.rpartition("#")[2])
            )
            words = () if document is None else (document.text[each.begin : each.end],)
            found.add((item.subject.name, item.relation, value, *words))
    return found


def entities_of(additions: Sequence[Addition]) -> set[tuple[str, str]]:
    return {(each.item.party.name, each.item.party.type) for each in additions if isinstance(each.item, EntityItem)}


def segments_of(additions: Sequence[Addition]) -> list[HyperedgeItem]:
    return [each.item for each in additions if isinstance(each.item, HyperedgeItem)]
