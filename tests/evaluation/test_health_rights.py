"""Who may change a graph, on servers that refuse an update in the ways there are, and on those that cannot be asked."""

from __future__ import annotations

import base64

import pytest

from kgqa.doctor.limits import check_update_rights
from kgqa.doctor.store import HurriedEndpoint
from kgqa.graph.endpoint.requests.access import Access
from kgqa.testing.sparql_server import Sent, SparqlServer, truth


def update_rights(script, **login):
    """The check of rights, on a server with this script."""
    with SparqlServer(script) as server, HurriedEndpoint(server.url, access=Access(patience=0.0, **login)) as store:
        return check_update_rights(store, ())


def wants_login(pair: bytes, *, scheme: str = 'Basic realm="x"'):
    """A script: updates are for this user and password, queries for everybody."""
    wanted = "Basic " + base64.b64encode(pair).decode()

    def reply(request):
        if not request.update:
            return truth(True)
        if request.headers.get("authorization") == wanted:
            return Sent(200)
        return Sent(401, headers=(("WWW-Authenticate", scheme),))

    return reply


@pytest.mark.parametrize(
    "sent, verdict",
    [
        (Sent(401), "ok"),
        (Sent(403), "ok"),
        (Sent(400, b"No such thing.", "text/plain"), "ok"),
        (Sent(500, b"SR186: No permission to execute SPARQL UPDATE", "text/plain"), "ok"),
        (Sent(503), "skipped"),
        (Sent(404), "skipped"),
        (Sent(0), "skipped"),
    ],
)
def test_only_a_refusal_is_one(sent, verdict):
    check = update_rights(lambda request: sent if request.update else truth(True))
    assert check.verdict == verdict
    assert check.found.startswith("An update could not be tried: ") == (verdict == "skipped")


def test_the_login_is_tried():
    check = update_rights(wants_login(b"me:secret"), user="me", password="secret")
    assert check.verdict == "ok" and "With the login of me (endpoint.user) updates are taken." in check.found


def test_a_login_that_is_refused():
    check = update_rights(wants_login(b"me:other"), user="me", password="secret")
    assert check.verdict == "warning" and "refuses the login of me" in check.found and "secret" not in str(check)
    assert "endpoint.user" in check.remedy and "KGQA_ENDPOINT_PASSWORD" in check.remedy


def test_a_login_that_may_not_write():
    check = update_rights(lambda request: Sent(403) if request.update else truth(True), user="me", password="secret")
    assert check.verdict == "ok" and "updates are refused: " in check.found


def test_a_login_that_cannot_be_tried():
    check = update_rights(wants_login(b"", scheme="Negotiate"), user="me", password="secret")
    assert check.verdict == "warning" and "could not be tried" in check.found
