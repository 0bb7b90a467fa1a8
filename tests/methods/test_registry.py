"""The registry of methods: built-in ones and those of other packages."""

from __future__ import annotations

import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest

from kgqa import ask, open_resources
from kgqa.errors import SettingsError
from kgqa.methods.registry import Method, method, method_names
from kgqa.methods.top import answer
from kgqa.settings import resolve
from kgqa.settings_presets import PRESETS

BUILT_IN = ["top", "top-1", "top-2", "tog", "io", "cot"]
MODULE = """
from kgqa.methods.registry import Method
from kgqa.model import Answer

def plain(question, *, resources, trace, topics, names):
    return Answer(question, "no_answer", method="plain")

whole = Method(plain, topics=False, model=True)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package of another project, with entry points and modules."""
    method.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(points: str, **modules: str) -> None:
        folder = Path(tmp_path / "theirs-1.0.dist-info")
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[kgqa.methods]\n{points}\n")
        for name, source in modules.items():
            (tmp_path / f"{name}.py").write_text(source)
        invalidate_caches()

    yield install
    method.cache_clear()
    for name in [name for name in sys.modules if name.startswith("theirs")]:
        del sys.modules[name]


def test_built_in_methods():
    assert method_names() == BUILT_IN
    assert method("top") == Method(answer, topics=True, model=False)
    needs = {name: (method(name).topics, method(name).model) for name in BUILT_IN}
    assert needs == {
        **dict.fromkeys(BUILT_IN[:3], (True, False)),
        "tog": (True, True),
        "io": (False, True),
        "cot": (False, True),
    }


def test_every_preset_belongs_to_a_method():
    assert set(PRESETS) <= set(BUILT_IN)


@pytest.mark.parametrize("name", ["nosuch", "", "TOP", "top ", "kgqa.methods.top"])
def test_unknown_method_lists_the_known_ones(name):
    with pytest.raises(SettingsError) as caught:
        method(name)
    assert str(caught.value) == f"Unknown method {name}. Choose one of: {', '.join(BUILT_IN)}."


def test_plain_function_as_a_method(package):
    package("plain = theirs_module:plain", theirs_module=MODULE)
    assert method_names() == [*BUILT_IN, "plain"]
    found = method("plain")
    assert (found.topics, found.model) == (True, False)
    assert found.answer("q", resources=None, trace=None, topics=(), names={}).method == "plain"
    assert method("plain") is found


def test_external_method_declares_its_needs(package):
    package("zebra = theirs_module:plain\nwhole = theirs_module:whole", theirs_module=MODULE)
    assert method_names() == [*BUILT_IN, "whole", "zebra"]
    assert (method("whole").topics, method("whole").model) == (False, True)


def test_built_in_method_cannot_be_replaced(package):
    package("top = theirs_module:whole", theirs_module=MODULE)
    assert method_names() == BUILT_IN
    assert method("top").answer is answer


def test_unknown_method_lists_external_ones(package):
    package("plain = theirs_module:plain", theirs_module=MODULE)
    with pytest.raises(SettingsError, match="Choose one of: top, .*, cot, plain."):
        method("plian")


@pytest.mark.parametrize(
    ("points", "source"),
    [
        ("broken = theirs_module:plain", "raise RuntimeError('no licence')"),
        ("broken = theirs_module:plain", "import theirs_not_there"),
        ("broken = theirs_module:plain", "def f(:"),
        ("broken = theirs_module:missing", "plain = 1"),
        ("broken = theirs_nowhere:plain", ""),
    ],
    ids=["raises", "imports what is missing", "no Python", "no such name", "no such module"],
)
def test_external_method_that_cannot_be_loaded(package, points, source):
    package(points, theirs_module=source)
    assert "broken" in method_names(), "names are known without importing"
    for _ in range(2):
        with pytest.raises(SettingsError, match="The method broken cannot be loaded from theirs_"):
            method("broken")


@pytest.mark.parametrize(
    ("body", "text"),
    [("1 / 0", "ZeroDivisionError"), ("None", "instead of an Answer"), ("resources.models.name", "AttributeError")],
)
def test_external_method_that_raises_fails_its_question(package, body, text):
    package(
        "broken = theirs:broken",
        theirs=f"def broken(question, *, resources, trace, topics, names):\n    return {body}\n",
    )
    with open_resources(settings=resolve({"ask.method": "broken", "rank.embeddings": "off"})) as resources:
        answer = ask("Who directed the film Parasite?", resources=resources)
    assert answer.status == "failed" and text in answer.reason and "broken" in answer.reason


def test_entry_point_that_is_no_method_is_refused(package):
    package("number = theirs_module:number", theirs_module="number = 42")
    with pytest.raises(SettingsError, match="method number is neither a Method nor a function: 42"):
        method("number")
