"""Who may change a graph, on servers that refuse an update in the ways there are, and on those that cannot be asked."""

from __future__ import annotations

import base64

import pytest

from kgqa.doctor.limit_checks import check_update_rights
from kgqa.doctor.probe_stores import ProbeEndpoint
from kgqa.graph.endpoint.requests.access import Access
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, truth


def update_rights(script, **login):
    """The check of rights, on a server with this script."""
    with SparqlServer(script) as server, ProbeEndpoint(server.url, access=Access(patience=0.0, **login)) as store:
        return check_update_rights(store, ())


def wants_login(pair: bytes, *, scheme: str = 'Basic realm="x"'):
    """A script: updates are for this user and password, queries for everybody."""
    wanted = "Basic " + base64.b64encode(pair).decode()

    def reply(request):
        if not request.update:
            return truth(True)
        if request.headers.get("authorization") == wanted:
            return SparqlReply(200)
        return SparqlReply(401, headers=(("WWW-Authenticate", scheme),))

    return reply


@pytest.mark.parametrize(
    "sent, verdict",
    [
        (SparqlReply(401), "ok"),
        (SparqlReply(403), "ok"),
        (SparqlReply(400, b"No such thing.", "text/plain"), "ok"),
        (SparqlReply(500, b"SR186: No permission to execute SPARQL UPDATE", "text/plain"), "ok"),
        (SparqlReply(503), "skipped"),
        (SparqlReply(404), "skipped"),
        (SparqlReply(0), "skipped"),
    ],
)
def test_only_a_refusal_is_one(sent, verdict):
    check = update_rights(lambda request: sent if request.update else truth(True))
    assert check.verdict == verdict
    assert check.found.startswith("An update could not be tried: ") == (verdict == "skipped")


def test_the_login_is_tried():
    check = update_rights(wants_login(b"me:secret"), user="me", password="secret")
    assert check.verdict == "ok" and "Updates with the login of me (endpoint.user) are accepted." in check.found


def test_a_login_that_is_refused():
    check = update_rights(wants_login(b"me:other"), user="me", password="secret")
    assert check.verdict == "warning" and "rejects the login of me" in check.found and "secret" not in str(check)
    assert "endpoint.user" in check.remedy and "KGQA_ENDPOINT_PASSWORD" in check.remedy


def test_a_login_that_may_not_write():
    check = update_rights(
        lambda request: SparqlReply(403) if request.update else truth(True), user="me", password="secret"
    )
    assert check.verdict == "ok" and "are rejected: " in check.found


def test_a_login_that_cannot_be_tried():
    check = update_rights(wants_login(b"", scheme="Negotiate"), user="me", password="secret")
    assert check.verdict == "warning" and "could not be tried" in check.found
