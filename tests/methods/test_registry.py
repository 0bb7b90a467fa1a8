"""The registry of methods: built-in ones and those of other packages."""

from __future__ import annotations

import pytest

from kgqa import ask, open_resources
from kgqa.errors import SettingsError
from kgqa.methods.registry import method
from kgqa.methods.top import answer
from kgqa.model import Question
from kgqa.plugins import known_settings, plugin_errors, plugin_names
from kgqa.settings.setting import check
from kgqa.settings.table import own_settings
from kgqa.settings.values import resolve

BUILT_IN = ["cot", "counselor", "evograph", "graphsearch", "io", "rag", "tog", "tog3", "top", "top-1", "top-2"]
MODULE = """
from kgqa.methods.registry import Method
from kgqa.model import Answer

def plain(question, *, resources, trace, topics, names):
    return Answer(question, "no_answer", method="plain")

whole = Method(plain, topics=False, model=True)
"""


@pytest.fixture
def package(foreign_package):
    """An installed package of another project, with methods."""
    return lambda points, **modules: foreign_package(f"[kgqa.methods]\n{points}\n", **modules)


def method_names() -> list[str]:
    return plugin_names("method")


def test_built_in_methods():
    assert method_names() == BUILT_IN
    assert method("top").answer is answer
    needs = {name: (method(name).topics, method(name).graph, method(name).model) for name in BUILT_IN}
    assert needs == {
        **dict.fromkeys(["top", "top-1", "top-2"], (True, True, False)),
        "tog": (True, True, True),
        "io": (False, False, True),
        "cot": (False, False, True),
        **dict.fromkeys(["counselor", "evograph", "graphsearch", "rag", "tog3"], (False, True, True)),
    }
    assert [name for name in BUILT_IN if method(name).corpus] == ["evograph", "graphsearch", "rag", "tog3"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_presets_of_a_method_are_valid(name):
    table, _ = known_settings({})
    for values in method(name).presets.values():
        for key, value in values.items():
            assert check(table[key], value, name) == value


@pytest.mark.parametrize("name", ["nosuch", "", "TOP", "top ", "kgqa.methods.top"])
def test_unknown_method_lists_the_known_ones(name):
    with pytest.raises(SettingsError) as caught:
        method(name)
    assert str(caught.value).startswith(f"Unknown method {name}. ")
    assert str(caught.value).endswith(f"Choose one of: {', '.join(BUILT_IN)}.")


def test_plain_function_as_a_method(package):
    package("plain = theirs_module:plain", theirs_module=MODULE)
    assert method_names() == [*BUILT_IN, "plain"]
    found = method("plain")
    assert (found.topics, found.model) == (True, False)
    assert found.answer(Question("q"), resources=None, trace=None, topics=(), names={}).method == "plain"


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
    with pytest.raises(SettingsError, match="Did you mean plain. Choose one of: cot, .*, top-2, plain."):
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
    [
        ("1 / 0", "failed (theirs.py, line 3): ZeroDivisionError"),
        ("[][0:int('x')]", "failed (theirs.py, line 3): ValueError"),
        ("exit('done')", "failed (theirs.py, line 3): SystemExit: done"),
        ("None", "instead of an Answer"),
        ("resources.models.name", "model=True"),
        ("Answer(question, 'done')", "status: 'done' is not one of"),
        ("Answer(question, 'answered', answers=['Bong'])", "answers: 'Bong' is not an object (Named)"),
        ("Answer(question, 'answered', (Named('Bong', '', ''),))", "value: 'Bong' is not Entity or Literal"),
    ],
)
def test_external_method_that_raises_fails_its_question(package, body, text):
    package(
        "broken = theirs:broken",
        theirs="from kgqa.model import Answer, Named\ndef broken(question, *, resources, trace, topics, names):\n"
        f"    return {body}\n",
    )
    with open_resources(settings=resolve({"ask.method": "broken", "rank.embeddings": "off"})) as resources:
        answer = ask("Who directed the film Parasite?", resources=resources)
    assert answer.status == "failed" and text in answer.reason, answer.reason


def test_entry_point_that_is_no_method_is_refused(package):
    package("number = theirs_module:number", theirs_module="number = 42")
    with pytest.raises(SettingsError, match="method number .* is neither a method nor a function: 42"):
        method("number")


def test_function_that_is_no_method_is_refused(package):
    package("reader = theirs_module:read", theirs_module="def read(file, name): ...")
    with pytest.raises(SettingsError, match="method reader .* must accept the arguments .question, .*, resources"):
        method("reader")
    assert "method reader" in plugin_errors()[0]


def test_same_name_in_two_packages(foreign_package, tmp_path):
    foreign_package("[kgqa.methods]\nplain = theirs_module:plain\ntop = theirs_module:plain\n", theirs_module=MODULE)
    other = tmp_path / "site" / "others-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[kgqa.methods]\nplain = others_module:plain\n")
    with pytest.raises(SettingsError, match="Several packages have a method plain: others_module:plain, theirs_module"):
        method("plain")
    assert "The method top (theirs_module:plain) has no effect, because kgqa has one." in plugin_errors()


def test_method_that_needs_no_embeddings(package):
    package(
        "free = theirs_module:free", theirs_module=MODULE + "free = Method(plain, topics=False, embeddings=False)\n"
    )
    with open_resources(settings=resolve({"ask.method": "free"}), say=pytest.fail) as resources:
        assert resources.encoder is None


# ---- declarations of other packages ----

