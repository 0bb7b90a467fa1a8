"""Architecture: layers, import circles, folder sizes, lazy imports and print."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import kgqa
from kgqa.methods.registry import method

PACKAGE = Path(kgqa.__file__).parent
# Top to bottom. Packages of one layer do not import each other.
LAYERS = (
    "__main__",
    "cli testing",
    "serve",
    "report doctor",
    "evaluation",
    "methods training virtuoso",
    "search corpus",
    "llm",
    "rank graph",
)
PACKAGE_LAYERS = {package: number for number, packages in enumerate(LAYERS) for package in packages.split()}
BASE_PACKAGES = ("", "demo", "model", "settings", "trace", "storage", "net", "text")
HEAVY = {"torch", "sentence_transformers", "transformers", "onnx", "onnxruntime", "rdflib", "openai", "vllm"}
HEAVY |= {"rank_bm25", "huggingface_hub", "bm25s", "scipy", "graspologic_native", "lancedb", "pyarrow", "ray"}
HEAVY |= {"pypdfium2", "docx", "lxml", "markdown_it", "pathspec", "sentencex", "charset_normalizer"}
FILES = {".".join(["kgqa", *file.relative_to(PACKAGE).with_suffix("").parts]): file for file in PACKAGE.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): file for name, file in FILES.items()}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"), str(MODULES[module]))


def imported(node: ast.AST) -> set[str]:
    """Return the modules imported anywhere in a node, including functions and TYPE_CHECKING blocks."""
    found = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            found |= {alias.name for alias in child.names}
        elif isinstance(child, ast.ImportFrom):
            assert not child.level, "imports are absolute"
            names = {f"{child.module}.{alias.name}" for alias in child.names}
            found |= {name if name in MODULES else str(child.module) for name in names}
    return found


def needed(module: str) -> set[str]:
    return {name for name in imported(tree(module)) if name in MODULES} - {module}


def layer(module: str) -> tuple[int, str]:
    """Return the number of a module's layer (0 is the top) and its package; base modules are below all packages."""
    package = f"{module}.".split(".")[1]
    assert package in PACKAGE_LAYERS or not (PACKAGE / package).is_dir() or package in BASE_PACKAGES, (
        f"{package} is in no layer"
    )
    return (PACKAGE_LAYERS[package], package) if package in PACKAGE_LAYERS else (len(LAYERS), "")


def circles(needs: dict[str, set[str]]) -> list[str]:
    """Return the nodes on import circles or between two circles."""
    while True:
        wanted = set().union(*needs.values()) & needs.keys()
        rest = {
            name: others & needs.keys() for name, others in needs.items() if name in wanted and others & needs.keys()
        }
        if rest.keys() == needs.keys():
            return sorted(needs)
        needs = rest


def on_import(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the imports that run when a module is imported, outside functions and TYPE_CHECKING blocks."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            found += on_import(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found += on_import([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)])
            found += [stmt for handler in getattr(node, "handlers", []) for stmt in on_import(handler.body)]
    return found


def test_imports_go_down_without_circles():
    wrong = []
    for module in MODULES.keys() - {"kgqa"}:
        (number, package), others = layer(module), needed(module)
        wrong += [
            f"{module} imports {other}" for other in others if layer(other)[1] != package and layer(other)[0] <= number
        ]
    assert wrong == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"c"}, "e": set()}) == ["b", "c"]
    # `kgqa/__init__.py` names modules above it for type checkers only.
    assert circles({module: needed(module) for module in MODULES.keys() - {"kgqa"}}) == []


def test_no_method_is_named_below_methods():
    """A string that is the name of a method, or of a setting of a method, stands in no room below `methods/`."""
    points = entry_points(group="kgqa.methods")
    names = {point.name for point in points if point.dist is not None and point.dist.name == "kgqa"}
    assert len(names) >= 6
    sections = {declared.section_name for name in names if (declared := method(name).settings)}
    named = [
        f"{module}, line {node.lineno}: {node.value}"
        for module in MODULES.keys() - {"kgqa"}
        if layer(module)[0] > PACKAGE_LAYERS["methods"]
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value in names or (node.value.partition(".")[0] in sections and "." in node.value.strip())
    ]
    # "top" is also a key of JSON replies
    assert [each for each in named if not each.startswith("kgqa.llm.replies.indices, ")] == []


def test_folders_hold_four_to_fourteen_modules():
    modules = Counter(str(file.parent.relative_to(PACKAGE)) for name, file in FILES.items() if "__init__" not in name)
    least = {"methods/published": 1}  # one module per publication
    wrong = {folder: count for folder, count in modules.items() if not least.get(folder, 4) <= count <= 14}
    assert wrong.keys() <= {"."}


def test_heavy_libraries_are_lazy_and_only_cli_prints():
    heavy = {
        module: names
        for module in MODULES
        if (names := {name.split(".")[0] for node in on_import(tree(module).body) for name in imported(node)} & HEAVY)
    }
    # imported only when such a store is opened
    assert heavy == {"kgqa.testing.rdflib_store": {"rdflib"}}
    printing = {
        module
        for module in MODULES
        if layer(module)[1] not in ("cli", "demo")
        and any(isinstance(node, ast.Name) and node.id == "print" for node in ast.walk(tree(module)))
    }
    assert printing == set()
