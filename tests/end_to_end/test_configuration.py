"""`kgqa init` and `kgqa keys`."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import subprocess
import time
import tomllib

import pytest

from kgqa.plugins import known_settings
from kgqa.settings.file import commented_file, with_value
from kgqa.settings.values import resolve
from kgqa.testing.loopback import LoopbackServer, Response
from kgqa.testing.server import ScriptedServer
from kgqa.testing.sparql_server import table, truth

from ..cli_runner import KGQA

SECRET = "sk-very-secret"


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """The user's configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path / "config" / "kgqa"


def test_the_default_answers_write_a_file_without_values(kgqa, tmp_path, own):
    done = kgqa("init", input="\n" * 5)
    assert done.returncode == 0 and "9,064 triples" in done.err and not own.exists()
    text = (tmp_path / "kgqa.toml").read_text()
    assert not any(tomllib.loads(text).values()) and "#depth = 2\n" in text and str(own) in text
    assert kgqa("ask", "Who directed the film Parasite?", "--embeddings", "off").returncode == 0


def test_every_commented_line_is_a_setting_with_its_default_or_a_valid_example(tmp_path):
    table = known_settings({})[0]
    for name, kind in (("kgqa.toml", "folder"), ("own.toml", "user")):
        text = commented_file({}, kind, heading="x")
        (tmp_path / name).write_text(re.sub(r"(?m)^#(?=\w+ = )", "", text))
    found = resolve(folder=tmp_path, user_file=tmp_path / "own.toml", environment={})
    explained = [key for key, setting in table.items() if setting.explained]
    assert len(explained) > 25
    for key in explained:
        assert found.values[key] == table[key].default or table[key].default is None, key
        assert found.origins[key].endswith(".toml"), key


def test_each_wrong_answer_is_said_at_once_and_asked_again(kgqa, tmp_path, own):
    with ScriptedServer(key=SECRET) as server:
        answers = [
            "nowhere/",
            "",
            "gpt",
            "http://127.0.0.1:9/v1",
            server.url,
            "wrong",
            server.url,
            SECRET,
            "tup",
            "rag",
            "top economy",
            "5",
            "0.5 calls",
            "20 calls, 60 s",
            "/proc/x",
            "caches",
        ]
        done = kgqa("init", input="\n".join(answers) + "\n", timeout=30)
    assert done.returncode == 0, done.err
    for message in (
        "no graph at nowhere",
        "not a language model",
        "Did you mean top?",
        "needs a corpus",
        "units",
        "whole",
    ):
        assert message in done.err, message
    assert SECRET not in done.err + done.out
    found = tomllib.loads((tmp_path / "kgqa.toml").read_text())
    assert found["ask"] == {"method": "top", "preset": "economy"} and found["budget"] == {"seconds": 60.0, "calls": 20}
    assert found["graph"] == {} and "llm" not in found
    mine = tomllib.loads((own / "kgqa.toml").read_text())
    assert mine["llm"] == {"model": server.url} and mine["cache"] == {"folder": str(tmp_path / "caches")}
    assert json.loads((own / "keys.json").read_text()) == {server.url: SECRET}


