"""HTTP authentication after RFC 7617 and RFC 7616, without leaking the password."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from kgqa.errors import StoreUnavailable
from kgqa.graph.endpoint.transport import Login
from kgqa.net.client import Request

URL = "http://e/sparql-auth"
PASSWORD = "Circle of Life"


def login(user="Mufasa", password=PASSWORD):
    return Login(URL, user, password)


def header(login, method, target):
    return login.headers(Request(method, f"http://e{target}", {})).get("Authorization")


def fields(header):
    return {
        name: quoted or bare for name, quoted, bare in re.findall(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^",]+))', header)
    }


def test_basic():
    mine = login(password="pä:ss")
    assert mine.accept(['basic realm="SPARQL"'])
    assert header(mine, "GET", "/").decode() == "Basic " + base64.b64encode("Mufasa:pä:ss".encode()).decode()


@pytest.mark.parametrize(
    ("algorithm", "hash_of"), [("MD5", hashlib.md5), ("SHA-256", hashlib.sha256), ("", hashlib.md5)]
)
def test_digest_example_of_rfc_7616(algorithm, hash_of):
    mine = login()
    offered = f'Digest realm="http-auth@example.org", nonce="7ypf/xlj9X", opaque="FQhe/qaU9" {", algorithm=" + algorithm if algorithm else ""}, qop="auth, auth-int"'
    assert mine.accept(["Basic realm=x", offered])
    for count in (1, 2):
        found = fields(header(mine, "GET", "/dir/index.html?query=a").decode())

        def hashed(*parts):
            return hash_of(":".join(parts).encode()).hexdigest()

        who, what = hashed("Mufasa", "http-auth@example.org", PASSWORD), hashed("GET", "/dir/index.html?query=a")
        assert found["nc"] == f"{count:08x}" and found["qop"] == "auth" and found["opaque"] == "FQhe/qaU9"
        assert found["response"] == hashed(who, "7ypf/xlj9X", found["nc"], found["cnonce"], "auth", what)
        assert found["uri"] == "/dir/index.html?query=a" and found["username"] == "Mufasa"
    assert mine.accept([offered.replace("7ypf", "new")])
    assert fields(header(mine, "POST", "/").decode())["nc"] == "00000001"


@pytest.mark.parametrize(
    "challenge",
    [
        "Negotiate",
        'Digest realm="r", nonce="n", algorithm=SHA-512',
        'Digest nonce="n", qop="auth-int"',
    ],
)
def test_unknown_scheme_is_an_error_without_the_password(challenge):
    with pytest.raises(StoreUnavailable, match="Basic, or Digest") as caught:
        login().accept([challenge])
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
