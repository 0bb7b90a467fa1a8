"""What the checks of `kgqa doctor` examine in tests."""

from __future__ import annotations

from kgqa.cache import Cache
from kgqa.doctor.limited_store import LimitedStore, limited_server
from kgqa.doctor.subject import Subject
from kgqa.graph.endpoint.requests.access import Access
from kgqa.model import GraphId
from kgqa.settings import resolve

ACCESS = Access(patience=0.0)


def limited(url: str, access: Access = ACCESS, **options) -> LimitedStore:
    return limited_server(url, access, **options)


def subject_of(store: LimitedStore, *, view=(), triples: int | None = None, **given) -> Subject:
    """A server of which the store and the number of triples are known."""
    subject = Subject(resolve(given), Cache.default())
    subject.store, subject.view = store, view
    subject.id = GraphId(store.location, tuple(entity.iri for entity in view), "", triples)
    return subject
