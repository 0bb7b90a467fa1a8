"""Routes that look things up: entities, neighbours, queries, chunks and edits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from kgqa.model import Direction, PieceKind
from kgqa.serve.api.asking import AnswerResponse
from kgqa.serve.api.shared import ERRORS, Client, Served, looked_up
from kgqa.serve.errors import RequestError
from kgqa.serve.limits import QUERY_ROWS
from kgqa.serve.tools import corpus_tools, edit_tools, graph_tools, path_tools, query_tools

router = APIRouter(tags=["graph"], responses=ERRORS, default_response_class=AnswerResponse)
Id = Annotated[str, Query(max_length=2000)]
Steps = Annotated[tuple[str, ...], Query()]


class QueryBody(BaseModel):
    """A SPARQL query."""

    model_config = ConfigDict(extra="forbid")
    sparql: str


@router.get("/search", summary="Find entities by name")
async def search_route(
    service: Served, client: Client, q: Annotated[str, Query(max_length=1000)], limit: int = 10
) -> Any:
    """Return {entities}: those whose name, alias or id matches, best first; the last word may be incomplete."""
    found = await looked_up(service, client, lambda: graph_tools.search(service.graph, q, limit=limit))
    return AnswerResponse({"entities": found})


@router.get("/neighbours", summary="List the neighbours of an entity")
async def neighbours_route(
    service: Served,
    client: Client,
    id: Id,
    relation: Annotated[str, Query(max_length=2000)] = "",
    direction: Direction | None = None,
    limit: int = graph_tools.PREVIEW,
    offset: int = 0,
) -> Any:
    """Return the relations of an entity in both directions, with their counts and some of its neighbours."""

    def function() -> dict[str, Any]:
        return graph_tools.neighbours(
            service.graph, id, relation=relation, direction=direction, limit=limit, offset=offset
        )

    return AnswerResponse(await looked_up(service, client, function))


@router.get("/next", summary="List the next steps of a relation path")
async def next_route(service: Served, client: Client, topic: Id, step: Steps = (), limit: int = 200) -> Any:
    """Return {topic, words, steps, total, more, approximate}; `step` of a step is how it is written in a path."""
    found = await looked_up(service, client, lambda: path_tools.next_steps(service.graph, topic, step, limit=limit))
    return AnswerResponse(found)


@router.get("/path", summary="Follow a relation path")
async def path_route(service: Served, client: Client, topic: Id, step: Steps = (), limit: int = 50) -> Any:
    """Return {topic, words, ends, more, sparql}. Each `step` is a relation, with `<-` before it to go backwards."""
    found = await looked_up(service, client, lambda: path_tools.ends(service.graph, topic, step, limit=limit))
    return AnswerResponse(found)


@router.get("/retrieve", summary="Search the corpus")
async def retrieve_route(
    service: Served, client: Client, q: Annotated[str, Query(max_length=1000)], kind: PieceKind = "chunk", k: int = 5
) -> Any:
    """Return {pieces}: what the corpus says about a text, best first."""
    return AnswerResponse(
        await looked_up(service, client, lambda: corpus_tools.retrieve(service.corpus, q, kind=kind, k=k))
    )


@router.post("/query", summary="Run a SPARQL query")
async def query_route(service: Served, client: Client, body: QueryBody) -> Any:
    """Run a SELECT or ASK query, and return {columns, rows, complete, seconds}. More rows than allowed are an error."""
    seconds, rows = service.settings.serve.query_seconds, QUERY_ROWS
    return AnswerResponse(
        await looked_up(
            service,
            client,
            lambda: query_tools.run_query(
                service.graph, body.sparql, seconds=seconds, rows=rows, graphs=corpus_tools.graphs_of(service.corpus)
            ),
            query=True,
        )
    )


@router.post("/explain", summary="Explain a SPARQL query")
async def explain_route(service: Served, client: Client, body: QueryBody) -> Any:
    """Return {words}: what a SELECT or ASK query asks for."""
    words = await looked_up(service, client, lambda: query_tools.explain_query(service.graph, body.sparql), query=True)
    return AnswerResponse({"words": words})


@router.get("/chunk", summary="Return a chunk of the corpus")
async def chunk_route(service: Served, client: Client, id: Id, begin: int | None = None, end: int = 0) -> Any:
    """Return {id, text, title, source, begin, end}; with `begin` and `end`, of the document `id` around them."""

    def function() -> dict[str, Any]:
        if begin is None:
            return corpus_tools.chunk(service.corpus, id)
        return corpus_tools.excerpt(service.corpus, id, begin, end)

    return AnswerResponse(await looked_up(service, client, function))


@router.get("/edits", summary="List the edits of the corpus")
async def edits_route(service: Served, client: Client) -> Any:
    """Return {edits, waiting, total}; edits that wait for a review come first."""
    return AnswerResponse(await looked_up(service, client, lambda: edit_tools.edits(service.corpus)))


@router.post("/edits/{id}/{decision}", summary="Accept or reject an edit")
async def decision_route(service: Served, client: Client, id: str, decision: Literal["accept", "reject"]) -> Any:
    """Decide about an edit that waits, if the service was started with `--writable`."""
    if not service.writable:
        raise RequestError(403, "This service does not change the corpus.", "Start it with kgqa serve --writable.")

    def function() -> None:
        edit_tools.decide(service.corpus, id, decision, by=f"web: {client}")
        service.refresh()

    await looked_up(service, client, function)
    return AnswerResponse({"decided": decision})
