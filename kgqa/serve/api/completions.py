"""The interface of OpenAI's chat completions, so that existing chat front ends can ask."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from kgqa.serve.api.asking import AnswerResponse, answer_of, events_of, submit
from kgqa.serve.api.shared import ERRORS, Client, Served
from kgqa.serve.errors import RequestError, error_object
from kgqa.serve.jobs import Asked, Job
from kgqa.serve.service import Service
from kgqa.text.hints import CHAT
from kgqa.text.words import clean, safe_text

router = APIRouter(prefix="/v1", tags=["chat front ends"], responses=ERRORS)
MAX_CITATIONS = 20
MAX_NAMES = 100
MAX_LINE = 1000
_LINK = re.compile(r"/a/([0-9a-f]{32})\b")
"""The permanent links in earlier replies: their answers are the history of the chat."""
_MARKUP = re.compile(r"([\\\[\]<>`])")


class ChatMessage(BaseModel):
    """A message; of a list of parts, those with text are read."""

    model_config = ConfigDict(extra="ignore")
    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "\n".join(text for part in self.content if isinstance(text := part.get("text"), str))
        return self.content or ""


class ChatBody(BaseModel):
    """A chat. `model`: METHOD, METHOD@MODEL, or anything else for the default. Other fields have no effect."""

    model_config = ConfigDict(extra="ignore")
    messages: list[ChatMessage] = Field(max_length=1000)
    model: str = ""
    stream: bool = False
    stream_options: dict[str, Any] | None = None


@router.get("/models", summary="List methods and models as models")
async def models_route(service: Served) -> dict[str, Any]:
    """Return every method, and METHOD@MODEL for every language model that a client may choose."""
    names = list(service.methods)
    names += [f"{method}@{model}" for method in service.methods for model in service.models]
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "kgqa"} for name in names],
    }


@router.post("/chat/completions", summary="Ask the last message of a chat")
async def chat_route(body: ChatBody, request: Request, service: Served, client: Client) -> Response:
    """Answer the last message of the user, with numbered citations and a permanent link.

    The answer's JSON object is in the field `kgqa` of the reply, or of the last part of a stream.
    """
    asked = next((message.text.strip() for message in reversed(body.messages) if message.role == "user"), "")
    if not asked:
        raise RequestError(400, "The chat has no message of the user.", 'Send {"role": "user", "content": "..."}.')
    request.state.question = asked
    method, model = _chosen(body.model, service)
    history = tuple(link[1] for each in body.messages if each.role == "assistant" for link in _LINK.finditer(each.text))
    job = submit(service, Asked(asked, method, model, client=client, history=history, place=CHAT))
    link = f"{request.url.scheme}://{request.headers['host']}/a/"
    head = {"id": f"chatcmpl-{job.id}", "created": int(time.time()), "model": body.model or method}
    if body.stream:
        usage = bool((body.stream_options or {}).get("include_usage"))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        stream = _stream(job, service, head, link, usage=usage)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
    answer = await answer_of(job, service, request)
    message = {"role": "assistant", "content": chat_text(answer, link)}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return AnswerResponse(
        {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(answer), "kgqa": answer}
    )


def _chosen(name: str, service: Service) -> tuple[str, str]:
    """Return the method and the model of a model's name; the defaults if there are no such ones."""
    method, _, model = name.partition("@")
    if method not in service.methods:
        return service.default_method, ""
    return method, model if model in service.models else ""


async def _stream(job: Job, service: Service, head: dict[str, Any], link: str, *, usage: bool) -> AsyncIterator[str]:
    def part(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', 'choices': [choice], **more})}\n\n"

    yield part({"role": "assistant", "content": ""})
    try:
        async for event in events_of(job, service):
            if event is None:
                yield ": waiting\n\n"
            elif event[0] == "answer":
                yield part({"content": chat_text(event[1], link)})
                yield part({}, "stop", kgqa=event[1])
                if usage:
                    empty = {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(event[1])}
                    yield f"data: {json.dumps(empty)}\n\n"
    except Exception as error:  # noqa: BLE001  the reply has begun, so the error is an event
        yield f"data: {json.dumps(error_object(f'{type(error).__name__}: {error}'))}\n\n"
    yield "data: [DONE]\n\n"


def _usage(answer: dict[str, Any]) -> dict[str, int]:
    prompt, reply = answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]
    return {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}


def chat_text(answer: dict[str, Any], link: str) -> str:
    """Return an answer as the text of a chat message: answer, numbered citations, link.

    Args:
        answer: The JSON object of an answer.
        link: The address to which the id of the answer is appended.
    """
    cited = [_line(text) for text in _citations(answer)][:MAX_CITATIONS]
    marks = "".join(f" [{number}]" for number in range(1, len(cited) + 1))
    found = answer["answers"]
    names = ", ".join(_line(str(each["name"] or each["id"] or each.get("value"))) for each in found[:MAX_NAMES])
    names += f" and {len(found) - MAX_NAMES:,} more" if len(found) > MAX_NAMES else ""
    reason, *hints = map(_line, (answer["reason"], *answer["hints"]))
    response = _escaped(safe_text(answer["response"]))
    lines = [response or names or reason or "No answer was found."]
    lines[0] += marks if found or response else ""
    if found and answer["weak"]:
        lines.append("This is a weak match.")
    lines += [*(f"[{number}] {text}" for number, text in enumerate(cited, 1)), *hints]
    return "\n\n".join([*lines, f"{link}{answer['id']}"])


def _citations(answer: dict[str, Any]) -> list[str]:
    """Return the evidence in words: quotes with their documents, then paths and statements."""
    found = [f"“{each['quote']}”{_source(each)}" for each in answer["citations"] if each.get("verified")]
    found += [each["words"] for each in answer["paths"]]
    found += [f"“{each['words']}”{_source(each)}" for each in answer["evidence"] if each["kind"] == "quote"]
    found += [each["words"] for each in answer["evidence"] if each["kind"] != "quote"]
    return list(dict.fromkeys(found))


def _source(cited: dict[str, Any]) -> str:
    source = (cited.get("span") or {}).get("source", "")
    return f" ({source})" if source else ""


def _line(text: str) -> str:
    """Return a text as one line: line breaks in names would be headings, lists or code."""
    return _escaped(clean(text)[:MAX_LINE])


def _escaped(text: str) -> str:
    """Return a text in which Markdown finds no link, image, code or HTML: names of a graph may contain them."""
    return _MARKUP.sub(r"\\\1", text)
