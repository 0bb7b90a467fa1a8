"""The example package of CONTRIBUTING.md, installed beside kgqa: a method, a tournament, a chooser, a reader, a store."""

from __future__ import annotations

import json
import logging
import re
import tomllib

import pytest

from kgqa.errors import QueryRejected
from kgqa.graph.opening import open_graph
from kgqa.model import Entity, Literal, Triple
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
    assert len(modules) == len(points) == 5
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
        (("--set", "planner.relations=many"), "--set planner.relations must be a whole number, not 'many'"),
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


def test_reader_in_an_evaluation(installed, kgqa, tmp_path, server):
    (tmp_path / "mine.csv").write_text(
        "id,question,topic,answer\nq1,Who directed the film Parasite?,m.demo_parasite,m.demo_bong_joon_ho\n"
    )
    assert "1 question;" in kgqa("data", "check", "csv:mine.csv").out
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


def test_method_that_fails_at_every_question(installed, kgqa, tmp_path, server):
    broken(tmp_path, "planner", "for topic in topics:", "for topic in 1 / 0:")
    model = ("--llm", f"{server.url}#m", "--method", "planner")
    done = kgqa("eval", "run", "--dataset", "demo", "--sample", "2", "--out", "run", *model)
    assert done.returncode == 1 and "ZeroDivisionError 2" in done.err
    assert "The first one: The method planner of kgqa_mine (planner.py, line" in done.err, done.err


def broken(tmp_path, module: str, old: str, new: str) -> None:
    """Replace text in a module of the example package."""
    file = tmp_path / "site" / "kgqa_mine" / f"{module}.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("module", "old", "new", "reason"),
    [
        ("ladder", "order = list(candidates)", "raise ValueError('boom')", "tournament ladder of kgqa_mine (ladder.py"),
        ("shortest", "return ScoringChooser", "raise OSError('gone') or ", "The chooser shortest of kgqa_mine"),
        ("shortest", "np.array([1 / ", "np.array([1 / 0 / ", "(shortest.py, line 8) failed: ZeroDivisionError"),
    ],
)
def test_errors_in_a_tournament_or_chooser_fail_one_question(
    installed, kgqa, tmp_path, caplog, module, old, new, reason
):
    broken(tmp_path, module, old, new)
    caplog.set_level(logging.DEBUG, "kgqa")
    options = ("--tournament", "ladder", "--chooser", "shortest", "--embeddings", "off")
    batch = kgqa("ask", *TOPIC, *options, "--json", input=f"{PARASITE}\n{PARASITE}\n")
    found = [json.loads(line) for line in batch.out.splitlines()]
    assert batch.returncode == 1 and [each["status"] for each in found] == ["failed"] * 2, batch.err
    assert reason in found[0]["reason"] and "Traceback" in caplog.text


def test_reader_that_raises_shows_its_name_and_traceback(installed, kgqa, tmp_path):
    broken(tmp_path, "reader", "in enumerate(", "in 1 / 0 or enumerate(")
    (tmp_path / "mine.csv").write_text("id,question,topic,answer\nq1,Who?,m.demo_parasite,m.demo_bong_joon_ho\n")
    done = kgqa("data", "check", "csv:mine.csv")
    assert done.returncode == 1 and "Traceback" in done.err
    assert "kgqa: The dataset csv of kgqa_mine (reader.py, line" in done.err


