"""The tools of an agent: what the MCP server offers, on top of a service with its queue and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Literal, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from kgqa.errors import KgqaError
from kgqa.serve.api.asking import events_of
from kgqa.serve.fair_queue import QueueFull
from kgqa.serve.jobs import Asked
from kgqa.serve.limits import QUERY_ROWS, LimitReached
from kgqa.serve.service import Service
from kgqa.serve.tools import corpus_tools, graph_tools, path_tools, query_tools
from kgqa.storage.answer_json import json_text
from kgqa.text.hints import AGENT, shown_at
from kgqa.text.words import clean

T = TypeVar("T")
MAX_RESULT_CHARS = 100_000
"""Maximum size of a tool's result as JSON."""
_SHOWN_ANSWERS = 100
_SHOWN_EVIDENCE = 10
_TEXT_CHARS, _RESPONSE_CHARS = 500, 20_000
_ANSWER_KEYS = (
    "id", "asked", "status", "topics", "confidence", "weak", "accepted", "approximate", "grounding",
    "response", "query_class", "method", "nearest",
)  # fmt: skip
_PATH_KEYS = ("words", "topic", "score", "operation")

Id = Annotated[str, Field(max_length=2000, description="Id or IRI of an entity, as search returns it: m.0abc, Q42.")]
Steps = Annotated[
    list[Annotated[str, Field(max_length=2000)]],
    Field(
        max_length=path_tools.MAX_STEPS,
        description="The steps in order. A step is the id of a relation; <- before it follows the relation backwards, "
        "from object to subject. Copy `step` from the results of next_steps.",
    ),
]


class AgentTools:
    """The tools, as methods whose docstrings and annotations are what an agent reads."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def search(
        self,
        ctx: Context,
        text: Annotated[str, Field(max_length=1000, description="A name, or the beginning of one.")],
        limit: Annotated[int, Field(ge=1, le=graph_tools.MAX_ENTITIES)] = 10,
    ) -> dict[str, Any]:
        """Find entities of the graph by name or alias, best first. Start here: the other tools take ids.

        Returns entities: each with id, iri, name, types and, if it was found by another name, a note.
        """
        return await self._look_up(
            ctx, lambda: {"entities": graph_tools.search(self._service.graph, text, limit=limit)}
        )

    async def neighbours(
        self,
        ctx: Context,
        id: Id,
        relation: Annotated[str, Field(max_length=2000, description="IRI of the only relation wanted.")] = "",
        direction: Annotated[
            Literal["out", "in"] | None, Field(description="out: the entity is the subject; in: it is the object.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=200, description="Neighbours per relation.")] = 8,
        offset: Annotated[int, Field(ge=0, le=graph_tools.MAX_NEIGHBOURS)] = 0,
    ) -> dict[str, Any]:
        """List what stands around one entity: its relations in both directions, with some neighbours along each.

        Returns relations: each with step, iri, words, direction, count, nodes, and more: whether there are more nodes.
        To see the next nodes of one relation, give its iri as `relation`, its direction, and an offset.
        """
        return await self._look_up(
            ctx,
            lambda: graph_tools.neighbours(
                self._service.graph, id, relation=relation, direction=direction, limit=limit, offset=offset
            ),
        )

    async def next_steps(
        self,
        ctx: Context,
        topic: Id,
        steps: Steps = [],  # noqa: B006  the library copies it; None would be part of the schema
        limit: Annotated[int, Field(ge=1, le=path_tools.MAX_NEXT)] = 100,
    ) -> dict[str, Any]:
        """List the relations that can follow a path which starts at an entity; without steps, those of the entity.

        Returns steps: each with `step` (how it is written in a path), words, leads_to (the type that it reaches) and
        mediator. A mediator is a node that only connects others, such as a marriage or a performance, and is never an
        answer: if `mediator` is "all", add one more step. The way to an answer: search, next_steps, ends.
        """
        return await self._look_up(ctx, lambda: path_tools.next_steps(self._service.graph, topic, steps, limit=limit))

    async def ends(
        self,
        ctx: Context,
        topic: Id,
        steps: Steps,
        limit: Annotated[int, Field(ge=1, le=path_tools.MAX_ENDS)] = 50,
    ) -> dict[str, Any]:
        """Follow a path from an entity, and return the entities and values at its end without duplicates.

        Returns ends, words (the path for people), sparql (the query that returns all ends) and more: whether there are
        further ends than `limit`.
        """
        return await self._look_up(ctx, lambda: path_tools.ends(self._service.graph, topic, steps, limit=limit))

    async def run_query(
        self,
        ctx: Context,
        sparql: Annotated[str, Field(max_length=query_tools.MAX_CHARS)],
        rows: Annotated[int, Field(ge=1, le=10_000, description="Maximum rows; more are an error.")] = 100,
    ) -> dict[str, Any]:
        """Run a SPARQL SELECT or ASK query on the graph. It can only read. Prefixes in ids need no declaration.

        Refused are updates, LOAD, SERVICE, GRAPH, FROM other graphs, and results with more than `rows` rows: add a
        LIMIT or a condition. Returns columns and rows; a value is {id, name, iri}, a literal, or null.
        """
        service = self._service
        seconds, most = service.settings.serve.query_seconds, min(rows, QUERY_ROWS)
        graphs = corpus_tools.graphs_of(service.corpus)
        return await self._look_up(
            ctx,
            lambda: query_tools.run_query(service.graph, sparql, seconds=seconds, rows=most, graphs=graphs),
            query=True,
        )

    async def retrieve(
        self,
        ctx: Context,
        text: Annotated[str, Field(max_length=1000, description="A question, or words of the passage.")],
        kind: Annotated[
            Literal["chunk", "statement", "entity", "hyperedge", "community"],
            Field(description="chunk: passages of documents; statement, hyperedge: facts taken from them."),
        ] = "chunk",
        k: Annotated[int, Field(ge=1, le=corpus_tools.MAX_PIECES)] = 5,
    ) -> dict[str, Any]:
        """Find what the documents behind the graph say about a text, best first.

        Returns pieces: each with id, text, score, sources (the documents) and spans (where it stands in them).
        """
        return await self._look_up(ctx, lambda: corpus_tools.retrieve(self._service.corpus, text, kind=kind, k=k))

    async def ask(
        self,
        ctx: Context,
        question: Annotated[str, Field(max_length=4000, description="A question in natural language, with names.")],
        topics: Annotated[
            list[Annotated[str, Field(max_length=1000)]],
            Field(max_length=20, description="Ids or names of the entities that it is about; none: found in its text."),
        ] = [],  # noqa: B006
        method: Annotated[
            str | None, Field(max_length=100, description="Name of a method; none: that of the server.")
        ] = None,
    ) -> dict[str, Any]:
        """Answer a question from the graph, and show why. One call instead of search, next_steps and ends.

        Returns status (answered, no_answer, budget_exhausted, unsupported, failed), answers, paths that lead to them,
        evidence, sparql and, if it is known, confidence: the share of right answers among answers like this,
        measured on questions about other graphs. If `weak` is true, the graph may not contain the answer: check the
        path. A question takes seconds, with a language model minutes; cancelling the call stops it.
        """
        service = self._service
        asked = Asked(
            question=question,
            method=method or service.default_method,
            topics=tuple(topics),
            client=_client(ctx),
            place=AGENT,
        )
        job = _told(lambda: service.submit(asked))
        count = 0
        async with aclosing(events_of(job, service)) as events:  # closing it stops the question
            async for event in events:
                name, data = event or ("", {})
                if name == "answer":
                    return _bounded(answer_for_agents(data))
                if name == "step" and data["words"]:
                    count += 1
                    await ctx.report_progress(count, message=data["words"])
        raise ToolError("The question ended without an answer.")

    async def _look_up(
        self, ctx: Context, function: Callable[[], dict[str, Any]], *, query: bool = False
    ) -> dict[str, Any]:
        """Call a function that reads the graph when it is the client's turn; its errors are for the agent."""
        future = _told(lambda: self._service.look_up(_client(ctx), function, query=query))
        try:
            return _bounded(await asyncio.wrap_future(future))
        except KgqaError as error:
            raise ToolError(_words(error)) from error


