"""Questions over small graphs and corpora to a scripted language model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kgqa import ask, open_resources
from kgqa.errors import StoreTimeout
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.paths import PathQueries
from kgqa.settings.values import resolve
from kgqa.testing.agents.shown_prompt import read_prompt
from kgqa.testing.server import ScriptedServer

NS = "http://rdf.freebase.com/ns/"
LAST_LINES = {
    "Verdict:": "judge",
    "Better:": "compare",
    "Relevant:": "relevant",
    "Answer found:": "accept",
    "Selected:": "pick",
    "Scores:": "score",
    "Answers:": "answer",
    "Clauses:": "clauses",
}


def loaded(place, facts, names):
    """Load facts and English names into a graph folder, and return it."""
    lines = [" ".join(f'"{p}"' if p.isdigit() else f"<{NS}{p}>" for p in fact.split()) + " ." for fact in facts]
    lines += [f'<{NS}{ident}> <{NS}type.object.name> "{name}"@en .' for ident, name in names.items()]
    (place / "facts.nt").write_text("\n".join(lines) + "\n")
    load_graph(place / "graph", [place / "facts.nt"], schema="freebase")
    return place / "graph"


def late_ends(monkeypatch, limit):
    """Let all look-ups of the ends of paths with a limit time out."""
    ends = PathQueries.ends

    def late(self, candidates, **options):
        if options["limit"] == limit:
            return [StoreTimeout("too late")] * len(candidates)
        return ends(self, candidates, **options)

    monkeypatch.setattr(PathQueries, "ends", late)


def asked_in(messages):
    return next(message["content"] for message in messages if message["role"] == "user")


def prompt_kind(messages):
    """Return which template a prompt was made from."""
    asked = asked_in(messages)
    if kind := LAST_LINES.get(asked.splitlines()[-1]):
        return "entities" if kind == "pick" and "\nCandidates:" not in asked else kind
    for mark, kind in (("\nRelations:", "relations"), ("\nEntities:", "entities"), ("\nTriples:", "answer")):
        if mark in asked:
            return "sufficient" if kind == "answer" and "{No}" in messages[0]["content"] else kind
    return "cot"


@dataclass
class Run:
    """An answer and the requests sent for it. `kind_of` tells the kind of a prompt."""

    answer: Any
    requests: list
    kind_of: Callable = prompt_kind

    @property
    def kinds(self):
        return [self.kind_of(request.messages) for request in self.requests]

    def prompts(self, kind=None):
        """Return the first user message of each prompt."""
        return [asked_in(r.messages) for r in self.requests if kind in (None, self.kind_of(r.messages))]

    def shown(self, kind):
        """Return what the prompts of one kind show."""
        return [read_prompt(r.messages) for r in self.requests if self.kind_of(r.messages) == kind]

    @property
    def sent_text(self):
        """All request bodies as text."""
        return "\n".join(json.dumps(request.body, ensure_ascii=False) for request in self.requests)

    @property
    def ids(self):
        return [item.id for item in self.answer.answers]

    def events(self, kind):
        return [event for event in self.answer.trace if event.kind == kind]

    def details(self, kind):
        return [event.detail for event in self.events(kind)]

    def stage(self, name):
        return next(stage for stage in self.answer.usage.stages if stage.stage == name)

    def triples(self, number=-1):
        """Return the triples in one of the prompts that list triples."""
        shown = [prompt for prompt in self.prompts() if "\nTriples:" in prompt]
        return shown[number].split("Triples:\n", 1)[1].splitlines() if "Triples:\n" in shown[number] else []

    def listed(self, number=0):
        """Return the entities that one prompt lists for scoring."""
        return re.search(r"^Entities: (.*)$", self.prompts("entities")[number], re.MULTILINE)[1].split("; ")


def replies_by_kind(replies, otherwise=None, kind_of=prompt_kind, shown=asked_in):
    """Return a model that gives these replies by the kind of prompt, and those of another model to the other kinds.

    A reply is a text, a value for JSON, a list whose last item is repeated, or a function of what the prompt shows.
    """
    waiting = {kind: list(each) if isinstance(each, list) else each for kind, each in dict(replies).items()}

    def respond(messages):
        kind = kind_of(messages)
        if kind not in waiting:
            return otherwise(messages)
        reply = waiting[kind]
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        reply = reply(shown(messages)) if callable(reply) else reply
        return json.dumps(reply, ensure_ascii=False) if isinstance(reply, (dict, list)) else reply

    return respond


def run_scripted(reply, question, *, graph, topics=(), constrains="none", variants=None, kind_of=prompt_kind, **given):
    """Ask a question of a scripted model; settings have `__` in place of a dot."""
    with ScriptedServer(reply, constrains=constrains) as server:
        settings = {name.replace("__", "."): value for name, value in given.items()}
        settings = {"rank.embeddings": "off", "llm.model": f"{server.url}#name", **settings}
        resources = open_resources(graph, settings=resolve(settings, variants=variants))
        try:
            answer = ask(question, topics=topics, resources=resources)
        finally:
            resources.models.close()
        assert not server.errors
        return Run(answer, list(server.requests), kind_of)
