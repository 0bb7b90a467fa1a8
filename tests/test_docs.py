"""README and docs: examples run, and commands, keys, files and modules exist."""

from __future__ import annotations

import contextlib
import io
import pkgutil
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kgqa.schema import _KEYS, parse_schema
from kgqa.storage.answer_json import answer_object
from kgqa.testing.agents.counselor_agent import CounselorAgent, GoldProgram
from kgqa.testing.model_oracle import Gold, ModelOracle
from kgqa.testing.server import ScriptedServer
from tests.cli_runner import run_cli
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run_code(code: str, folder: Path) -> str:
    """Run an example in an empty folder, and return its output."""
    output = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(output):
        exec(code, {"__name__": "__main__"})
    return output.getvalue()


@pytest.mark.parametrize("code", blocks(README, "python"))
def test_python_examples_run(code, tmp_path):
    assert "Bong Joon-ho" in run_code(code, tmp_path)


def test_scripted_server_example_runs(tmp_path):
    (code,) = blocks((ROOT / "docs" / "models.md").read_text(encoding="utf-8"), "python")
    assert run_code(code, tmp_path).split("\n")[0] == "Bong Joon-ho model 1"


@pytest.mark.parametrize(("page", "output"), [("evaluation.md", "True 3\n"), ("fictional.md", "")])
def test_evaluation_examples_run(page, output, tmp_path):
    (code,) = blocks((ROOT / "docs" / page).read_text(encoding="utf-8"), "python")
    assert run_code(code, tmp_path).startswith(output)


def test_editing_example_runs(tmp_path):
    (code,) = blocks((ROOT / "docs" / "graphs.md").read_text(encoding="utf-8"), "python")
    labels = "{Entity(iri='http://example.org/ada'): 'Ada', Entity(iri='http://example.org/charles'): 'Charles'}"
    assert run_code(code, tmp_path) == f"added 2 True\nfound Charles\nlabels {labels}\n"


def test_example_of_conditions_runs(tmp_path):
    text = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    (code,) = blocks(text, "python")
    _, after = text.split("It prints:\n\n")
    assert run_code(code, tmp_path) == "".join(f"{line[4:]}\n" for line in after.split("\n\n")[0].split("\n"))


def test_example_of_an_answer_from_texts(tmp_path):
    _, code = blocks((ROOT / "docs" / "new-method.md").read_text(encoding="utf-8"), "python")
    assert run_code(f"{code}\nprint(grounding)", tmp_path) == "London\ntext\n"


@pytest.mark.parametrize("page", ["corpus.md", "edits.md", "evograph.md"])
def test_example_at_the_end_of_a_page(page, tmp_path):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (code,) = blocks(text, "python")
    _, after = text.split("prints\n\n")
    assert run_code(code, tmp_path) == "".join(f"{line[4:]}\n" for line in after.rstrip().split("\n"))


@pytest.mark.parametrize("page", ["graph-counselor.md", "grbench.md", "notebook.md"])
def test_example_with_its_output(page, tmp_path):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (code,) = blocks(text, "python")
    _, after = text.split("It prints\n\n")
    assert run_code(code, tmp_path) == "".join(f"{line[4:]}\n" for line in after.rstrip().split("\n\n")[0].split("\n"))


def test_example_of_rewards_runs(tmp_path):
    text = (ROOT / "docs" / "trajectories.md").read_text(encoding="utf-8")
    (code,) = blocks(text, "python")
    _, after = text.split("prints\n\n")
    assert run_code(code, tmp_path) == "".join(f"{line[4:]}\n" for line in after.split("\n\n")[0].split("\n"))


def test_retrieval_example_runs(tmp_path):
    text = (ROOT / "docs" / "retrieval.md").read_text(encoding="utf-8")
    (code,) = blocks(text, "python")
    _, after = text.split("prints\n\n")
    assert run_code(code, tmp_path) == "".join(f"{line[4:]}\n" for line in after.split("\n\n")[0].split("\n"))


def test_environment_example_runs(tmp_path):
    text = (ROOT / "docs" / "evograph.md").read_text(encoding="utf-8")
    (code,) = blocks(text, "python")
    _, after = text.split("prints\n\n")
    assert run_code(code, tmp_path) == "".join(f"{line[4:]}\n" for line in after.rstrip().split("\n"))


@pytest.mark.parametrize("page", ["README.md", "docs/corpus.md"])
def test_transcript_of_the_demo_corpus(page, demo_corpus_answer):
    """The lines about an answer over the demo documents are those of the output, of which some are left out."""
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = [
        line[4:]
        for line in text.split("\n")
        if line.startswith(("    Nils Aaberg (", "      fact ", "      path   Sandrey ──"))
    ]
    assert len(shown) >= 3 and not set(shown) - set(demo_corpus_answer.split("\n"))


@pytest.fixture(scope="module")
def demo_corpus_answer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    run_cli("corpus", "build", "--demo", "--into", "corpus", cwd=folder)
    return run_cli("ask", "Who is the architect of the lighthouse of Sandrey?", "--graph", "corpus", cwd=folder).out


def test_transcript_of_graph_counselor(tmp_path):
    """The lines of the answer are those of the output, of which some are left out."""
    text = (ROOT / "docs" / "graph-counselor.md").read_text(encoding="utf-8")
    question = "How many films did James Cameron direct?"
    count = "Count[Neighbour[James Cameron, film (as director)]]"
    agent = CounselorAgent({question: GoldProgram(("Retrieve[James Cameron]", count, "Finish[3]"))})
    with ScriptedServer(agent) as server:
        options = ("--method", "counselor", "--llm", f"{server.url}#m", "--embeddings", "off")
        done = run_cli("ask", question, *options, cwd=tmp_path)
    block = text.partition(question)[2].partition("\n(shortened)")[0]
    shown = [line.removeprefix("    ").replace("steps ", "").strip() for line in block.split("\n")[1:] if line.strip()]
    assert len(shown) == 8 and [line for line in shown if line not in done.out] == []


