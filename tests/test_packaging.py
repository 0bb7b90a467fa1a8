"""Packaging: setup.cfg lists every package, and sdist, wheel and editable install work outside the checkout."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

import kgqa
from scripts.smoke import use

pytest.importorskip("setuptools", minversion="77.0.3")

ROOT = Path(__file__).parents[1]
DATA_PACKAGES = {"kgqa.prompts": "prompts", "kgqa.queries": "queries", "kgqa.virtuoso_files": "virtuoso"}
NOT_INSTALLED = {".md"}
"""Suffixes of files that a data package need not contain."""
BROUGHT_BY = {
    "h11": "uvicorn",
    "httpx2": "openai",
    "markupsafe": "jinja2",
    "mcp_types": "mcp",
    "pydantic": "fastapi",
    "starlette": "fastapi",
    "torch": "sentence-transformers",
    "transformers": "sentence-transformers",
}
"""Packages that are imported and not listed in setup.cfg, and the dependency that requires them."""
CHECK_INSTALLATION = """
from importlib import import_module
from importlib.resources import files
import kgqa, kgqa.virtuoso, kgqa.virtuoso.server
from kgqa.cli.main import COMMANDS, cli
for name in COMMANDS:
    assert cli.get_command(None, name).help, name
names = {each.name for each in files("kgqa.virtuoso_files").iterdir()}
assert "install.sh" in names and any(name.endswith(".tmpl") for name in names), names
assert not any(name.endswith(".sh") for name in {each.name for each in files("kgqa.virtuoso").iterdir()})
print(kgqa.__file__, files("kgqa.queries"), files("kgqa.virtuoso_files"), files("kgqa.virtuoso"), sep="\\n")
"""


def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


def source_files() -> list[str]:
    """The files of the checkout that git tracks or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command without this checkout and the user's settings in its environment."""
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


def test_setup_cfg_lists_every_package():
    listed = setup_cfg()["options"]["packages"].split()
    code = [Path(name) for name in source_files() if name.startswith("kgqa/")]
    existing = {str(path.parent).replace("/", ".") for path in code if path.name == "__init__.py"}
    assert sorted(listed) == sorted(existing | set(DATA_PACKAGES))
    assert {str(path.parent) for path in code if path.suffix == ".py"} == {name.replace(".", "/") for name in existing}


def test_data_packages_are_top_level_folders():
    lines = setup_cfg()["options"]["package_dir"].strip().splitlines()
    assert {
        name.strip(): folder.strip() for name, _, folder in (line.partition("=") for line in lines)
    } == DATA_PACKAGES
    assert all((ROOT / folder).is_dir() for folder in DATA_PACKAGES.values())


# ---- sdist, wheel, editable install ----


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the checkout without untracked files."""
    tree = tmp_path_factory.mktemp("tree")
    for name in source_files():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    return tree


@pytest.fixture(scope="module")
def built(tree, tmp_path_factory) -> tuple[Path, Path]:
    """An sdist, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, tree, cwd=folder)
    (sdist,), (wheel,) = folder.glob("kgqa-*.tar.gz"), folder.glob("kgqa-*.whl")
    return sdist, wheel


