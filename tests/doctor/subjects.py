"""What the checks of `kgqa doctor` examine in tests."""

from __future__ import annotations

from contextlib import contextmanager

from kgqa.doctor.examination import CHECKS, Check, examine, run_check
from kgqa.doctor.subject import Finding, Health, LimitedStore, Subject
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.model import GraphId
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache

ACCESS = Access(patience=0.0)
NAMES = [name for check in CHECKS for name in check.names]


@contextmanager
def server_subject(url: str, *, view=(), triples: int | None = None, access: Access = ACCESS, given=(), **options):
    """A server of which the store and the number of triples are known."""
    with EndpointStore(url, access=access, **options) as store:
        subject = Subject(resolve(dict(given)), Cache.default(), access=access)
        subject.store, subject.view, subject.bears_load = LimitedStore(store), view, True
        subject.id = GraphId(store.location, tuple(entity.iri for entity in view), "", triples)
        yield subject


def finding_of(name: str, subject: Subject) -> Finding:
    """Run a check and return its finding."""
    check = next(check for check in CHECKS if name in check.names)
    return {finding.name: finding for finding in run_check(check, subject)}[name]


def examined(tmp_path, place: str, **given) -> tuple[Health, dict[str, Finding]]:
    """Make all checks of a graph; return the findings also by name."""
    checks: list[Check] = [check for check in CHECKS if "store" in check.needs or check.names[0] == "reachable"]
    settings = {"graph.path": place, "cache.folder": str(tmp_path / "cache"), **given}
    health = examine(resolve(settings, folder=tmp_path), checks=checks)
    assert health.complete
    return health, {finding.name: finding for finding in health.checks}
