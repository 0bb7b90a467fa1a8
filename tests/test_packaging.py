"""The package: setup.cfg lists what there is, and a wheel built from the tree answers a question from any folder."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA_PACKAGES = {"kgqa.prompts": "prompts", "kgqa.queries": "queries", "kgqa.virtuoso_files": "virtuoso"}
NO_DATA = {".py", ".pyc", ".md", ".tsv"}


def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


def checked_in() -> list[str]:
    """The files of the tree: what git knows or would take in, and what is still there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that knows nothing of this checkout nor of the user's settings."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KGQA_", "PIP_", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**bare, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


# ---- setup.cfg ----


def test_the_listed_packages_are_those_that_exist():
    listed = setup_cfg()["options"]["packages"].split()
    code = [Path(name) for name in checked_in() if name.startswith("kgqa/")]
    existing = {str(path.parent).replace("/", ".") for path in code if path.name == "__init__.py"}
    assert sorted(listed) == sorted(existing | set(DATA_PACKAGES))


def test_the_data_packages_stand_at_the_top_of_the_tree():
    lines = setup_cfg()["options"]["package_dir"].strip().splitlines()
    assert {
        name.strip(): folder.strip() for name, _, folder in (line.partition("=") for line in lines)
    } == DATA_PACKAGES
    assert all((ROOT / folder).is_dir() for folder in DATA_PACKAGES.values())


def test_every_python_file_is_in_a_package():
    for name in checked_in():
        if name.startswith("kgqa/") and name.endswith(".py"):
            assert (ROOT / name).with_name("__init__.py").is_file(), name


# ---- the wheel ----


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    tree = place / "tree"
    for name in checked_in():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, tree, cwd=place)
    (built,) = place.glob("kgqa-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The `bin` of an empty virtual environment that holds this wheel; what it depends on comes from ours.

    A path in a .pth file is searched as it is: the .pth files that lie there, such as that of an editable
    install of this checkout, are not obeyed.
    """
    place = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", place / "venv", cwd=place)
    python = place / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=place)
    (library,) = (place / "venv").glob("lib/python*/site-packages")
    ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    assert ours
    (library / "dependencies_of_the_tests.pth").write_text("\n".join(ours) + "\n")
    return python.parent


def test_the_wheel_holds_all_code_and_data(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = set()
    for name in checked_in():
        top = name.split("/")[0]
        if top in DATA_PACKAGES.values() and Path(name).suffix not in NO_DATA:
            wanted.add(f"kgqa/{name}")
        elif top == "kgqa":
            wanted.add(name)
    assert wanted - inside == set()
    assert {name for name in inside if not name.startswith(("kgqa/", "kgqa-"))} == set()  # no tests, no benchmarks


def test_the_wheel_carries_the_licence_and_the_command(wheel):
    archive = zipfile.ZipFile(wheel)
    texts = {name.split("/")[-1]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "LICENSE" in texts
    assert "kgqa = kgqa.cli.main:main" in archive.read(texts["entry_points.txt"]).decode()


def test_the_new_environment_imports_its_own_copy(installed, tmp_path):
    code = "import kgqa, kgqa.cli, importlib.resources as r; print(kgqa.__file__, r.files('kgqa.queries'), sep='\\n')"
    printed = run(installed / "python", "-c", code, cwd=tmp_path).stdout.split("\n")
    for path in printed[:2]:
        assert Path(path).resolve().is_relative_to(installed.parent.resolve())


def test_the_installed_command_answers_from_another_folder(installed, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    done = run(
        installed / "kgqa",
        "ask",
        "Who directed the film Parasite?",
        "--json",
        cwd=home,
        HOME=str(home),
        XDG_CONFIG_HOME=str(home),
        KGQA_CACHE_FOLDER=str(tmp_path / "cache"),
        KGQA_RANK_EMBEDDINGS="off",
    )
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["query_class"], answer["grounding"]) == ("answered", "exact", "graph")
    assert [each["name"] for each in answer["answers"]] == ["Bong Joon-ho"]
    assert os.listdir(home) == []


def test_every_command_of_the_installed_package_has_help(installed, tmp_path):
    names = [line.split()[0] for line in _commands(run(installed / "kgqa", "--help", cwd=tmp_path).stdout)]
    assert "ask" in names
    for name in names:
        assert "Usage: kgqa" in run(installed / "kgqa", name, "--help", cwd=tmp_path).stdout


def _commands(text: str) -> list[str]:
    lines = text.partition("Commands:\n")[2].split("\n\n")[0].splitlines()
    return [line for line in lines if line.startswith("  ") and not line.startswith("   ")]
