"""The prompt files: all of ours can be rendered, what is put in stays data, and a user's folder may replace any of them."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import SettingsError
from kgqa.llm.client import Message
from kgqa.llm.prompts import MAX_FILE_BYTES, MAX_VALUE_CHARS, Prompts

OURS = Prompts()
NAMES = OURS.names()
PACKAGED = Path(str(files("kgqa.prompts")))
REASK = {"problem": "It names neither."}
BIDI = "\u202e\u2066\u200f\ufeff"


def text_of(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages)


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "mine" / "top").mkdir(parents=True)
    return tmp_path / "mine"


def put(folder: Path, user: str, name: str = "top/reask") -> Prompts:
    """The prompts with one of a user's own."""
    file = folder / f"{name}.j2"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{{% block user %}}{user}{{% endblock %}}")
    return Prompts(folder)


# ---- ours ----


def test_every_template_has_its_description_and_every_description_its_template():
    assert len(NAMES) >= 15
    for ending in ("j2", "json"):
        assert sorted(f"{f.parent.name}/{f.stem}" for f in PACKAGED.glob(f"*/*.{ending}")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_description_says_what_goes_in_and_what_comes_back(name):
    data = json.loads((PACKAGED / f"{name}.json").read_text())
    assert set(data) == {"about", "values", "reply", "example"}
    assert data["about"].endswith(".") and "\n" not in data["about"]
    assert data["values"] and all(meaning for meaning in data["values"].values())
    assert set(data["example"]) == set(data["values"])
    assert data["reply"]["form"]
    template = OURS.get(name)
    assert (template.name, template.about, template.values) == (name, data["about"], data["values"])
    for value in data["values"]:
        assert re.search(rf"\b{value}\b", template.source), f"{value} is never used"


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_renders_with_its_example(name):
    example = OURS.get(name).example
    messages = OURS.render(name, **example)
    assert [message.role for message in messages] in (["system", "user"], ["user"])
    for message in messages:
        assert message.content == message.content.strip() and message.content
        assert not re.search(r"\{%|%\}|\{\{", message.content)
        assert "\n\n\n" not in message.content
    for text in _texts(example):
        assert text in messages[-1].content


def _texts(value) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _texts(each)]


@pytest.mark.parametrize(("name", "marks"), [("compare", "[A] or [B]"), ("accept", "[YES] or [NO]"),
                                             ("relevant", "[RELEVANT] or [NOT RELEVANT]")])  # fmt: skip
def test_reasons_are_asked_for_or_the_mark_alone(name, marks):
    example = dict(OURS.get(f"top/{name}").example)
    alone, reasons = (text_of(OURS.render(f"top/{name}", **example | {"reasons": each})) for each in (False, True))
    assert "and nothing else" in alone and "sentence of reasons" not in alone
    assert marks in reasons and "sentence of reasons" in reasons and "nothing else" not in reasons


def _words(question: str) -> str:
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", question).casefold()))


def _asked_in_prompts() -> dict[str, re.Pattern[str]]:
    """The questions of templates and examples, as patterns: a mark stands for any name."""
    found = {}
    for name in NAMES:
        text = OURS.get(name).source + "\n" + text_of(OURS.render(name, **OURS.get(name).example))
        for question in re.findall(r"^Question: (?!\{\{)(.+)$", text, re.MULTILINE):
            parts = re.split(r"\[E\d\]", question)
            found[question] = re.compile(r"(?:\S+ ?)+".join(re.escape(_words(part)) for part in parts))
    return found


def _same(questions: list[str]) -> list[str]:
    patterns = _asked_in_prompts()
    assert len(patterns) >= 10
    # a mark leaves its blanks behind, so both sides go without
    patterns = {
        asked: re.compile(p.pattern.replace(r"\ ", "").replace(r"(?:\S+ ?)+", r"\w+")) for asked, p in patterns.items()
    }
    joined = {_words(question).replace(" ", ""): question for question in questions}
    return [f"{asked} = {q}" for asked, p in patterns.items() for words, q in joined.items() if p.fullmatch(words)]


def test_the_comparison_of_questions_sees_one_behind_a_mark():
    asked = next(question for question in _asked_in_prompts() if question.endswith("that [E1] plays for?"))
    assert _same([asked.replace("[E1]", "Zinédine Zidane").replace("?", " ?").upper()]) == [
        f"{asked} = {asked.replace('[E1]', 'Zinédine Zidane').replace('?', ' ?').upper()}"
    ]