def test_the_login_of_an_endpoint_is_asked_for_and_kept_with_its_address(kgqa, tmp_path, own):
    login = "Basic " + base64.b64encode(b"me:pass word").decode()

    def answer(method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        if headers.get("authorization") != login:
            return Response(401, b"", "text/plain", headers=(("WWW-Authenticate", 'Basic realm="x"'),))
        return truth(False) if "ASK" in path or b"ASK" in content else table(["n"], [])

    with LoopbackServer(answer) as server:
        url = f"http://127.0.0.1:{server.port}/sparql"
        done = kgqa("init", input=f"{url}\nme\nwrong\n{url}\nme\npass word\n" + "\n" * 4, timeout=30)
        assert done.returncode == 0 and "pass word" not in done.err, done.err
        assert tomllib.loads((own / "kgqa.toml").read_text())["graph"] == {"path": url}
        assert "path" not in tomllib.loads((tmp_path / "kgqa.toml").read_text())["graph"]
        assert json.loads((own / "keys.json").read_text()) == {url: "pass word"}
        assert kgqa("graph", "info").returncode == 0


def test_a_kept_key_is_in_no_output_and_no_file_of_a_run(kgqa, tmp_path, own):
    others = ("--embeddings", "off", "--max-calls", "3")
    with ScriptedServer(lambda messages: "A", key=SECRET) as server:
        model = ("--llm", f"{server.url}#m", *others)
        for key in ("sk-another-secret", SECRET):
            kgqa("keys", "set", server.url, input=key)
            done = [kgqa("-v", "ask", "Who directed the film Parasite?", "--trace", "--json", *model)]
            if key == SECRET:
                done.append(kgqa("eval", "run", "--dataset", "demo", "--sample", "1", *model, "--out", "run"))
            assert not any(key in each.out + each.err for each in done)
            assert ("refused" in done[0].out or "Incorrect" in done[0].out) == (key != SECRET)
        assert server.calls > 1
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file != own / "keys.json"]
    assert len(files) > 2 and not any(SECRET.encode() in file.read_bytes() for file in files)


def test_a_script_gives_options_and_nothing_is_replaced_without_asking(kgqa, tmp_path, own):
    (tmp_path / "kgqa.toml").write_text("[explore]\nbeam = 3\n")
    options = ("init", "--yes", "--no-check", "--graph", "mygraph/", "--llm", "openai:gpt-x", "--max-cost", "0.5")
    assert kgqa(*options).returncode == 2 and "beam" in (tmp_path / "kgqa.toml").read_text()
    assert kgqa("init", input="n\n").returncode == 1 and "beam" in (tmp_path / "kgqa.toml").read_text()
    own.mkdir(parents=True)
    (own / "kgqa.toml").write_text("# mine\n[llm]\nmodel = 'openai:old' # best\n\n[rank]\nprefilter = 'bm25'\n")
    (tmp_path / "kgqa.toml").unlink()
    refused = kgqa(*options)
    assert refused.returncode == 2 and "openai:old" in refused.err and not (tmp_path / "kgqa.toml").exists()
    assert kgqa(*options, "--replace").returncode == 0
    assert tomllib.loads((tmp_path / "kgqa.toml").read_text())["graph"] == {"path": "mygraph/"}
    assert (own / "kgqa.toml").read_text() == (
        "# mine\n[llm]\nmodel = \"openai:gpt-x\"\n\n[rank]\nprefilter = 'bm25'\n"
    )


def test_what_the_own_file_says_is_the_default_answer(kgqa, tmp_path, own):
    own.mkdir(parents=True)
    with ScriptedServer(key=SECRET) as server:
        text = f"[llm]\nmodel = '{server.url}'\n[explore]\nbeam = 3\n"
        (own / "kgqa.toml").write_text(text)
        done = kgqa("init", input=f"\n\n{SECRET}\n\n\n\n")
    assert done.returncode == 0 and f"[{server.url}]" in done.err, done.err
    assert (own / "kgqa.toml").read_text() == text and json.loads((own / "keys.json").read_text()) == {
        server.url: SECRET
    }


def test_an_answer_that_is_the_default_counts_more_than_the_own_file(kgqa, tmp_path, own):
    own.mkdir(parents=True)
    (own / "kgqa.toml").write_text("[budget]\nseconds = 5.0\n[ask]\nmethod = 'top-2'\n")
    assert kgqa("init", "--yes", "--no-check", "--max-seconds", "300", "--method", "top").returncode == 0
    found = resolve(folder=tmp_path, user_file=own / "kgqa.toml", environment={})
    assert (found.budget.seconds, found.ask.method) == (300.0, "top")


def test_without_a_terminal_the_options_are_named(kgqa, tmp_path, own):
    for text in ("", "[explore]\nbeam = 3\n"):
        if text:
            (tmp_path / "kgqa.toml").write_text(text)
        done = kgqa("init", input="")
        assert done.returncode == 2 and "add --yes, and --replace to replace kgqa.toml" in done.err
    assert (tmp_path / "kgqa.toml").read_text() == text


