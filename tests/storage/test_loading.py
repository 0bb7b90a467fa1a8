"""The border: JSON and TOML of other people are read into typed classes, or one line says what is wrong."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Literal

import msgspec
import pytest
from hypothesis import given

from kgqa.errors import SettingsError
from kgqa.storage.loading import MAX_DEPTH, MAX_KEY_PARTS, Count, Share, convert, load, parse_json, parse_toml
from tests.hostile_files import hostile, run_limited

DEEP = ".".join("a" * 5000)


class Circle(msgspec.Struct, frozen=True, tag_field="kind", tag="circle"):
    radius: Count


class Label(msgspec.Struct, frozen=True, tag_field="kind", tag="label"):
    text: str = ""


@dataclass(frozen=True)
class Drawing:
    shapes: tuple[Circle | Label, ...] = ()
    weight: Share | None = None
    mode: Literal["fast", "slow"] = "fast"


def test_json_and_toml_are_read_into_classes(tmp_path):
    drawing = Drawing((Circle(2), Label("ä")), 0.5, "slow")
    (tmp_path / "a.json").write_text(json.dumps(msgspec.to_builtins(drawing)), encoding="utf-8")
    (tmp_path / "a.toml").write_text(
        'weight = 0.5\nmode = "slow"\n[[shapes]]\nkind = "circle"\nradius = 2\n[[shapes]]\nkind = "label"\ntext = "ä"',
        encoding="utf-8-sig",
    )
    for name in ("a.json", "a.toml"):
        assert load(tmp_path / name, Drawing, error=SettingsError) == drawing
    assert parse_json('{"\\ud800": [1e400]}') == {"\ud800": [float("inf")]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"shapes": 1}, "shapes: Expected `array`"),
        ({"shapes": [{"kind": "square"}]}, r"shapes\[0\].kind: Invalid value 'square'"),
        ({"shapes": [{"radius": 1}]}, "missing required field `kind`"),
        ({"shapes": [{"kind": "circle", "radius": -1}]}, r"shapes\[0\].radius: Expected `int` >= 0"),
        ({"shapes": [{"kind": "circle", "radius": 10**400}]}, "radius"),
        ({"shapes": [{"kind": "circle", "radius": True}]}, "radius: Expected `int`, got `bool`"),
        ({"shapes": [{"kind": "\ud800"}]}, "unpaired surrogate"),
        ({"weight": 1.5}, "weight: Expected `float` <= 1"),
        ({"weight": 10**400}, "weight"),
        ({"weight": float("nan")}, "weight|NaN"),
        ({"mode": "\x1b]0;x" * 1000}, "mode: Invalid enum value .{,280}$"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_field(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        convert(data, Drawing)
    (tmp_path / "drawing.json").write_text(json.dumps(data))
    with pytest.raises(SettingsError, match="drawing.json cannot be read: ") as caught:
        load(tmp_path / "drawing.json", Drawing, error=SettingsError, hint="Draw again.")
    assert caught.value.hint == "Draw again." and str(caught.value).isprintable()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"[" * 200 + b"]" * 200, b"[NaN]", b"-Infinity",
        b"1" * 5000, b'"\\u12"', "{}".encode("utf-16"),
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused(data):
    with pytest.raises(ValueError):
        parse_json(data)


def test_brackets_in_strings_do_not_count():
    text = json.dumps({"a": "[{" * 500 + '"\\', "b": [["]"] * 500]})
    assert parse_json(text) == json.loads(text)
    parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * (MAX_DEPTH + 1) + '"]"' + "]" * (MAX_DEPTH + 1))


def test_files_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b" " * 100)
    for name, message in (
        ("none", "No such file"),
        ("pipe", "ordinary file"),
        ("large", "larger than 99"),
        ("", "file"),
    ):
        with pytest.raises(SettingsError, match=message):
            load(tmp_path / name, Drawing, error=SettingsError, limit=99)


@pytest.mark.parametrize(
    "text",
    [
        f"{DEEP} = 1", f"[{DEEP}]", f"[[{DEEP}]]", f"x = {{{DEEP} = 1}}", f'x = {{y = """a"""", {DEEP} = "b"}}',
        '"a".' * 5000 + "b = 1", "a . " * 5000 + "b = 1",
    ],
)  # fmt: skip
def test_keys_with_too_many_parts_are_refused(text):
    with pytest.raises(ValueError, match=f"more than {MAX_KEY_PARTS} parts"):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 50_000, "x = " + "{a=" * 50_000, "x = " + "1" * 20_000, '"""\\' * 50_000, "'''" * 80_001,
        "x" * 300_000, " " * 1_000_001,
    ],
)  # fmt: skip
def test_oversized_values_are_refused(text):
    with pytest.raises(ValueError):
        parse_toml(text)


@pytest.mark.parametrize(
    "text", [".".join("a" * 50_000) + " = 1", "x = " + "[" * 90_000, "\0", "[graph]\npath = 1e308", "graph = 1"]
)
def test_command_in_a_folder_with_a_hostile_file(tmp_path, monkeypatch, text):
    (tmp_path / "kgqa.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = run_limited("config", "show", memory=1 << 30)
    assert done.code == 2 and "kgqa.toml" in done.text and "internal error" not in done.text


@given(hostile(msgspec.to_builtins(Drawing((Circle(2), Label("a")), 0.5))))
def test_damaged_data_raise_only_value_errors(damaged):
    try:
        convert(damaged, Drawing)
        parse_json(json.dumps(damaged), Drawing)
    except ValueError:
        pass
