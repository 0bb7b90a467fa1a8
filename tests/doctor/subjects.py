"""What the checks of `kgqa doctor` examine in tests."""

from __future__ import annotations

from contextlib import contextmanager

from kgqa.doctor.subject import QUERY_SECONDS, LimitedStore, Subject
from kgqa.graph.endpoint.access import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.model import GraphId
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache

ACCESS = Access(patience=0.0)


@contextmanager
def limited(url: str, access: Access = ACCESS, **options):
    """Open a server with short time limits."""
    with EndpointStore(url, access=access, timeout=QUERY_SECONDS, **options) as store:
        yield LimitedStore(store, access)


def subject_of(store: LimitedStore, *, view=(), triples: int | None = None, **given) -> Subject:
    """A server of which the store and the number of triples are known."""
    subject = Subject(resolve(given), Cache.default())
    subject.store, subject.server, subject.view = store, store, view
    subject.id = GraphId(store.location, tuple(entity.iri for entity in view), "", triples)
    return subject
