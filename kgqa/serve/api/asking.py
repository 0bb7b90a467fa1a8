"""Routes that ask questions and return answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import Response, StreamingResponse

from kgqa.serve.api.shared import ERRORS, Client, Served, busy
from kgqa.serve.errors import RequestError, error_object
from kgqa.serve.fair_queue import QueueFull
from kgqa.serve.jobs import Asked, Job
from kgqa.serve.limits import LimitReached
from kgqa.serve.service import Service
from kgqa.storage.answer_json import json_text

router = APIRouter(tags=["questions"], responses=ERRORS)
PING_SECONDS = 10.0
"""Seconds without an event after which a comment is sent, so that a closed connection is noticed."""
ShortText = Annotated[str, StringConstraints(max_length=1000)]


class AskBody(BaseModel):
    """A question. `topics`: ids or names. `history`: ids of the answers so far, to which pronouns refer."""

    model_config = ConfigDict(extra="forbid")
    question: str
    topics: list[ShortText] = Field(default=[], max_length=20)
    method: ShortText | None = None
    model: ShortText | None = None
    history: list[ShortText] = Field(default=[], max_length=100)


class AnswerResponse(Response):
    """An answer as JSON; letters of all scripts stay readable."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content).encode("utf-8", "surrogatepass")


def submit(service: Service, asked: Asked) -> Job:
    """Queue a question; errors become replies."""
    try:
        return service.submit(asked)
    except LimitReached as error:
        raise RequestError(429, str(error), "Ask again later.", {"Retry-After": str(error.retry_after)}) from None
    except QueueFull:
        raise busy() from None


async def answer_of(job: Job, service: Service, request: Request) -> dict[str, Any]:
    """Wait for the answer; stop the question if the client closes the connection."""
    changed = _changes(job)
    closed = asyncio.ensure_future(_closed(request))
    try:
        while job.answer is None:
            waiting = asyncio.ensure_future(changed.wait())
            await asyncio.wait({closed, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            changed.clear()
            if closed.done() and job.answer is None:
                service.stop(job.id)
                raise RequestError(408, "The connection was closed, so the question was stopped.")
    finally:
        closed.cancel()
        if job.answer is None:
            service.stop(job.id)
    return job.answer


async def events_of(job: Job, service: Service) -> AsyncGenerator[tuple[str, dict[str, Any]] | None, None]:
    """Yield the events of a question by name, and None after `PING_SECONDS` without one.

    The question is stopped if nobody takes its events any more.
    """
    changed = _changes(job)
    shown = 0
    place: int | None = None
    try:
        while True:
            changed.clear()
            answer = job.answer
            if shown == 0 and answer is None and (now := service.position(job)) != place:
                place = now
                yield "queued", {"id": job.id, "position": now}
            for step in job.steps[shown:]:
                shown += 1
                yield "step", step
            if answer is not None:
                yield "answer", answer
                return
            try:
                # while a question waits, its place in the queue is looked up again
                async with asyncio.timeout(1.0 if place else PING_SECONDS):
                    await changed.wait()
            except TimeoutError:
                yield None
    finally:
        if job.answer is None:
            service.stop(job.id)


def _changes(job: Job) -> asyncio.Event:
    """Return an event that is set after each step of a job and after its answer."""
    changed, loop = asyncio.Event(), asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(changed.set)

    job.follow(wake)
    return changed


async def _closed(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def server_sent(name: str, data: Any) -> str:
    """Return a server-sent event."""
    return f"event: {name}\ndata: {json_text(data)}\n\n"


async def _stream(job: Job, service: Service) -> AsyncIterator[str]:
    try:
        async for event in events_of(job, service):
            yield server_sent(*event) if event else ": waiting\n\n"
    except Exception as error:  # noqa: BLE001  the reply has begun, so the error is an event
        yield server_sent("error", error_object(f"{type(error).__name__}: {error}")["error"])


@router.post("/ask", summary="Ask a question", response_class=AnswerResponse)
async def ask_route(body: AskBody, request: Request, service: Served, client: Client) -> Response:
    """Answer a question. With `Accept: text/event-stream`, the steps are sent while it is answered.

    The events of the stream are `queued` {id, position}, `step` {kind, at, words, detail}, `answer` and `error`. A
    closed connection stops the question.
    """
    request.state.question = body.question
    job = submit(
        service,
        Asked(
            question=body.question,
            method=body.method or service.default_method,
            model=body.model or "",
            topics=tuple(body.topics),
            client=client,
            history=tuple(body.history),
        ),
    )
    if "text/event-stream" in request.headers.get("accept", ""):
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_stream(job, service), media_type="text/event-stream", headers=headers)
    return AnswerResponse(await answer_of(job, service, request))


@router.post("/ask/{id}/stop", summary="Stop a question")
async def stop_route(id: str, service: Served) -> dict[str, bool]:
    """Stop a question in progress: it sends no further query or prompt, and its answer says that it was stopped."""
    if not service.stop(id):
        raise RequestError(404, "No question with this id is in progress.")
    return {"stopped": True}


@router.get("/answers/{id}", summary="Return a kept answer", response_class=AnswerResponse)
async def answer_route(id: str, service: Served) -> Response:
    """Return the answer behind a permanent link."""
    found = await asyncio.to_thread(service.kept.get, id)
    if found is None:
        raise RequestError(404, "There is no answer with this id.", "The oldest answers are removed after a while.")
    return AnswerResponse(found)