def test_a_script_is_told_what_is_wrong(kgqa, tmp_path):
    for options, message in (
        (("--graph", "nowhere/"), "no graph at nowhere"),
        (("--llm", "openai:gpt-x"), "kgqa keys set openai"),
        (("--method", "rag"), "needs a language model"),
        (("--max-calls", "-1"), "at least 0"),
        (("--no-check", "--method", "tup"), "Did you mean top?"),
        (("--no-check", "--graph", "a\udcffb"), "has bytes that a settings file cannot hold"),
    ):
        done = kgqa("init", "--yes", *options)
        assert done.returncode in (1, 2) and message in done.err, done.err
        assert not (tmp_path / "kgqa.toml").exists()


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", "[llm]\nmodel = \"m\"\n"),
        ("[llm]\n#model = \"x\"\nseed = 1\n[rank]\n", "[llm]\nmodel = \"m\"\nseed = 1\n[rank]\n"),
        ("[rank]\nmodel = \"r\"\n[llm]\n", "[rank]\nmodel = \"r\"\n[llm]\nmodel = \"m\"\n"),
        ("llm.model = \"x\"\n", None),
        ("[llm]\nmodel = \"\"\"x\ny\"\"\"\n", None),
        ("[llm.stages]\nmodel = {}\n", "[llm.stages]\nmodel = {}\n\n[llm]\nmodel = \"m\"\n"),
    ],
)  # fmt: skip
def test_one_value_of_a_file_is_changed_or_nothing(text, changed):
    assert with_value(text, "llm.model", "m") == changed


def test_keys_are_set_listed_and_removed_without_being_shown(kgqa, own):
    done = [
        kgqa("keys", "set", "openai", input=f"{SECRET}\n", OPENAI_API_KEY="x"),
        kgqa("keys", "set", "http://LOCALHOST:8000", input=SECRET),
        kgqa("keys", "list", "--json"),
        kgqa("keys", "remove", "openai"),
        kgqa("keys", "list"),
    ]
    assert [each.returncode for each in done] == [0] * 5 and "takes precedence" in done[0].err
    assert json.loads(done[2].out) == ["http://localhost:8000/v1", "https://api.openai.com/v1"]
    assert done[4].out == "http://localhost:8000/v1\n" and kgqa("keys", "path").out == f"{own / 'keys.json'}\n"
    assert not any(SECRET in each.out + each.err for each in done)
    for arguments in (("openai", SECRET), (SECRET,)):
        refused = kgqa("keys", "set", *arguments)
        assert refused.returncode == 2 and SECRET not in refused.err


def test_a_name_of_a_server_is_that_of_the_users_own_settings(kgqa, tmp_path, own):
    own.mkdir(parents=True)
    (own / "kgqa.toml").write_text('[llm]\nmodel = "http://localhost:8000/v1#m"\n')
    assert "http://localhost:8000/v1" in kgqa("keys", "set", "llm", input=SECRET).err
    (tmp_path / "kgqa.toml").write_text('[graph]\npath = "http://evil.example/sparql"\n')
    refused = kgqa("keys", "set", "graph", input=SECRET)
    assert refused.returncode == 2 and "working folder" in refused.err


@pytest.mark.cli
def test_a_typed_key_is_not_shown(own):
    ours, theirs = pty.openpty()
    with subprocess.Popen([KGQA, "keys", "set", "openai"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as running:  # fmt: skip
        shown = b""
        while b"Key of" not in shown:
            shown += os.read(ours, 1000)
        time.sleep(0.1)
        os.write(ours, f"{SECRET}\n".encode())
        assert running.wait(20) == 0
        shown += os.read(ours, 1000)
    os.close(ours)
    os.close(theirs)
    assert SECRET.encode() not in shown and SECRET in (own / "keys.json").read_text()
