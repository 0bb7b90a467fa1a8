"""The example package of CONTRIBUTING.md, installed beside kgqa: a method, a tournament, a chooser and a reader."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from kgqa.testing.server import ScriptedServer
from tests.conftest import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PARASITE = "Who directed the film Parasite?"
TOPIC = ("--topic", "m.demo_parasite", "--embeddings", "off")


def select_director(messages) -> str:
    """Reply like a language model that knows which relation leads to a director."""
    lines = messages[-1]["content"].splitlines()
    return next((f"I choose {line}" for line in lines if line.endswith("film.film.directed_by")), "none")


def relations_in(request) -> list[str]:
    return re.findall(r"^\d+\. (.+)", request.messages[-1]["content"], re.MULTILINE)


@pytest.fixture
def installed(tmp_path, foreign_package):
    """The example package, with the entry points of its pyproject.toml."""
    section = TEXT.partition("## Extending kgqa from another package")[2].partition("\n## ")[0]
    (toml,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    points = tomllib.loads(toml)["project"]["entry-points"]
    modules = dict(
        zip(re.findall(r"`kgqa_mine/(\w+)\.py`:", section), re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    )
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in found.items())
        for group, found in points.items()
    ]
    assert len(modules) == len(points) == 4
    foreign_package("\n".join(lines))
    package = tmp_path / "site" / "kgqa_mine"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, source in modules.items():
        (package / f"{name}.py").write_text(source, encoding="utf-8")


@pytest.fixture
def server():
    with ScriptedServer(select_director) as server:
        yield server


def test_method_with_setting_preset_and_stage(installed, kgqa, server):
    model = ("--llm", f"{server.url}#m", "--method", "planner")
    found = json.loads(kgqa("ask", PARASITE, *TOPIC, *model, "--json", "--trace").out)
    assert [answer["name"] for answer in found["answers"]] == ["Bong Joon-ho"]
    assert (found["method"], found["grounding"], found["query_class"]) == ("planner", "graph", "exact")
    assert [(stage["stage"], stage["calls"]) for stage in found["usage"]["stages"]] == [("plan", 1)]
    (event,) = [event for event in found["trace"] if event["kind"] == "relation_selected"]
    assert event["relation"].endswith("film.film.directed_by")
    assert server.requests[-1].body["max_tokens"] == 20
    assert len(relations_in(server.requests[-1])) > 2
    kgqa("ask", PARASITE, *TOPIC, *model, "--set", "planner.relations=1")
    assert len(relations_in(server.requests[-1])) == 1
    stages = '{"plan": {"temperature": 0.5, "max_tokens": 7}}'
    kgqa("ask", PARASITE, *TOPIC, *model, "--preset", "broad", KGQA_LLM_STAGES=stages, KGQA_PLANNER_RELATIONS="2")
    assert len(relations_in(server.requests[-1])) == 2, "a variable takes precedence over a preset"
    assert [server.requests[-1].body[name] for name in ("temperature", "max_tokens")] == [0.5, 7]


def test_settings_of_a_package_are_checked_and_shown(installed, kgqa, tmp_path):
    shown = json.loads(kgqa("config", "show", "--json", KGQA_ASK_METHOD="planner", KGQA_ASK_PRESET="broad").out)
    assert shown["planner.relations"]["value"] == 200 and shown["planner.relations"]["from"] == "broad"
    assert shown["planner.relations"]["variable"] == "KGQA_PLANNER_RELATIONS" and shown["ladder.passes"]["value"] == 1
    (tmp_path / "kgqa.toml").write_text("[ladder]\npasses = 3\n")
    assert json.loads(kgqa("config", "show", "--json").out)["ladder.passes"]["value"] == 3
    assert "planner" in kgqa("ask", "--help").out and "ladder" in kgqa("ask", "--help").out
    for arguments, message in (
        (("--set", "planner.relations=0"), "planner.relations (command line) must be at least 1"),
        (("--set", "planner.relations=many"), "--set planner.relations must be int, not 'many'"),
        (("--set", "planner.relation=3"), "Unknown setting planner.relation. Did you mean planner.relations"),
        (("--preset", "narrow", "--method", "planner"), "must be one of ours, as-published, economy, broad"),
        (("--tournament", "leader"), "Unknown tournament leader. Did you mean ladder? Choose one of:"),
        (("--method", "planner"), "needs a language model"),
    ):
        done = kgqa("ask", PARASITE, *arguments)
        assert done.returncode == 2 and message in done.err, done.err


def test_tournament_with_a_setting_and_a_chooser(installed, kgqa):
    options = ("--tournament", "ladder", "--chooser", "shortest", "--set", "ladder.passes=2", "--trace", "--json")
    found = json.loads(kgqa("ask", PARASITE, *TOPIC, *options).out)
    assert found["answers"], found["reason"]
    assert "match" in {event["kind"] for event in found["trace"]}


def test_shell_completion_lists_names_of_packages(installed, kgqa):
    done = kgqa(_KGQA_COMPLETE="bash_complete", COMP_WORDS="kgqa ask --method p", COMP_CWORD="3")
    assert "planner" in done.out


def test_reader_in_an_evaluation(installed, kgqa, tmp_path, server):
    (tmp_path / "mine.csv").write_text(
        "id,question,topic,answer\nq1,Who directed the film Parasite?,m.demo_parasite,m.demo_bong_joon_ho\n"
    )
    assert "1 questions" in kgqa("data", "check", "csv:mine.csv").out
    assert "csv" in kgqa("data", "list").out
    model = ("--llm", f"{server.url}#m", "--method", "planner", "--set", "planner.relations=50")
    done = kgqa("eval", "run", "--dataset", "csv:mine.csv", "--out", "run", *model)
    assert done.returncode == 0, done.err
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["settings"]["planner.relations"] == 50 and manifest["models"]["plan"]["max_tokens"] == 20
    assert kgqa("eval", "resume", "run").returncode == 0
    assert json.loads(kgqa("ask", "--dataset", "csv:mine.csv", "--id", "q1", "--json", *model).out)["answers"]
    assert kgqa("data", "check", "csv:nothing.csv").returncode == 1
    assert "Write --dataset csv:FILE" in kgqa("eval", "run", "--dataset", "csv", "--out", "none", *model).err
    assert "kgqa data check csv:FILE" in kgqa("data", "list", "csv").err
    (tmp_path / "mine.csv").write_text("id,question,topic,answer\n")
    assert "csv:mine.csv contains no questions" in kgqa("data", "check", "csv:mine.csv").out


def test_unknown_stage(installed, kgqa, server):
    model = ("--llm", f"{server.url}#m", "--method", "planner")
    done = kgqa("ask", PARASITE, *TOPIC, *model, KGQA_LLM_STAGES='{"plam": {"temperature": 0}}')
    assert "Unknown stage 'plam' in llm.stages. Did you mean plan? Stages: link, " in done.err and ", plan." in done.err


def test_undeclared_stage(installed, kgqa, tmp_path, server):
    planner = tmp_path / "site" / "kgqa_mine" / "planner.py"
    planner.write_text(planner.read_text().replace('stages={"plan"', 'stages={"plans"'))
    model = ("--llm", f"{server.url}#m", "--method", "planner")
    assert "'plan', which it does not declare" in kgqa("ask", PARASITE, *TOPIC, *model).out


def test_method_that_fails_at_every_question(installed, kgqa, tmp_path, server):
    planner = tmp_path / "site" / "kgqa_mine" / "planner.py"
    planner.write_text(planner.read_text().replace("for topic in topics:", "for topic in 1 / 0:"))
    model = ("--llm", f"{server.url}#m", "--method", "planner")
    done = kgqa("eval", "run", "--dataset", "demo", "--sample", "2", "--out", "run", *model)
    assert done.returncode == 1 and "PluginError 2" in done.err
    assert "Every question failed. The first one: The method planner failed (planner.py, line 24)" in done.err, done.err


def test_settings_are_shown_despite_invalid_plugins(installed, kgqa, tmp_path):
    package = tmp_path / "site" / "kgqa_mine"
    (package / "planner.py").write_text(
        "from kgqa.methods.registry import Method\nPLANNER = Method(None, stages=('a',))"
    )
    (package / "reader.py").write_text("def read(file): ...")
    (package / "shortest.py").write_text("shortest = 7")
    (package / "ladder.py").write_text("import no_such_library")
    done = kgqa("config", "show")
    assert done.returncode == 0 and all(
        f"The {kind} " in done.err
        for kind in ("method planner", "dataset csv", "chooser shortest", "tournament ladder")
    ), done.err


def test_package_that_cannot_be_imported(installed, kgqa, tmp_path):
    (tmp_path / "site" / "kgqa_mine" / "planner.py").write_text("import no_such_library\n")
    assert kgqa("ask", PARASITE, *TOPIC).returncode == 0
    shown = kgqa("config", "show")
    assert shown.returncode == 0 and "The method planner cannot be loaded" in shown.err and "passes" in shown.out
    done = kgqa("ask", PARASITE, "--method", "planner")
    assert done.returncode == 2 and "cannot be loaded from kgqa_mine.planner:PLANNER: No module named" in done.err