DECLARED = """
from kgqa.methods.registry import Method
from kgqa.settings.setting import Section, setting

class Mine(Section, name="mine"):
    rounds: int = setting(2, "rounds of the search", minimum=1)

class Clash(Section, name="mine"):
    rounds: str = setting("few", "other")

mine = Method("theirs_search:answer", settings=Mine, presets={"ours": {"explore.depth": 4}, "fast": {"mine.rounds": 1}})
other = Method("theirs_search:answer", settings=Mine)
clash = Method("theirs_search:answer", settings=Clash)
"""


def declared(source: str) -> dict[str, str]:
    return {"theirs_module": DECLARED + source, "theirs_search": "raise ImportError('imported')"}


def test_settings_and_presets_of_another_package(package, tmp_path):
    package("mine = theirs_module:mine\nother = theirs_module:other", **declared(""))

    def values(text="", given=None, **environment):
        (tmp_path / "kgqa.toml").write_text(text)
        found = resolve(given, environment=environment, folder=tmp_path, user_file=tmp_path / "none")
        return found.values["mine.rounds"], found.explore.depth

    mine = {"ask.method": "mine"}
    assert values(given=mine) == (2, 4)
    assert values(given=mine, KGQA_MINE_ROUNDS="7") == (7, 4)
    assert values("[ask]\nmethod = 'mine'\npreset = 'fast'\n") == (1, 4)
    assert values("[mine]\nrounds = 9\n[ask]\nmethod = 'mine'\npreset = 'fast'\n") == (9, 4)
    assert values("[mine]\nrounds = 9\n") == (9, 2), "the section of an installed method that is not used"
    with pytest.raises(KeyError):
        values()
    for text, message in (
        ("[mine]\nrounds = 0\n", "mine.rounds .* must be at least 1"),
        ("[mine]\nround = 1\n", "unknown setting mine.round"),
        ("[ask]\npreset = 'fast'\n", "ask.preset .* must be one of ours, as-published, economy, not 'fast'"),
    ):
        with pytest.raises(SettingsError, match=message):
            values(text)
    with pytest.raises(SettingsError, match="The method mine cannot be loaded from theirs_search:answer: imported"):
        method("mine")


def test_conflicting_settings_of_two_methods_are_reported(package):
    package("mine = theirs_module:mine\nclash = theirs_module:clash", **declared(""))
    table, errors = known_settings({"ask.method": "mine"}, installed=True)
    assert table["mine.rounds"].kind is int
    assert errors == ["The method clash is not used in full: another plugin has the setting mine.rounds."]


@pytest.mark.parametrize(
    ("section", "field", "arguments", "message"),
    [
        ("llm", 'more: str = setting("", "shadow")', "", "llm.more is in a section of kgqa"),
        ("tog", 'more: int = setting(1, "shadow")', "", "tog.more is in a section of kgqa"),
        ("embeddings", 'key: str = setting("", "a secret")', "", "embeddings.key is in a section of kgqa"),
        ("mine", 'key: str = setting("", "one", called="OPENAI_API_KEY")', "", "must not have called="),
        ("mine", 'fast: bool = setting(False, "a switch")', "", "kind of mine.fast must be .*not <class 'bool'>"),
        ("mine", 'rounds: int = setting(0, "default", minimum=1)', "", "must be at least 1"),
        ("mine", "", 'presets={"ours": {"llm.model": "http://elsewhere/v1"}}', "preset ours may not set llm.model"),
        ("mine", "", 'presets={"fast": {"explore.dept": 1}}', "preset fast may not set explore.dept"),
        ("mine", "", 'presets={"fast": {"explore.depth": 0}}', "explore.depth .preset fast. must be at least 1"),
        ("mine", "", 'stages={"plan": {"temperature": "mine.heat"}}', "mine.heat, which does not exist"),
    ],
)
def test_invalid_declaration_is_reported_when_the_method_is_used(package, section, field, arguments, message):
    source = f'class Bad(Section, name="{section}"):\n    {field or "pass"}\n'
    source += f'bad = Method("theirs_search:answer", settings=Bad, {arguments})'
    package("bad = theirs_module:bad", **declared(source))
    assert resolve({"ask.method": "bad"}).llm.model is None
    with pytest.raises(SettingsError, match="The method bad .theirs_module:bad. is invalid: .*" + message):
        method("bad")


def test_package_that_cannot_be_imported_breaks_nothing_else(package, tmp_path):
    package("broken = theirs_module:broken", theirs_module="import theirs_not_there")
    (tmp_path / "kgqa.toml").write_text("[mine]\nrounds = 9\n[ask]\nmethod = 'broken'\n")
    settings = resolve(environment={}, folder=tmp_path, user_file=tmp_path / "none")
    assert set(settings.table) >= set(own_settings()) and "mine.rounds" not in settings.table
    with pytest.raises(SettingsError, match="The method broken cannot be loaded from theirs_module:broken"):
        open_resources(settings=settings)


def test_method_that_needs_a_corpus(package):
    module = MODULE + "reader = Method(plain, topics=False, corpus=True)\n"
    package("reader = theirs_module:reader", theirs_module=module)
    with pytest.raises(SettingsError, match="The method reader needs a text corpus. Build one: kgqa.build_corpus"):
        open_resources(settings=resolve({"ask.method": "reader", "rank.embeddings": "off"}))


@pytest.mark.parametrize(("graph", "recorded"), [("True", True), ("False", False)])
def test_graph_of_a_method_without_topics(package, graph, recorded):
    package("free = theirs_module:free", theirs_module=MODULE + f"free = Method(plain, topics=False, graph={graph})\n")
    with open_resources(settings=resolve({"ask.method": "free", "rank.embeddings": "off"})) as resources:
        answer = ask("How many films did Bong Joon-ho direct?", resources=resources)
    assert answer.status == "no_answer" and (answer.graph is not None) == recorded