def test_store(installed, kgqa, tmp_path, monkeypatch):
    (tmp_path / "graph.nt").write_text(
        '<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann Lee" .\n<http://e/a> <http://e/knows> _:b .\n'
        '_:b <http://www.w3.org/2000/01/rdf-schema#label> "Bob Ray" .\n'
    )
    done = kgqa("graph", "info", "quads:database")
    assert done.returncode == 1 and "There is no folder database" in done.err and not (tmp_path / "database").exists()
    for added in (3, 0):
        done = kgqa("graph", "load", "graph.nt", "--into", "quads:database")
        assert done.returncode == 0 and f"{added} triples added" in done.out, done.err
    assert (tmp_path / "database").is_dir() and not (tmp_path / "quads:database").exists()
    graph = ("--graph", "quads:database", "--embeddings", "off")
    found = json.loads(kgqa("ask", "Who knows Ann Lee?", *graph, "--json").out)
    assert [answer["name"] for answer in found["answers"]] == ["Bob Ray"]
    done = kgqa("doctor", "--graph", "quads:database", "--no-model")
    assert done.returncode == 0 and "quads:database answers" in done.out, done.out
    done = kgqa("graph", "load", "graph.nt", "--into", "quads:database", "--resume")
    assert done.returncode == 2
    monkeypatch.chdir(tmp_path)
    with open_graph("quads:database", writable=True) as opened:
        ann = Entity("http://e/a")
        report = opened.store.edit(
            "", [Triple(ann, "http://e/likes", Literal("tea")), Triple(ann, "http://e/knows", ann)]
        )
        assert len(report.added) == 2 and opened.tables.relations["http://e/likes"] == 1
    with open_graph("quads:database") as opened, pytest.raises(QueryRejected):
        assert opened.tables.relations["http://e/likes"] == 1
        opened.store.edit("", [], report.added)


def test_run_on_a_store_is_resumed_in_another_folder(installed, kgqa, tmp_path):
    (tmp_path / "graph.nt").write_text('<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann Lee" .\n')
    (tmp_path / "q.jsonl").write_text('{"id": "1", "question": "Who is Ann Lee?", "answers": []}\n')
    kgqa("graph", "load", "graph.nt", "--into", "quads:database")
    done = kgqa(
        "eval", "run", "--dataset", "q.jsonl", "--graph", "quads:database", "--out", "run", "--embeddings", "off"
    )
    assert done.returncode == 0, done.err
    (tmp_path / "elsewhere").mkdir()
    done = kgqa("eval", "resume", "../run", "--retry", "no_answer", cwd=tmp_path / "elsewhere")
    assert done.returncode == 0, done.err


def test_unknown_store_and_folder_with_the_name_of_a_store(installed, kgqa, tmp_path):
    (tmp_path / "graph.nt").write_text('<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann Lee" .\n')
    done = kgqa("graph", "load", "graph.nt", "--into", "quats:database")
    assert done.returncode == 2 and "no installed package has a store named quats" in done.err
    assert not (tmp_path / "quats:database").exists()
    assert kgqa("graph", "load", "graph.nt", "--into", "./quads:database").returncode == 0
    assert (tmp_path / "quads:database" / "graph.json").exists()
    assert kgqa("graph", "info", "./quads:database").returncode == 0
    assert "There is no folder database" in kgqa("graph", "info", "quads:database").err, "the store, not the folder"
    doctor = kgqa("doctor", "--graph", "quats:database", "--no-model")
    assert doctor.returncode == 2 or "no installed package has a store named quats" in doctor.out.replace("\n", " ")


def test_package_that_cannot_be_imported(installed, kgqa, tmp_path):
    (tmp_path / "site" / "kgqa_mine" / "planner.py").write_text("import no_such_library\n")
    assert kgqa("ask", PARASITE, *TOPIC).returncode == 0
    shown = kgqa("config", "show")
    assert shown.returncode == 0 and "The method planner cannot be loaded" in shown.err and "passes" in shown.out
    done = kgqa("ask", PARASITE, "--method", "planner")
    assert done.returncode == 2 and "cannot be loaded from kgqa_mine.planner:PLANNER: No module named" in done.err
    done = kgqa("ask", PARASITE, "--set", "planner.relations=10")
    assert done.returncode == 2 and "Unknown setting planner.relations" in done.err
    assert "The method planner cannot be loaded from kgqa_mine.planner:PLANNER: No module named" in done.err