def test_method_example_answers(tmp_path, monkeypatch):
    """The method of docs/new-method.md, in a package with an entry point, answers on the command line."""
    text = (ROOT / "docs" / "new-method.md").read_text(encoding="utf-8")
    code, _ = blocks(text, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 44
    (tmp_path / "two_hops.py").write_text(code, encoding="utf-8")
    info = tmp_path / "two_hops-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: two-hops\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[kgqa.methods]\ntwo-hops = two_hops:two_hops\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    gold = Gold((frozenset({"[E1] -> directed by"}),))
    with ScriptedServer(ModelOracle({"": gold})) as server:
        options = ("--method", "two-hops", "--llm", f"{server.url}#oracle")
        done = run_cli("ask", "Who directed the film Parasite?", *options, cwd=tmp_path)
    assert "Bong Joon-ho" in done.out, done.out + done.err


def test_transcript_equals_the_output(tmp_path):
    lines = README.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("    $ kgqa ask"))
    command = shlex.split(lines[start].strip()[2:])
    end = next(i for i in range(start + 1, len(lines)) if lines[i] and not lines[i].startswith("    "))
    shown = "\n".join(line[4:] for line in lines[start + 1 : end]).strip()
    done = run_cli(*command[1:], cwd=tmp_path, COLUMNS="120")

    def without_seconds(text: str) -> str:
        return re.sub(r"[\d.]+ s$", "N s", text.strip(), flags=re.MULTILINE)

    assert without_seconds(done.out) == without_seconds(shown)


def test_paths_in_the_docs_exist():
    """Files named in the docs and in CONTRIBUTING.md, in backticks: `kgqa/model.py`, `tests/graph/`, `prompts/top/*.j2`."""
    missing, found = [], 0
    for file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for path in re.findall(
            r"`((?:kgqa|tests|scripts|benchmarks|prompts|queries|virtuoso|docs)/[\w./*-]*)`", file.read_text()
        ):
            found += 1
            if not any(ROOT.glob(re.sub("NAME|METHOD", "*", path.rstrip("/")))):
                missing.append(f"{file.name}: {path}")
    assert missing == [] and found > 60


def test_modules_in_the_docs_exist():
    """Names such as `kgqa.model.Answer`, in backticks or imported by an example, can be imported."""
    for file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = file.read_text(encoding="utf-8")
        groups = ("kgqa.stores", "kgqa.methods", "kgqa.choosers", "kgqa.datasets", "kgqa.web_searches")
        for name in re.findall(r"`(kgqa(?:\.\w+)+)[`(]", text):
            if name not in groups and not name.endswith((".toml", ".py")):
                pkgutil.resolve_name(name)
        for module, names in re.findall(r"^ *from (kgqa[\w.]*) import (.+)$", text, re.MULTILINE):
            for name in names.split(","):
                pkgutil.resolve_name(f"{module}:{name.strip()}")


def test_commands_in_the_docs_exist():
    """Every `kgqa ...` line in the docs parses, including its options."""
    from kgqa.cli.main import cli

    found = 0
    for file in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for line in re.findall(r"^    (?:\$ )?(kgqa .*)$", file.read_text(encoding="utf-8"), re.MULTILINE):
            words = shlex.split(re.split(r" [<>|] | +# ", line)[0].replace("...", "x"))[1:]
            command, context = cli, cli.make_context("kgqa", [], resilient_parsing=True)
            while words and hasattr(command, "get_command") and command.get_command(context, words[0]):
                command = command.get_command(context, words.pop(0))
            command.make_context("kgqa", words, resilient_parsing=False)
            found += 1
    assert found >= 8


def test_answer_keys_are_documented():
    from kgqa.model import Answer, Question

    documented = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "answer-json.md").read_text(), re.MULTILINE))
    assert documented == set(answer_object(Answer(Question("x"), "failed"), trace=True))


def test_schema_keys_are_documented_and_the_example_loads():
    text = (ROOT / "docs" / "schemas.md").read_text()
    rows = "\n".join(line for line in text.splitlines() if line.startswith("| `"))
    documented = set(re.findall(r"`(\w+\.\w+)`", rows))
    assert set(_KEYS.values()) <= documented
    assert parse_schema(blocks(text, "toml")[0]).name == "library"


def test_readme_is_short():
    assert len(README.splitlines()) <= 200


def test_make_help_lists_the_main_targets():
    done = subprocess.run(["make", "help"], capture_output=True, text=True, cwd=ROOT, timeout=60)
    for target in ("setup", "demo", "check", "test", "soak", "lint", "bench", "clean"):
        assert f"make {target}" in done.stdout


def test_make_demo_ends_with_what_comes_next():
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "demo"], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert "make serve" in done.stdout.splitlines()[-1]


@pytest.mark.cli
def test_make_installs_what_a_target_needs_once(tmp_path):
    def plan(target: str) -> str:
        command = ["make", "--dry-run", "--no-print-directory", f"VENV={tmp_path}", target]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "[chat,onnx,openai,serve]'" in plan("demo") and "minilm,test]" not in plan("demo")
    (tmp_path / ".installed-demo").touch()
    assert [plan(target).count("pip install") for target in ("demo", "serve", "check")] == [0, 0, 1]
    (tmp_path / ".installed-demo").unlink()
    (tmp_path / ".installed").touch()
    assert [plan(target).count("pip install") for target in ("demo", "serve", "check")] == [0, 0, 0]