def answer_for_agents(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of an answer object (docs/answer-json.md) that an agent reads; long texts in it are cut."""
    paths = [
        {**{key: path.get(key) for key in _PATH_KEYS}, "steps": [_written(step) for step in path.get("steps", ())]}
        for path in answer.get("paths", ())
    ]
    evidence = [
        {key: _cut(each[key]) for key in ("kind", "words", "iri", "quotes", "verified") if each.get(key)}
        for each in answer.get("evidence", ())[:_SHOWN_EVIDENCE]
    ]
    sparql = answer.get("short_sparql") or answer.get("sparql", "")
    answers = answer.get("answers", ())
    return {
        **{key: _cut(answer[key], most=_RESPONSE_CHARS) for key in _ANSWER_KEYS if key in answer},
        "reason": answer.get("reason", ""),
        "notes": answer.get("notes", []),
        "answers": answers[:_SHOWN_ANSWERS],
        "more": len(answers) > _SHOWN_ANSWERS,
        "paths": paths,
        "evidence": evidence,
        "citations": _cut(answer.get("citations", [])[:_SHOWN_EVIDENCE]),
        "sparql": sparql if len(sparql) <= _RESPONSE_CHARS else "",
    }


def _cut(value: Any, *, most: int = _TEXT_CHARS) -> Any:
    """Return JSON data whose texts are cut, with an ellipsis."""
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[: most - 1]}…"
    if isinstance(value, list):
        return [_cut(each, most=most) for each in value]
    if isinstance(value, dict):
        return {key: _cut(each, most=most) for key, each in value.items()}
    return value


def _written(step: Mapping[str, str]) -> str:
    return (graph_tools.BACKWARDS if step["direction"] == "in" else "") + step["relation"]


def _told(function: Callable[[], T]) -> T:
    """Call a function that queues something; what it raises becomes an error of the tool."""
    try:
        return function()
    except LimitReached as error:
        raise ToolError(f"{error} Try again in {error.retry_after} s.") from error
    except QueueFull as error:
        raise ToolError("Too many requests are waiting. Try again in a moment.") from error
    except KgqaError as error:
        raise ToolError(_words(error)) from error


def _words(error: KgqaError) -> str:
    with shown_at(AGENT):
        return clean(str(error))


def _bounded(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result if it is not too large for an agent."""
    size = len(json_text(result))
    if size > MAX_RESULT_CHARS:
        raise ToolError(
            f"The result has {size:,} characters, more than {MAX_RESULT_CHARS:,}. Ask for less: lower the limit."
        )
    return result


def _client(ctx: Context) -> str:
    """Return the name of the client whose limits count; over stdio there is only one."""
    request = ctx.request_context.request
    return str(request.state.client) if request is not None else "stdio"
