"""Access options of requests: redirects, logins, proxies and certificates."""

from __future__ import annotations

import subprocess
import time

import pytest

from kgqa.errors import StoreUnavailable
from kgqa.model import Entity
from kgqa.testing.sparql_faults import moved, trickling, zipped
from kgqa.testing.sparql_server import SparqlReply, table
from tests.graph import scripted_endpoint
from tests.graph.scripted_endpoint import seconds_of, send_query

serve, connect = scripted_endpoint.serve, scripted_endpoint.connect
TABLE = table(["x"], [[Entity("http://e/1")]])


def test_credentials_are_not_sent_elsewhere(serve, connect):
    elsewhere = serve(TABLE)
    server = serve(lambda request: moved(elsewhere.url, 307), server="x")
    for status in (301, 302, 303, 307, 308):
        server.enqueue(moved(elsewhere.url, status))
        assert send_query(connect(server, user="u", password="geheim"))[0] == status
    assert elsewhere.requests == []


BASIC, DIGEST = 'Basic realm="r"', 'Digest realm="r", nonce="n{}", qop="auth"'


@pytest.mark.parametrize("challenge", [BASIC, DIGEST.format(1)])
def test_login_follows_the_first_challenge_and_is_kept(serve, connect, challenge):
    def script(request):
        if "authorization" in request.headers:
            return TABLE
        return SparqlReply(401, b"", "text/plain", headers=(("WWW-Authenticate", challenge),))

    server = serve(script)
    transport = connect(server, user="u", password="geheim")
    assert [send_query(transport)[0] for _ in range(3)] == [200, 200, 200]
    assert ["authorization" in request.headers for request in server.requests] == [False, True, True, True]
    assert all("geheim" not in str(request) for request in server.requests)


def test_stale_challenge_is_answered_again(serve, connect):
    nonce = 1

    def script(request):
        if f'nonce="n{nonce}"' in request.headers.get("authorization", ""):
            return TABLE
        return SparqlReply(401, b"", "text/plain", headers=(("WWW-Authenticate", DIGEST.format(nonce)),))

    server = serve(script)
    transport = connect(server, user="u", password="geheim")
    assert send_query(transport)[0] == 200
    nonce = 2
    assert send_query(transport)[0] == 200 and len(server.requests) == 4


@pytest.mark.parametrize("access", [{"user": "u", "password": "wrong"}, {}])
def test_refused_login_is_not_repeated(serve, connect, access):
    server = serve(SparqlReply(401, b"", "text/plain", headers=(("WWW-Authenticate", BASIC),)))
    assert send_query(connect(server, **access))[0] == 401
    assert len(server.requests) == (2 if access else 1)


def test_proxy_and_compression_are_used_for_remote_hosts(serve, connect, monkeypatch):
    proxy = serve(zipped(TABLE.body))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    assert send_query(connect("http://graph.example/sparql")) == (200, TABLE.body)
    assert proxy.requests[0].path.startswith("http://graph.example/sparql?query=")
    assert proxy.requests[0].headers["accept-encoding"] == "gzip"
    server = serve(TABLE)
    assert send_query(connect(server)) == (200, TABLE.body)
    assert (
        "accept-encoding" not in server.requests[0].headers
        or server.requests[0].headers["accept-encoding"] == "identity"
    )
    proxy.close()
    with pytest.raises(StoreUnavailable, match="proxy"):
        send_query(connect("http://graph.example/sparql", patience=0.3))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return a self-signed certificate for 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


def test_unknown_certificate_is_an_error_with_advice(serve, connect, certificate):
    server = serve(TABLE, certificate=certificate)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="certificate.*SSL_CERT_FILE"):
        send_query(connect(server, user="u", password="geheim"))
    assert time.monotonic() - started < 1 and server.requests == []


def test_configured_certificate_is_accepted(serve, connect, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    server = serve(TABLE, certificate=certificate)
    transport = connect(server)
    assert [send_query(transport) for _ in range(5)] == [(200, TABLE.body)] * 5 and server.connections == 1
    server.enqueue(trickling(TABLE.body, seconds=0.1))
    assert 0.4 < seconds_of(send_query, transport, seconds=0.5) < 1.5  # the TLS connection is cut
    assert send_query(transport) == (200, TABLE.body)


def test_tls_to_a_plain_server_is_an_error(serve, connect):
    server = serve(TABLE)
    with pytest.raises(StoreUnavailable, match="No secure connection"):
        send_query(connect(server.url.replace("http:", "https:"), patience=0.3))


@pytest.mark.parametrize("host", ["no-such-host.invalid", "..", "a" * 300, "[::1", "xn--"])
def test_unknown_host_is_an_error(connect, host):
    with pytest.raises((StoreUnavailable, ValueError)):
        send_query(connect(f"http://{host}/sparql", patience=0.3))
