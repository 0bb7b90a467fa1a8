"""The tools that the language model is told of: their names, what they do, and JSON schemas of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

IMAGE_QUERY = "<img>"
"""The query that stands for the image of the question."""
EDITS = ("insert", "update", "delete")
PUBLISHED_NAMES: Mapping[str, str] = {"kb_search": "graph_search"}
"""The names of tools in the published code that differ from ours."""
_QUERY = {"type": "string", "description": "words of the text that is looked for"}
_CONTENT = {"type": "string", "description": "one plain sentence that can be understood alone, at most 500 characters"}
_SOURCES = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "the numbers of the results that say so",
}
_TARGET = {"type": ["integer", "string"], "description": "the number of the result, or its whole text"}
_IMAGE_HINT = f" The query {IMAGE_QUERY} finds what the image shows."
_OURS: Mapping[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "graph_search": ("Searches the knowledge base.", {"query": _QUERY}, ("query",)),
    "web_search": ("Searches the web, for what the knowledge base lacks.", {"query": _QUERY}, ("query",)),
    "insert": (
        "Adds a fact that results state and the knowledge base lacks.",
        {"content": _CONTENT, "sources": _SOURCES},
        ("content", "sources"),
    ),
    "update": (
        "Replaces a hyperedge that is wrong, vague or out of date.",
        {"target": _TARGET, "new_content": _CONTENT, "sources": _SOURCES},
        ("target", "new_content", "sources"),
    ),
    "delete": (
        "Hides a hyperedge that another result contradicts.",
        {
            "target": _TARGET,
            "reason": {"type": "string", "description": "why it is wrong"},
            "sources": {**_SOURCES, "description": "the numbers of the results that contradict it"},
        },
        ("target", "reason"),
    ),
}
_PUBLISHED: Mapping[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "graph_search": ("Searches the knowledge base.", {"query": _QUERY}, ("query",)),
    "web_search": ("Searches the web.", {"query": _QUERY}, ("query",)),
    "insert": ("Adds a fact to the knowledge base.", {"content": _CONTENT}, ("content",)),
    "update": (
        "Replaces the text of a fact in the knowledge base.",
        {"content": {"type": "string", "description": "the present text"}, "new_content": _CONTENT},
        ("content", "new_content"),
    ),
    "delete": (
        "Takes weight from a wrong fact in the knowledge base.",
        {"content": {"type": "string", "description": "its text"}},
        ("content",),
    ),
}


def tool_schemas(names: Sequence[str], *, published: bool = False, image: bool = False) -> list[dict[str, Any]]:
    """Return the schemas of some tools, in the order of the table.

    Args:
        names: The tools, by our names.
        published: Whether they have the arguments and names of the published code.
        image: Whether the question has an image.
    """
    published_name = {ours: name for name, ours in PUBLISHED_NAMES.items()}
    found = []
    for name, (about, properties, required) in (_PUBLISHED if published else _OURS).items():
        if name in names:
            shown = published_name.get(name, name) if published else name
            hint = _IMAGE_HINT if image and name == "graph_search" else ""
            parameters = {
                "type": "object",
                "properties": properties,
                "required": list(required),
                "additionalProperties": False,
            }
            found.append({"name": shown, "description": about + hint, "parameters": parameters})
    return found