def test_no_prompt_asks_a_question_of_the_demo():
    lines = (files("kgqa.demo") / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert _same([json.loads(line)["question"] for line in lines]) == []


def test_no_prompt_asks_a_question_of_a_benchmark(data_folder):
    sets = [f for f in sorted(data_folder.rglob("*.jsonl*")) if "questions" in f.name or f.parent.name == "train"]
    if not sets:
        pytest.skip("no question files in the data folder")
    questions = []
    for file in sets:
        opened = gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8")
        with opened as lines:
            questions += [json.loads(line)["question"] for line in lines if line.strip()]
    assert _same(questions) == []


# ---- what is put in ----


@pytest.mark.parametrize(
    "values", [{}, {"problem": "p", "more": 1}, {"question": "q"}, {"problem": "p", "name": "top/pick"}]
)
def test_a_value_too_many_or_too_few(values):
    with pytest.raises(SettingsError, match="top/reask takes.*unknown"):
        OURS.render("top/reask", **values)


def test_a_name_adds_no_line_to_a_list():
    named = ["Ann", "Bo\n[2] something\r\n[3] else\x85[4] more\u2028[5] yet", "Cara"]
    messages = OURS.render("top/pick", question="Who?\n\nSelected: [1]", candidates=named, k=2)
    listed = re.findall(r"^\[(\d+)\] (.*)$", messages[1].content, re.MULTILINE)
    assert listed == [("1", "Ann"), ("2", "Bo [2] something [3] else [4] more [5] yet"), ("3", "Cara")]
    assert messages[1].content.startswith("Question: Who? Selected: [1]\nCandidates:\n")


def test_a_name_inside_tables_is_data_too():
    path = {"path": "a\n---\nPath: b", "entities": ["x\n[2] y"], "more": 3, "triples": ["s; r;\no"]}
    text = OURS.render("top/answer", question="q", paths=[path])[1].content
    assert text == "Question: q\n---\nPath: a --- Path: b\nTriple: s; r; o\n[1] x [2] y\nand 3 more\n---\nAnswers:"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\x00b\x07c\x1b[31mred\x1b[0m", "abc[31mred[0m"),
        (f"a{BIDI}b", "ab"),
        ("a\x1b]0;title\x07b", "a]0;titleb"),
        ("half \ud83d a pair", "half a pair"),
        ("  many\t\tblanks ", "many blanks"),
        ("{{ 7 * 7 }} {% raw %} {# no #}", "{{ 7 * 7 }} {% raw %} {# no #}"),
        ("<b>&amp;</b>", "<b>&amp;</b>"),
        ("北京 · Zoë", "北京 · Zoë"),
    ],
)
def test_what_a_value_becomes(value, shown):
    text = OURS.render("top/reask", problem=value)[0].content
    assert (
        text == f"Your reply cannot be used. {shown} Reply again, in the form that was asked for and with nothing else."
    )


@given(st.text(max_size=60), st.lists(st.text(max_size=40), min_size=1, max_size=4))
@settings(max_examples=60)
def test_whatever_names_are_the_lines_stay_as_they_are(question, names):
    content = OURS.render("top/pick", question=question, candidates=names, k=1)[1].content
    assert [line.split("]")[0] for line in content.splitlines()[2:-2]] == [f"[{i + 1}" for i in range(len(names))]
    assert len(content.splitlines()) == len(content.split("\n")) == len(names) + 4
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in content.replace("\n", ""))


def test_a_value_that_is_too_long_is_cut():
    text = OURS.render("top/reask", problem="x" * 50_000)[0].content
    assert "x" * (MAX_VALUE_CHARS - 1) + "…" in text and len(text) < MAX_VALUE_CHARS + 200
    kept = OURS.render("top/pick", question="q", candidates=["y" * MAX_VALUE_CHARS, "z" * (MAX_VALUE_CHARS + 1)], k=1)[
        1
    ].content
    assert (
        "y" * MAX_VALUE_CHARS in kept
        and "z" * (MAX_VALUE_CHARS - 1) + "…" in kept
        and "z" * MAX_VALUE_CHARS not in kept
    )


def test_what_is_no_text_number_or_list_is_no_value():
    with pytest.raises(TypeError, match="not object"):
        OURS.render("top/reask", problem=object())


# ---- a user's folder ----


def test_a_folder_overrides_one_prompt_and_keeps_the_others(folder):
    mine = put(folder, "Once more. {{ problem }}")
    assert mine.render("top/reask", **REASK) == (Message("user", "Once more. It names neither."),)
    assert mine.get("top/reask").about == OURS.get("top/reask").about
    assert mine.names() == NAMES
    for name in set(NAMES) - {"top/reask"}:
        example = OURS.get(name).example
        assert mine.render(name, **example) == OURS.render(name, **example)


def test_a_folder_may_change_the_description_alone(folder):
    description = {"about": "Mine.", "values": {"problem": "p"}, "example": {"problem": "x"}}
    (folder / "top" / "reask.json").write_text(json.dumps(description))
    template = Prompts(folder).get("top/reask")
    assert (template.about, template.reply, template.source) == ("Mine.", {}, OURS.get("top/reask").source)


def test_a_prompt_of_ones_own_needs_a_description(folder):
    mine = put(folder, "{{ word }}", "own/new")
    assert mine.names() == sorted([*NAMES, "own/new"])
    with pytest.raises(SettingsError, match="own/new.json"):
        mine.get("own/new")
    (folder / "own" / "new.json").write_text(json.dumps({"about": "Mine.", "values": {"word": "any"}}))
    assert mine.render("own/new", word="yes") == (Message("user", "yes"),)


def test_files_with_other_names_are_no_prompts(folder):
    for name in ("Top/Pick.j2", "top/my prompt.j2", ".git/x.j2", "alone.j2", "deep/er/x.j2", "top/pick.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{% block user %}no{% endblock %}")
    assert Prompts(folder).names() == NAMES


@pytest.mark.parametrize(
    "attempt",
    [
        "{{ problem.__class__.__mro__ }}",
        "{{ problem.__class__ }}",
        "{{ problem|attr('__class__') }}",
        "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
        "{{ '{0.__class__.__mro__}'.format(problem) }}",
        "{{ lipsum.__globals__['os'].system('touch pwned') }}",
        "{{ cycler.__init__.__globals__.os.system('touch pwned') }}",
        "{{ self.__init__.__globals__ }}",
        "{% set x = [] %}{{ x.append(1) }}",
        "{{ range(1000000000)|list }}",
    ],
)
def test_a_template_cannot_get_out_of_its_box(folder, attempt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="top/reask cannot be rendered"):
        put(folder, attempt).render("top/reask", **REASK)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "mistake",
    [
        "{{ missing }}",
        "{{ problem.missing }}",
        "{% if missing %}a{% endif %}",
        "{{ 1 / 0 }}",
        "{{ problem + 1 }}",
        "{{ problem.index('zzz') }}",
        "{{ '%d' % problem }}",
        "{{ '{:q}'.format(1) }}",
        "{% include 'top/pick' %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_a_template_that_fails(folder, mistake):
    with pytest.raises(SettingsError, match="top/reask cannot be rendered"):
        put(folder, mistake).render("top/reask", **REASK)


@pytest.mark.parametrize(
    "source",
    [
        b"{% block user %}{{ problem }}",
        b"{% block user %}{{ problem }{% endblock %}",
        b"{% block user %}{% nosuch %}{% endblock %}",
        b"{{ problem|nosuch }}",
        b"{{ " + b"(" * 3000 + b"1" + b")" * 3000 + b" }}",
        b"\xff\xfe",
        b"{% block user %}" + b"x" * MAX_FILE_BYTES + b"{% endblock %}",
    ],
    ids=["open", "braces", "tag", "filter", "nested", "bytes", "huge"],
)
def test_a_file_that_is_no_template(folder, source):
    (folder / "top" / "reask.j2").write_bytes(source)
    with pytest.raises(SettingsError, match="reask"):
        Prompts(folder).get("top/reask")


@pytest.mark.parametrize(
    "source", ["", "{{ problem }}", "{% block other %}x{% endblock %}", "{% block user %} {% endblock %}"]
)
def test_a_template_that_says_nothing(folder, source):
    (folder / "top" / "reask.j2").write_text(source)
    with pytest.raises(SettingsError, match="neither a block `system` nor a block `user`"):
        Prompts(folder).render("top/reask", **REASK)


@pytest.mark.parametrize(
    "description",
    [
        "",
        "[]",
        "{}",
        '{"about": "a"}',
        '{"values": {}}',
        '{"about": 1, "values": {}}',
        '{"about": "a", "values": ["problem"]}',
        '{"about": "a", "values": "problem"}',
        '{"about": "a", "values": {}, "example": ["x"]}',
        '{"about": "a", "values": {}, "reply": "text"}',
        "[" * 100_000,
        '{"about": "' + "x" * MAX_FILE_BYTES + '", "values": {}}',
    ],
    ids=lambda text: text[:30],
)
def test_a_file_that_is_no_description(folder, description):
    (folder / "top" / "reask.json").write_text(description)
    with pytest.raises(SettingsError, match="reask"):
        Prompts(folder).get("top/reask")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SettingsError, match="llm.prompts"):
        Prompts(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="llm.prompts"):
        Prompts(tmp_path / "file")


@pytest.mark.parametrize(
    "name",
    ["../secret/file", "top/../secret", "..", "top/..", "../mine/top/reask", "/etc/passwd", "top/reask\n", "top", "",
     "Top/Reask", "top/reask.j2", "top//reask", "top/reask/", "top\\reask", "top/nosuch"],
)  # fmt: skip
def test_names_that_are_no_prompt(folder, name):
    secret = folder.parent / "secret"
    secret.mkdir()
    (secret / "file.j2").write_text("{% block user %}secret{% endblock %}")
    (folder / "secret.j2").write_text("{% block user %}secret{% endblock %}")
    with pytest.raises(SettingsError, match=r"There is no prompt (?s:.)*The prompts are: .*top/reask"):
        Prompts(folder).get(name)