def installed(folder: Path, *package: str | Path) -> Path:
    """The `bin` of a new virtual environment with this package; dependencies come from the environment of the tests.

    Python reads no .pth files in folders that a .pth file adds, so the editable install of this checkout has no effect.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    (library,) = (folder / "venv").glob("lib/python*/site-packages")
    dependencies = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (library / "dependencies_of_the_tests.pth").write_text("\n".join(dependencies) + "\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", *package, cwd=folder)
    return python.parent


@pytest.fixture(scope="module")
def from_wheel(built, tmp_path_factory) -> Path:
    return installed(tmp_path_factory.mktemp("wheel"), built[1])


@pytest.mark.slow
def test_sdist_and_wheel_contain_all_code_and_data(built):
    sdist, wheel = built
    expected = set()
    for name in source_files():
        package = next((p for p, folder in DATA_PACKAGES.items() if name.startswith(f"{folder}/")), "")
        if package and Path(name).suffix not in NOT_INSTALLED:
            expected.add(package.replace(".", "/") + name[name.index("/") :])
        elif name.startswith("kgqa/"):
            expected.add(name)
    archive = zipfile.ZipFile(wheel)
    inside = set(archive.namelist())
    assert expected - inside == set()
    assert {name for name in inside - expected if not name.startswith("kgqa-")} == set()  # no tests, no benchmarks
    texts = {name.split("/")[-1]: name for name in inside if ".dist-info/" in name}
    assert "kgqa = kgqa.cli.main:main" in archive.read(texts["entry_points.txt"]).decode()
    sources = {name.partition("/")[2] for name in tarfile.open(sdist).getnames()}
    assert {name for name in source_files() if not name.startswith(".")} - sources == set()


@pytest.mark.slow
def test_installed_wheel(from_wheel, tmp_path):
    printed = run(from_wheel / "python", "-c", CHECK_INSTALLATION, cwd=tmp_path).stdout.split()
    assert len(printed) == 4
    assert all(Path(path).resolve().is_relative_to(from_wheel.parent.resolve()) for path in printed)


@pytest.mark.slow
def test_editable_install(tree, tmp_path):
    printed = run(
        installed(tmp_path, "--editable", tree) / "python", "-c", CHECK_INSTALLATION, cwd=tmp_path
    ).stdout.split()
    assert [Path(path).relative_to(tree).as_posix() for path in printed] == [
        "kgqa/__init__.py",
        "queries",
        "virtuoso",
        "kgqa/virtuoso",
    ]


@pytest.mark.slow
def test_installed_wheel_is_used_from_another_folder(from_wheel, tmp_path):
    use(from_wheel / "kgqa", tmp_path)


# ---- metadata, extras ----


@pytest.mark.slow
def test_metadata(built):
    archive = zipfile.ZipFile(built[1])
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = message_from_bytes(archive.read(name))
    assert metadata["Version"] == kgqa.__version__
    assert metadata["License-Expression"] == "Apache-2.0 AND CC-BY-2.5 AND CC0-1.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# kgqa\n")
    named = set(metadata.get_all("License-File"))
    assert {"LICENSE", "NOTICE", "kgqa/demo/LICENSE.md", "kgqa/schemas/freebase_mediators.LICENSE.md"} <= named


def test_licence_files_are_the_licences_of_the_package():
    """A licence that lies beside third-party files is named in setup.cfg and in NOTICE."""
    listed = set(setup_cfg()["metadata"]["license_files"].split())
    licences = {n for n in source_files() if n.startswith("kgqa/") and "licen" in Path(n).name.lower()}
    assert {"LICENSE", "NOTICE"} | licences == listed
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert [name for name in sorted(licences) if name not in notice] == []


def test_imported_packages_are_dependencies():
    """In an environment with more packages, an import that setup.cfg forgets works, and fails for users."""
    config = setup_cfg()
    lists = {"": config["options"]["install_requires"], **config["options.extras_require"]}
    lines = [line for name, text in lists.items() if name not in ("lint", "test") for line in text.split("\n") if line]
    declared = {distribution(line) for line in lines}
    imported = set()
    for file in source_files():
        if file.startswith("kgqa/") and file.endswith(".py"):
            for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    imported.add(str(node.module).split(".")[0])
    known = packages_distributions()
    forgotten = {
        name
        for name in imported - set(sys.stdlib_module_names) - {"kgqa"}
        if not declared & {distribution(each) for each in known.get(name, [name])}
    }
    assert forgotten == set(BROUGHT_BY)
    assert set(BROUGHT_BY.values()) <= declared
    for name, package in BROUGHT_BY.items():
        assert distribution(known[name][0]) in {distribution(each) for each in requires(package) or ()}


def distribution(requirement: str) -> str:
    """The normalised name at the beginning of a requirement."""
    return re.sub(r"[-_.]+", "-", re.match(r"\s*([\w.-]+)", requirement)[1]).lower()


def test_every_extra_is_described():
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)
    extras = setup_cfg()["options.extras_require"]
    assert sorted(described) == sorted(extras)
    for name, row in re.findall(r"^\| `([\w-]+)` \|(.*)", page, re.MULTILINE):
        main_package = re.match(r"[\w-]+", extras[name].split()[0])[0]
        assert main_package in row or main_package == "kgqa", f"{name}: {main_package}"


def test_extra_all_has_every_extra_for_users():
    extras = setup_cfg()["options.extras_require"]
    contained = set(re.fullmatch(r"\s*kgqa\[(.*)\]", extras["all"])[1].split(","))
    # minilm contains onnx and sbert
    assert contained == set(extras) - {"all", "lint", "onnx", "sbert", "test", "vllm"}
