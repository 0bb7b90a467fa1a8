"""The tools as an environment for trainers: a class with one method a tool, and `reset`. It needs no language model.

    Environment = make_environment("corpus/", web="replay:web.jsonl")
    environment = Environment()
    environment.reset(question="Where was Ada Lovelace born?")
    environment.graph_search("Ada Lovelace birthplace")

Each object is a session of its own, whose edits no other object sees and nothing keeps. The class fits the argument
`environment_factory` of the trainers of TRL: the methods are the tools, with their types and docstrings.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.errors import CorpusError, SettingsError
from kgqa.llm.replies.tool_calls import checked_arguments
from kgqa.methods.ask import cache_of
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.tools import SCHEMAS, Tools, allowed_tools
from kgqa.methods.evograph.web import WebSearch, opened_web_search
from kgqa.methods.resources import Resources
from kgqa.rank.embedding.encoder import encoder_of
from kgqa.settings.values import Settings, preset_names, resolve
from kgqa.text.hints import Hint
from kgqa.text.words import clean
from kgqa.trace.trace import Trace


class Environment:
    """A session of tools. `make_environment` makes classes of it with the tools as methods."""

    def __init__(self, corpus: Corpus, settings: EvographSettings, web: WebSearch | None) -> None:
        self._parts = corpus, settings, web
        self._lock = threading.Lock()
        self.reset()

    def reset(self, question: Any = "", **row: Any) -> None:
        """Begin a new session; what the last one has shown and edited is forgotten.

        Args:
            question: The question, a text or the messages of a chat.
            row: Other columns of a data set, which are ignored.
        """
        corpus, settings, web = self._parts
        text = question if isinstance(question, str) else ""
        with self._lock:
            self.trace = Trace()
            """The events of the session."""
            self._tools = Tools(text, corpus, settings, self.trace, web=web, agent="environment")

    def _call(self, name: str, **arguments: Any) -> str:
        """Call a tool and return what it shows, as text."""
        schema = next((each for each in SCHEMAS if each["name"] == name), None)
        if schema is None:
            return f"There is no tool {clean(name)}."
        try:
            checked, _ = checked_arguments(arguments, schema)
        except ValueError as problem:
            return str(problem)
        with self._lock:
            found = self._tools.call(name, checked)
            return "\n".join([*found.notes, *(result.line for result in found.results)])


def call_tool(environment: Environment, name: str, arguments: Mapping[str, Any]) -> str:
    """Call a tool by its name, as trainers do that read calls from replies."""
    return environment._call(name, **arguments)


class _ToolMethods(Environment):
    """Every tool as a method; trainers make the JSON schemas of tools from the types and docstrings of methods."""

    def graph_search(self, query: str) -> str:
        """Search the knowledge base.

        Args:
            query: Words of the text that is looked for.

        Returns:
            JSON lines with number, text, kind, trust and score.
        """
        return self._call("graph_search", query=query)

    def web_search(self, query: str) -> str:
        """Search the web, for what the knowledge base lacks.

        Args:
            query: Words of the text that is looked for.

        Returns:
            JSON lines with number, text, kind, trust and score.
        """
        return self._call("web_search", query=query)

    def insert(self, content: str, sources: list[int]) -> str:
        """Add a fact that results state and the knowledge base lacks.

        Args:
            content: One plain sentence that can be understood alone.
            sources: The numbers of the results that say so.

        Returns:
            What became of it.
        """
        return self._call("insert", content=content, sources=sources)

    def update(self, target: int, new_content: str, sources: list[int]) -> str:
        """Replace a hyperedge that is wrong, vague or out of date.

        Args:
            target: The number of the result.
            new_content: One plain sentence that can be understood alone.
            sources: The numbers of the results that say so.

        Returns:
            What became of it.
        """
        return self._call("update", target=target, new_content=new_content, sources=sources)

    def delete(self, target: int, reason: str) -> str:
        """Hide a hyperedge that another result contradicts.

        Args:
            target: The number of the result.
            reason: Why it is wrong.

        Returns:
            What became of it.
        """
        return self._call("delete", target=target, reason=reason)


def make_environment(corpus: Path | str | Resources, **settings: Any) -> type[Environment]:
    """Return a class whose objects are sessions over a corpus.

    Args:
        corpus: The folder of a corpus, or opened resources with a corpus.
        settings: Settings of the tools by their names without the section, such as `web="replay:web.jsonl"` or
            `results=5`; others as for `open_resources`.

    Raises:
        SettingsError: A setting is wrong.
        CorpusError: There is no corpus.
    """
    texts, chosen = _opened(corpus, settings)
    if "as-published" in preset_names(chosen.ask.preset):
        raise SettingsError("The environment has our tools only.", "Leave out the preset as-published.")
    own, opened = chosen.of(EvographSettings), ExitStack()
    web = opened.enter_context(opened_web_search(own.web))

    def begin(self: Environment) -> None:
        Environment.__init__(self, texts, own, web)

    methods = {name: vars(_ToolMethods)[name] for name in allowed_tools(own, web)}
    about = {"__init__": begin, "__doc__": Environment.__doc__, "_opened": opened}  # what is opened lives as long
    return type("ToolEnvironment", (Environment,), {**about, **methods})


def _opened(corpus: Path | str | Resources, given: dict[str, Any]) -> tuple[Corpus, Settings]:
    if isinstance(corpus, Resources):
        if given:
            raise SettingsError("Settings cannot be given together with opened resources.", "Open them with these.")
        if not isinstance(corpus.corpus, Corpus):
            raise CorpusError("The environment needs a corpus.", Hint(python="Open the folder of a corpus."))
        return corpus.corpus, corpus.settings
    own = {"web", "tools", "results", "domains"}
    named = {f"evograph.{name}" if name in own else name: value for name, value in given.items()}
    settings = resolve({"ask.method": "evograph", **named})
    cache = cache_of(settings)
    return Corpus.open(corpus, cache=cache, encoder=encoder_of(settings.rank, cache)), settings
