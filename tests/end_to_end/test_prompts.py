"""`kgqa prompts`: list, show and replace prompts."""

from __future__ import annotations

import json

import pytest

from kgqa.llm.prompts import Prompts

OURS = Prompts()


def test_list(kgqa):
    done = kgqa("prompts", "list")
    assert (done.returncode, done.err) == (0, "")
    lines = [line.split(maxsplit=1) for line in done.out.splitlines()]
    assert lines == [[name, OURS.get(name).about] for name in OURS.names()]


def test_list_as_json(kgqa):
    done = kgqa("prompts", "list", "--json")
    assert done.returncode == 0
    assert json.loads(done.out) == [{"name": name, "about": OURS.get(name).about} for name in OURS.names()]


def test_show(kgqa):
    done = kgqa("prompts", "show", "top/compare")
    template = OURS.get("top/compare")
    system, user = OURS.render("top/compare", **template.example)
    assert (done.returncode, done.err) == (0, "")
    assert done.out == (
        f"# {template.about}\n# reply: [A] or [B], and [NEITHER] if the model may abstain\n\n[system]\n{system.content}\n\n[user]\n{user.content}\n"
    )


def test_show_as_json(kgqa):
    done = kgqa("prompts", "show", "top/pick", "--json")
    assert done.returncode == 0
    template, found = OURS.get("top/pick"), json.loads(done.out)
    assert set(found) == {"name", "about", "values", "reply", "messages"}
    assert (found["name"], found["values"], found["reply"]) == ("top/pick", template.values, template.reply)
    rendered = OURS.render("top/pick", **template.example)
    assert found["messages"] == [{"role": each.role, "content": each.content} for each in rendered]
    found = json.loads(kgqa("prompts", "show", "top/pick", "--json", "--source").out)
    assert found["source"] == template.source


def test_source_copied_to_a_folder(kgqa, tmp_path):
    done = kgqa("prompts", "show", "top/answer", "--source")
    assert (done.returncode, done.out) == (0, OURS.get("top/answer").source)
    (tmp_path / "mine" / "top").mkdir(parents=True)
    (tmp_path / "mine" / "top" / "answer.j2").write_text(done.out.replace("Question:", "I ask:"))
    mine = kgqa("prompts", "show", "top/answer", "--prompts", "mine")
    ours = kgqa("prompts", "show", "top/answer", KGQA_LLM_PROMPTS=str(tmp_path / "mine"))
    assert mine.out == ours.out and "[user]\nI ask: Who founded" in mine.out
    assert kgqa("prompts", "show", "top/pick", "--prompts", "mine").out == kgqa("prompts", "show", "top/pick").out


def test_sources_contain_no_escaped_characters():
    from kgqa.text.words import safe_text

    for name in OURS.names():
        assert safe_text(OURS.get(name).source) == OURS.get(name).source


@pytest.mark.parametrize("name", ["nope", "../top/compare", "top/compare\n\x1b[31m"])
def test_unknown_prompt(kgqa, name):
    done = kgqa("prompts", "show", name)
    assert (done.returncode, done.out) == (2, "")
    assert done.err.startswith("kgqa: There is no prompt") and "top/compare" in done.err
    assert len(done.err.splitlines()) == 1 and "\x1b" not in done.err


def test_missing_folder(kgqa):
    done = kgqa("prompts", "list", "--prompts", "nowhere")
    assert done.returncode == 2 and "There is no folder nowhere" in done.err


def test_untrusted_folder_prints_no_control_characters(kgqa, tmp_path):
    (tmp_path / "theirs" / "top").mkdir(parents=True)
    described = {"about": "Bad\x1b[31m.\nnext", "values": {"problem": "p"}, "example": {"problem": "x\x1b[0m"}}
    (tmp_path / "theirs" / "top" / "reask.json").write_text(json.dumps(described))
    (tmp_path / "theirs" / "top" / "reask.j2").write_text("{% block user %}\x1b]0;title\x07{{ problem }}{% endblock %}")
    for arguments in (
        ("list",),
        ("show", "top/reask"),
        ("show", "top/reask", "--source"),
        ("show", "top/reask", "--json"),
    ):
        done = kgqa("prompts", *arguments, "--prompts", "theirs")
        assert done.returncode == 0, done.err
        assert "\x1b" not in done.out and "\x07" not in done.out
    assert "# reply: -" in kgqa("prompts", "show", "top/reask", "--prompts", "theirs").out


def test_failing_template(kgqa, tmp_path):
    (tmp_path / "mine" / "top").mkdir(parents=True)
    (tmp_path / "mine" / "top" / "reask.j2").write_text("{% block user %}{{ problem.__class__ }}{% endblock %}")
    done = kgqa("prompts", "show", "top/reask", "--prompts", "mine")
    assert done.returncode == 2 and "top/reask cannot be rendered" in done.err
