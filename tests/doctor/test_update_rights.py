"""The check of update rights on servers that refuse updates in different ways."""

from __future__ import annotations

import base64

import pytest

from kgqa.doctor.server_checks import check_update_rights
from kgqa.graph.endpoint.access import Access
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, truth
from tests.doctor.subjects import limited, subject_of


def update_rights(script, **login):
    """Run the check of update rights on a server with this script."""
    with SparqlServer(script) as server, limited(server.url, Access(patience=0.0, **login)) as store:
        return check_update_rights(subject_of(store))


def login_script(pair: bytes, *, scheme: str = 'Basic realm="x"'):
    """Return a script that accepts updates with this user and password, and queries from anybody."""
    wanted = "Basic " + base64.b64encode(pair).decode()

    def respond(request):
        if not request.update:
            return truth(True)
        if request.headers.get("authorization") == wanted:
            return SparqlReply(200)
        return SparqlReply(401, headers=(("WWW-Authenticate", scheme),))

    return respond


@pytest.mark.parametrize(
    "reply, verdict",
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
def test_refused_and_failed_updates(reply, verdict):
    check = update_rights(lambda request: reply if request.update else truth(True))
    assert check.verdict == verdict
    assert check.found.startswith("An update could not be tried: ") == (verdict == "skipped")


def test_login_is_tried():
    check = update_rights(login_script(b"me:secret"), user="me", password="secret")
    assert check.verdict == "ok" and "Updates with the login of me (endpoint.user) are accepted." in check.found


def test_refused_login():
    check = update_rights(login_script(b"me:other"), user="me", password="secret")
    assert check.verdict == "warning" and "rejects the login of me" in check.found and "secret" not in str(check)
    assert "endpoint.user" in check.remedy and "KGQA_ENDPOINT_PASSWORD" in check.remedy


def test_login_without_update_rights():
    check = update_rights(
        lambda request: SparqlReply(403) if request.update else truth(True), user="me", password="secret"
    )
    assert check.verdict == "ok" and "are rejected: " in check.found


def test_unsupported_login():
    check = update_rights(login_script(b"", scheme="Negotiate"), user="me", password="secret")
    assert check.verdict == "warning" and "could not be tried" in check.found
