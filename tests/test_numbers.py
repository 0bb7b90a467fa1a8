"""Numbers that are too large, or no numbers, are wrong usage: one line, whatever option or setting they are given to."""

from __future__ import annotations

import click
import pytest

from kgqa.cli.main import cli
from kgqa.errors import SettingsError
from kgqa.evaluation.runs.plan import parse_shard
from kgqa.settings.setting import check, value_of_text, variable_of
from kgqa.settings.table import own_settings
from kgqa.settings.values import resolve

HUGE = "9" * 400
TOO_LONG = "9" * 5_000
"""More digits than Python converts to an integer."""


def numeric_options(command: click.Command = cli, path: str = "kgqa"):
    """Yield the numeric options of a command and of its subcommands, with their names, but not those of settings."""
    numeric = (click.types.IntParamType, click.types.FloatParamType)
    for parameter in command.params:
        if isinstance(parameter.type, numeric) and not parameter.count and "__" not in (parameter.name or ""):
            yield f"{path} {parameter.opts[0]}", parameter
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from numeric_options(command.get_command(context, name), f"{path} {name}")


OPTIONS = dict(numeric_options())


@pytest.mark.parametrize("name", OPTIONS)
def test_option(name):
    option = OPTIONS[name]
    for text in (HUGE, f"-{HUGE}", TOO_LONG, "nan", "inf"):
        with pytest.raises(click.BadParameter):
            option.type.convert(text, option, None)


NUMERIC = [each for each in own_settings().values() if each.kind in (int, float) and not each.variant]


@pytest.mark.parametrize("setting", NUMERIC, ids=lambda each: each.key)
def test_setting(setting, tmp_path, monkeypatch):
    for value in (int(HUGE), -int(HUGE), float("nan"), float("inf")):
        with pytest.raises(SettingsError) as error:
            check(setting, value, "x")
        assert len(error.value.message) < 200
    for text in (HUGE, f"-{HUGE}", TOO_LONG, "nan"):
        with pytest.raises(SettingsError):
            check(setting, value_of_text(setting, text, "x"), "x")
    section, _, name = setting.key.partition(".")
    for text in (HUGE, TOO_LONG):
        (tmp_path / "kgqa.toml").write_text(f"[{section}]\n{name} = {text}\n")
        with pytest.raises(SettingsError):
            resolve({}, folder=tmp_path)
    (tmp_path / "kgqa.toml").unlink()
    monkeypatch.setenv(variable_of(setting.key), HUGE)
    with pytest.raises(SettingsError):
        resolve({}, folder=tmp_path)


@pytest.mark.parametrize(
    "text", ["5/4", "0/4", "4", "1/0", f"1/{HUGE}", f"{HUGE}/{HUGE}", f"{TOO_LONG}/{TOO_LONG}", "²/4"]
)
def test_shard(text):
    with pytest.raises(SettingsError) as error:
        parse_shard(text)
    assert len(error.value.message) < 100


def test_shard_on_the_command_line(kgqa):
    done = kgqa("eval", "run", "--shard", "5/4", "--dataset", "demo", "--method", "top", "--out", "out")
    assert done.returncode == 2 and "5/4 is not a shard" in done.err and done.err.count("\n") == 1, done.err
