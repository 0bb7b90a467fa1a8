"""Where requests go, and with what: no redirects, logins that were asked for, proxies, certificates."""

from __future__ import annotations

import subprocess
import time

import pytest

from kgqa.errors import StoreUnavailable
from kgqa.model import Entity
from kgqa.testing.sparql_faults import moved, trickling, zipped
from kgqa.testing.sparql_server import SparqlReply, table
from tests.graph import scripted
from tests.graph.scripted import asked, took

serve, to = scripted.serve, scripted.to
TABLE = table(["x"], [[Entity("http://e/1")]])


def test_credentials_go_nowhere_else(serve, to):
    elsewhere = serve(TABLE)
    server = serve(lambda request: moved(elsewhere.url, 307), server="x")
    for status in (301, 302, 303, 307, 308):
        server.enqueue(moved(elsewhere.url, status))
        assert asked(to(server, user="u", password="geheim"))[0] == status
    assert elsewhere.requests == []


BASIC, DIGEST = 'Basic realm="r"', 'Digest realm="r", nonce="n{}", qop="auth"'


@pytest.mark.parametrize("challenge", [BASIC, DIGEST.format(1)])
def test_a_login_is_sent_when_it_is_asked_for_and_then_at_once(serve, to, challenge):
    def script(request):
        if "authorization" in request.headers:
            return TABLE
        return SparqlReply(401, b"", "text/plain", headers=(("WWW-Authenticate", challenge),))

    server = serve(script)
    transport = to(server, user="u", password="geheim")
    assert [asked(transport)[0] for _ in range(3)] == [200, 200, 200]
    assert ["authorization" in request.headers for request in server.requests] == [False, True, True, True]
    assert all("geheim" not in str(request) for request in server.requests)


def test_a_challenge_that_grew_old_is_answered_anew(serve, to):
    nonce = 1

    def script(request):
        if f'nonce="n{nonce}"' in request.headers.get("authorization", ""):
            return TABLE
        return SparqlReply(401, b"", "text/plain", headers=(("WWW-Authenticate", DIGEST.format(nonce)),))

    server = serve(script)
    transport = to(server, user="u", password="geheim")
    assert asked(transport)[0] == 200
    nonce = 2
    assert asked(transport)[0] == 200 and len(server.requests) == 4


@pytest.mark.parametrize("access", [{"user": "u", "password": "wrong"}, {}])
def test_a_login_that_is_refused_is_not_tried_for_ever(serve, to, access):
    server = serve(SparqlReply(401, b"", "text/plain", headers=(("WWW-Authenticate", BASIC),)))
    assert asked(to(server, **access))[0] == 401
    assert len(server.requests) == (2 if access else 1)


def test_a_proxy_is_gone_through_for_other_machines_and_packing_is_asked_for(serve, to, monkeypatch):
    proxy = serve(zipped(TABLE.body))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    assert asked(to("http://graph.example/sparql")) == (200, TABLE.body)
    assert proxy.requests[0].path.startswith("http://graph.example/sparql?query=")
    assert proxy.requests[0].headers["accept-encoding"] == "gzip"
    server = serve(TABLE)
    assert asked(to(server)) == (200, TABLE.body)
    assert (
        "accept-encoding" not in server.requests[0].headers
        or server.requests[0].headers["accept-encoding"] == "identity"
    )
    proxy.close()
    with pytest.raises(StoreUnavailable, match="proxy"):
        asked(to("http://graph.example/sparql", patience=0.3))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that nobody knows, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


def test_a_certificate_that_nobody_knows_is_an_error_that_says_what_to_do(serve, to, certificate):
    server = serve(TABLE, certificate=certificate)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="certificate.*SSL_CERT_FILE"):
        asked(to(server, user="u", password="geheim"))
    assert time.monotonic() - started < 1 and server.requests == []


def test_a_certificate_of_ones_own_is_accepted_when_it_is_named(serve, to, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    server = serve(TABLE, certificate=certificate)
    transport = to(server)
    assert [asked(transport) for _ in range(5)] == [(200, TABLE.body)] * 5 and server.connections == 1
    server.enqueue(trickling(TABLE.body, seconds=0.1))
    assert 0.4 < took(asked, transport, seconds=0.5) < 1.5  # ended by cutting a TLS connection
    assert asked(transport) == (200, TABLE.body)


def test_tls_to_a_server_without_is_an_error(serve, to):
    server = serve(TABLE)
    with pytest.raises(StoreUnavailable, match="No secure connection"):
        asked(to(server.url.replace("http:", "https:"), patience=0.3))


@pytest.mark.parametrize("host", ["no-such-host.invalid", "..", "a" * 300, "[::1", "xn--"])
def test_a_host_that_is_none_is_an_error(to, host):
    with pytest.raises((StoreUnavailable, ValueError)):
        asked(to(f"http://{host}/sparql", patience=0.3))
