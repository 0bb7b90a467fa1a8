"""The tools as an environment for trainers: a class with one method a tool, and `reset`. It needs no language model.

    Environment = make_environment("corpus/", web="replay:web.jsonl")
    environment = Environment()
    environment.reset(question="Where was Ada Lovelace born?")
    environment.graph_search("Ada Lovelace birthplace")

Each object is a session of its own, whose edits no other object sees and nothing keeps. The class fits the argument
`environment_factory` of the trainers of TRL: the methods are the tools, with their types and docstrings.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.errors import SettingsError
from kgqa.llm.replies.tool_calls import checked_arguments
from kgqa.methods.ask import cache_of
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.tools import SCHEMAS, EvographTools, allowed_tools
from kgqa.methods.evograph.web import WebSearch, opened_web_search
from kgqa.rank.embedding.encoder import encoder_of
from kgqa.settings.values import preset_names, resolve
from kgqa.text.words import clean
from kgqa.trace.trace import Trace


class Environment:
    """A session of tools. `make_environment` makes classes of it with the tools as methods."""

    _parts: ClassVar[tuple[Corpus, EvographSettings, WebSearch | None]]

    def __init__(self) -> None:
        self.reset()

    def reset(self, question: Any = "", **row: Any) -> None:
        """Begin a new session; what the last one has shown and edited is forgotten.

        Args:
            question: The question, a text or the messages of a chat.
            row: Other columns of a data set, which are ignored.
        """
        corpus, settings, web = self._parts
        text = question if isinstance(question, str) else ""
        self.trace = Trace()
        """The events of the session."""
        self._tools = EvographTools(Overlay(corpus, question=text, agent="environment"), settings, self.trace, web)


def call_tool(environment: Environment, name: str, arguments: Mapping[str, Any]) -> str:
    """Call a tool of an environment by its name, and return what it shows, as text."""
    schema = next((each for each in SCHEMAS if each["name"] == name), None)
    if schema is None:
        return f"There is no tool {clean(name)}."
    try:
        checked, _ = checked_arguments(arguments, schema)
    except ValueError as problem:
        return str(problem)
    found = environment._tools.call(name, checked)
    return "\n".join([*found.notes, *found.lines])


class _ToolMethods(Environment):
    """Every tool as a method; trainers make the JSON schemas of tools from the types and docstrings of methods."""

    def graph_search(self, query: str) -> str:
        """Search the knowledge base.

        Args:
            query: Words of the text that is looked for.

        Returns:
            JSON lines with number, text, kind, trust and score.
        """
        return call_tool(self, "graph_search", {"query": query})

    def web_search(self, query: str) -> str:
        """Search the web, for what the knowledge base lacks.

        Args:
            query: Words of the text that is looked for.

        Returns:
            JSON lines with number, text, kind, trust and score.
        """
        return call_tool(self, "web_search", {"query": query})

    def insert(self, content: str, sources: list[int]) -> str:
        """Add a fact that results state and the knowledge base lacks.

        Args:
            content: One plain sentence that can be understood alone.
            sources: The numbers of the results that say so.

        Returns:
            What became of it.
        """
        return call_tool(self, "insert", {"content": content, "sources": sources})

    def update(self, target: int, new_content: str, sources: list[int]) -> str:
        """Replace a hyperedge that is wrong, vague or out of date.

        Args:
            target: The number of the result.
            new_content: One plain sentence that can be understood alone.
            sources: The numbers of the results that say so.

        Returns:
            What became of it.
        """
        return call_tool(self, "update", {"target": target, "new_content": new_content, "sources": sources})

    def delete(self, target: int, reason: str) -> str:
        """Hide a hyperedge that another result contradicts.

        Args:
            target: The number of the result.
            reason: Why it is wrong.

        Returns:
            What became of it.
        """
        return call_tool(self, "delete", {"target": target, "reason": reason})


def make_environment(corpus: Path | str, **given: Any) -> type[Environment]:
    """Return a class whose objects are sessions over a corpus.

    Args:
        corpus: The folder of a corpus.
        given: Settings of the tools by their names without the section, such as `web="replay:web.jsonl"` or
            `results=5`; others as for `open_resources`.

    Raises:
        SettingsError: A setting is wrong.
        CorpusError: There is no corpus.
    """
    tools = ("web", "tools", "results", "domains")
    named = {f"evograph.{name}" if name in tools else name: value for name, value in given.items()}
    settings = resolve({"ask.method": "evograph", **named})
    if "as-published" in preset_names(settings.ask.preset):
        raise SettingsError("The environment has our tools only.", "Leave out the preset as-published.")
    own, cache, opened = settings.of(EvographSettings), cache_of(settings), ExitStack()
    web = opened.enter_context(opened_web_search(own.web))
    parts = Corpus.open(corpus, cache=cache, encoder=encoder_of(settings.rank, cache)), own, web
    methods = {name: vars(_ToolMethods)[name] for name in allowed_tools(own, web)}
    about = {"__doc__": Environment.__doc__, "_parts": parts, "_opened": opened}  # what is opened lives as long
    return type("ToolEnvironment", (Environment,), {**about, **methods})
