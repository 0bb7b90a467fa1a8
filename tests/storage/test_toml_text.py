"""TOML files of other people: memory limits, and results equal to tomllib."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.storage.toml_text import MAX_KEY_PARTS, parse_toml
from tests.hostile_files import hostile, run_limited

DEEP = ".".join("a" * 5000)
HIDDEN = f'x = {{y = """a"""", {DEEP} = "b"}}'


@pytest.mark.parametrize(
    "text",
    [
        f"{DEEP} = 1",
        f"[{DEEP}]",
        f"[[{DEEP}]]",
        f"x = {{{DEEP} = 1}}",
        HIDDEN,
        '"a".' * 5000 + "b = 1",
        "a . " * 5000 + "b = 1",
    ],
)
def test_keys_with_too_many_parts_are_refused(text):
    with pytest.raises(ValueError, match=f"more than {MAX_KEY_PARTS} parts"):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 50_000,
        "x = " + "{a=" * 50_000,
        "x = " + "1" * 20_000,
        '"""\\' * 50_000,
        "'''" * 80_001,
        "x" * 300_000,
    ],
)
def test_oversized_values_are_refused(text):
    with pytest.raises(ValueError):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [f'x = "{DEEP}"', f"x = '''\n{DEEP}'''", f"# {DEEP}\nx = 1.5", 'x = """a""""', "a.b.c = 1\n[d.e]\nf = 2020-01-01"],
)
def test_ordinary_files_are_read(text):
    assert parse_toml(text) == tomllib.loads(text)


@given(st.text("ab.\"'\\#=[]{}\n 1", max_size=60))
def test_results_equal_tomllib(text):
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            parse_toml(text)
    else:
        assert parse_toml(text) == expected


@pytest.mark.parametrize(
    "text", [".".join("a" * 50_000) + " = 1", "x = " + "[" * 90_000, "\0", "[graph]\npath = 1e308", "graph = 1"]
)
def test_command_in_a_folder_with_a_hostile_file(tmp_path, monkeypatch, text):
    (tmp_path / "kgqa.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = run_limited("config", "show", memory=1 << 30)
    assert done.code == 2 and "kgqa.toml" in done.text and "internal error" not in done.text


@given(
    hostile(
        {
            "graph": {"timeout": 60.0, "iri": "http://e/"},
            "ask": {"method": "top"},
            "llm": {"stages": {"x": {"model": "m"}}},
        }
    )
)
def test_random_settings_raise_only_settings_errors(tmp_path_factory, damaged):
    """Values that TOML cannot hold are left out."""
    from kgqa.errors import SettingsError
    from kgqa.settings.values import resolve

    folder = tmp_path_factory.mktemp("settings")
    try:
        text = "".join(
            f"[{section}]\n" + "".join(f"{k} = {_toml(v)}\n" for k, v in table.items())
            for section, table in damaged.items()
        )
    except (AttributeError, TypeError):
        return
    (folder / "kgqa.toml").write_text(text, encoding="utf-8", errors="backslashreplace")
    try:
        resolve(environment={}, folder=folder, user_file=folder / "none.toml")
    except SettingsError:
        pass


def _toml(value: object) -> str:
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, default=lambda _: "[" * 50_000)
