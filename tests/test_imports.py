"""Imports go down, never up; heavy libraries wait until they are needed; only the command line prints."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kgqa
import kgqa.virtuoso

PACKAGE = Path(kgqa.__file__).parent
# a room that stands beside the package in the tree, and in it once it is installed
VIRTUOSO = Path(kgqa.virtuoso.__file__).parent

# top to bottom; the rooms of one layer do not import each other, the base modules do
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(rooms.split())
    for rooms in (
        "cli testing",
        "report",
        "evaluation",
        "methods",
        "explore corpus virtuoso",
        "llm",
        "rank graph",
        "cache trace words workers schema servers plugins settings settings_table answer_json lock_files toml_text foreign_json errors model",
    )
)
BASE = LAYERS[-1]
EXEMPT = ("__init__.py", "demo")
HEAVY = {
    "torch",
    "sentence_transformers",
    "transformers",
    "onnx",
    "onnxruntime",
    "rdflib",
    "openai",
    "vllm",
    "rank_bm25",
    "huggingface_hub",
}
FILES = sorted(
    {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")}
    | {f"virtuoso/{file.relative_to(VIRTUOSO).as_posix()}" for file in VIRTUOSO.rglob("*.py")}
)
CHECKED = [file for file in FILES if file.split("/")[0] not in EXEMPT]


def room_of(file: str) -> str:
    """`graph/store.py` stands in the room `graph`, `words.py` is one by itself."""
    return file.split("/")[0].removesuffix(".py")


def layer_of(room: str) -> int | None:
    """0 for the top; None where the room stands in no layer."""
    return next((number for number, rooms in enumerate(LAYERS) if room in rooms), None)


def parsed(file: str) -> ast.Module:
    path = VIRTUOSO.parent / file if file.startswith("virtuoso/") else PACKAGE / file
    return ast.parse(path.read_text(encoding="utf-8"), file)


def imported_modules(tree: ast.AST, file: str) -> set[str]:
    """Full names of all modules that are imported anywhere, in functions and under TYPE_CHECKING too."""
    package = ["kgqa", *file.split("/")[:-1]]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from kgqa import words` imports a room, `from kgqa.words import clean` a name in one
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "kgqa" else {module}
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(str(node.args[0].value))
    return found


def imported_rooms(tree: ast.AST, file: str) -> set[str]:
    names = {name.split(".")[1] for name in imported_modules(tree, file) if name.startswith("kgqa.")}
    return {
        name for name in names if name == "virtuoso" or (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
    }


def complaint(file: str, room: str) -> str | None:
    """Why this file may not import from that room, None if it may."""
    own = room_of(file)
    if room == own or (own in BASE and room in BASE) or (room == "demo" and own == "graph"):
        return None
    below, here = layer_of(room), layer_of(own)
    if below is None or here is None:
        return f"{file} imports {room}: one of the two stands in no layer"
    return None if below > here else f"{file} imports {room}, which stands beside or above {own}"


def test_every_room_stands_in_a_layer():
    assert CHECKED
    assert {room_of(file) for file in CHECKED if layer_of(room_of(file)) is None} == set()


@pytest.mark.parametrize("file", CHECKED)
def test_imports_go_down(file):
    complaints = [complaint(file, room) for room in sorted(imported_rooms(parsed(file), file))]
    assert [each for each in complaints if each] == []


def test_base_modules_do_not_go_round_in_circles():
    graph = {room: imported_rooms(parsed(f"{room}.py"), f"{room}.py") - {room} for room in BASE}
    while graph:
        leaves = {room for room, needs in graph.items() if not needs & graph.keys()}
        assert leaves, f"a circle among {sorted(graph)}"
        graph = {room: needs for room, needs in graph.items() if room not in leaves}


@pytest.mark.parametrize(
    ("file", "source", "rooms"),
    [
        ("rank/x.py", "from kgqa.graph.store import Store", {"graph"}),
        ("rank/x.py", "import kgqa.graph.store", {"graph"}),
        ("rank/x.py", "from kgqa import graph, words", {"graph", "words"}),
        ("rank/x.py", "from ..graph import store", {"graph"}),
        ("rank/x.py", "from .. import graph", {"graph"}),
        ("rank/x.py", "from . import lexical", {"rank"}),
        ("words.py", "from .graph import store", {"graph"}),
        ("rank/x.py", "def f():\n    from kgqa.graph import store", {"graph"}),
        ("rank/x.py", "if TYPE_CHECKING:\n    from kgqa.graph import store", {"graph"}),
        ("rank/x.py", "import_module('kgqa.graph.store')", {"graph"}),
        ("rank/x.py", "import numpy as np\nfrom kgqa import __version__", set()),
    ],
)
def test_the_reader_of_imports_sees_them_all(file, source, rooms):
    assert imported_rooms(ast.parse(source), file) == rooms


@pytest.mark.parametrize(
    ("file", "room", "allowed"),
    [
        ("cli/ask.py", "methods", True),
        ("explore/beam.py", "rank", True),
        ("explore/beam.py", "graph", True),
        ("graph/demo.py", "demo", True),
        ("words.py", "schema", True),
        ("explore/beam.py", "corpus", False),
        ("virtuoso/server.py", "graph", True),
        ("virtuoso/server.py", "explore", False),
        ("virtuoso/server.py", "methods", False),
        ("graph/endpoint.py", "virtuoso", False),
        ("rank/lexical.py", "graph", False),
        ("graph/store.py", "rank", False),
        ("cache.py", "graph", False),
        ("report/answer.py", "cli", False),
        ("cli/ask.py", "testing", False),
        ("methods/top.py", "evaluation", False),
        ("rank/lexical.py", "demo", False),
        ("graph/store.py", "unheard_of", False),
    ],
)
def test_the_rule_itself(file, room, allowed):
    assert (complaint(file, room) is None) is allowed


def at_module_level(tree: ast.Module) -> list[ast.stmt]:
    """The statements that run on import: not the bodies of functions, nor what is only for type checkers."""
    found, todo = [], list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        found.append(node)
        todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.excepthandler))]
    return found


@pytest.mark.parametrize("file", FILES)
def test_heavy_libraries_wait_until_they_are_needed(file):
    statements = [node for node in at_module_level(parsed(file)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {name.split(".")[0] for node in statements for name in imported_modules(node, file)}
    assert names & HEAVY == set()


def test_module_level_means_what_runs_on_import():
    source = """
try:
    import torch
except ImportError:
    import vllm
class A:
    import openai
    def f(self):
        import rdflib
if TYPE_CHECKING:
    import onnxruntime
"""
    statements = [node for node in at_module_level(ast.parse(source)) if isinstance(node, ast.Import)]
    assert {name for node in statements for name in imported_modules(node, "x.py")} == {"torch", "vllm", "openai"}


def uses_print(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "print" for node in ast.walk(tree))


@pytest.mark.parametrize("file", [file for file in FILES if room_of(file) not in ("cli", "demo")])
def test_only_the_command_line_prints(file):
    assert not uses_print(parsed(file))
