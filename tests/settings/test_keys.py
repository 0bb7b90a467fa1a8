"""Kept keys: who can read them, and to which server they are sent."""

from __future__ import annotations

import base64
import json
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from kgqa.errors import KgqaError, SettingsError
from kgqa.graph.opening import open_graph_of
from kgqa.llm.models import open_model
from kgqa.rank.embedding.remote import RemoteEncoder
from kgqa.settings.keys import find_key, key_file, read_keys, remove_key, server_address, set_key
from kgqa.settings.values import resolve
from kgqa.testing.loopback import LoopbackServer, Response

SECRET = "sk-very-secret"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def servers():
    with closing(Recorder()) as one, closing(Recorder()) as other:
        yield one, other


class Recorder(LoopbackServer):
    """Lists a model, refuses everything else, asks for a login, and records the keys it gets."""

    def __init__(self) -> None:
        self.got: list[str] = []
        super().__init__(self._answer)
        self.url, self.endpoint = (f"http://127.0.0.1:{self.port}/{path}" for path in ("v1", "sparql"))

    def _answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        self.got.append(headers.get("authorization", ""))
        if path.endswith("/models"):
            return Response(200, json.dumps({"data": [{"id": "m", "object": "model"}]}).encode(), "application/json")
        return Response(401, b"", "text/plain", headers=(("WWW-Authenticate", 'Basic realm="x"'),))


def test_only_the_user_can_read_the_file(tmp_path):
    folder = key_file().parent
    folder.mkdir(parents=True, mode=0o755)
    set_key("openai", f" {SECRET}\n")
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert find_key("OPENAI_API_KEY", "openai") == find_key("OPENAI_API_KEY", "https://API.openai.com:443/") == SECRET
    assert remove_key("openai") == "https://api.openai.com/v1" and read_keys() == {}


@pytest.mark.parametrize("mode, folder_mode, message", [(0o640, 0o700, "can read"), (0o600, 0o770, "can replace")])
def test_a_file_that_others_can_read_or_replace_is_not_used(mode, folder_mode, message):
    set_key("openai", SECRET)
    key_file().chmod(mode)
    key_file().parent.chmod(folder_mode)
    with pytest.raises(SettingsError, match=message) as raised:
        find_key("OPENAI_API_KEY", "openai")
    assert "chmod" in str(raised.value) and SECRET not in str(raised.value)


@pytest.mark.parametrize("text", [b"\xff", b'{"https://api.openai.com/v1": "sk-very-secret"', b'{"a": 3}'])
def test_a_damaged_file_is_an_error_that_does_not_quote_it(text):
    set_key("openai", SECRET)
    key_file().write_bytes(text)
    with pytest.raises(SettingsError, match="cannot be read") as raised:
        set_key("openai", SECRET)
    assert SECRET not in str(raised.value) and key_file().read_bytes() == text


def test_a_key_with_control_characters_is_refused_and_not_shown():
    for key in ("", " \n", f"{SECRET}\x1b[0m", "x" * 5000):
        with pytest.raises(SettingsError) as raised:
            set_key("openai", key)
        assert SECRET not in str(raised.value) and not key_file().exists()


def test_keys_set_at_the_same_time_are_all_kept():
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: set_key(f"http://host{number}/v1", f"key{number}"), range(16)))
    assert read_keys() == {f"http://host{number}/v1": f"key{number}" for number in range(16)}


def test_one_server_has_one_address():
    same = ("http://Host:80", "http://host/v1/", "http://host/v1#m/x", "http://host/v1/chat/completions")
    assert {server_address(each) for each in same} == {"http://host/v1"}
    assert server_address("https://[::1]:443/a") == "https://[::1]/a"
    other = ("http://host:8000", "https://host", "http://host.evil.org", "http://host/v2")
    assert len({"http://host/v1", *map(server_address, other)}) == 5


def test_a_key_is_sent_to_its_server_only(servers, monkeypatch):
    mine, other = servers
    set_key(mine.url, SECRET)
    for server in servers:
        open_model(server.url, resolve()).close()
        with pytest.raises(KgqaError) as raised:
            RemoteEncoder(server.url, "m").encode(["x"])
        assert SECRET not in str(raised.value)
    assert mine.got == [f"Bearer {SECRET}"] * 2 and other.got == ["Bearer none"] * 2
    monkeypatch.setenv("KGQA_LLM_KEY", "of-the-environment")
    open_model(mine.url, resolve()).close()
    assert mine.got[-1] == "Bearer of-the-environment"


def test_a_file_in_the_working_folder_cannot_have_a_kept_key_sent(servers, tmp_path):
    for other in servers:
        set_key(other.url, SECRET)
        set_key(other.endpoint, SECRET)
    for section in ("[llm]\nmodel", "[rank]\nmodel_url", "[llm.stages.judge]\nmodel"):
        text = f'{section} = "{other.url}"'
        (tmp_path / "kgqa.toml").write_text(text)
        with pytest.raises(SettingsError, match="cannot be set by a kgqa.toml in the working folder"):
            resolve()
    (tmp_path / "kgqa.toml").write_text(f'[graph]\npath = "{other.endpoint}"')
    with pytest.raises(SettingsError, match="Your login is not sent"):
        open_graph_of(resolve({"endpoint.user": "me"}))
    with pytest.raises(KgqaError):
        open_graph_of(resolve())
    assert not any(other.got)


def test_the_login_of_an_endpoint_takes_the_password_of_its_address(servers):
    mine, other = servers
    set_key(mine.endpoint, "pass word")
    for server in servers:
        with pytest.raises(KgqaError) as raised:
            open_graph_of(resolve({"graph.path": server.endpoint, "endpoint.user": "me"}))
        assert "pass word" not in str(raised.value)
    sent = [base64.b64decode(each.removeprefix("Basic ")) for each in (*mine.got, *other.got) if each]
    assert b"me:pass word" in sent and not any(b"pass word" in base64.b64decode(each[6:]) for each in other.got)
