"""A session: the language model thinks, calls a tool and reads the results, in turns, until it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.llm.asking import ask_readings
from kgqa.llm.client import Image, Message, Prompt
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.tool_calls import ToolReply, read_tool_reply
from kgqa.methods.acting.loop_guard import LoopGuard
from kgqa.methods.evograph.schemas import EDITS
from kgqa.methods.evograph.tools import Observation, Tools
from kgqa.methods.resources import Resources
from kgqa.trace import ActionRead, Called, Seen, TaskGiven
from kgqa.trace.trace import Trace

STAGE = "act"
MAX_HISTORY_THOUGHT = 1_500
"""Longest part of an earlier thought that later prompts show."""
MAX_SILENT = 2
"""After how many turns without any reply, as of a server that rejects the prompt, a session ends."""
LOST = "Your reply could not be read, and the turn is lost. {}"
AGAIN = "This call was made in turn {}; its results are shown above. Do something else, or answer."
THIRD = "This call was made twice before."
FURTHER = "Only the first call was run; make one call per reply."


@dataclass(frozen=True)
class SessionOptions:
    """How a session goes.

    Attributes:
        turns: Most replies.
        forced: Whether the last reply must be an answer, and calls are not repeated; not so in the published code.
        first_query: What is searched before the first prompt, which shows the results; "" for nothing.
        start: The first prompt.
    """

    turns: int
    forced: bool = True
    first_query: str = ""
    start: str = "evograph/start"


class Session:
    """The session of one question.

    Args:
        question: The question.
        tools: The tools.
        schemas: What the language model is told of them.
        resources: The resources of the run.
        trace: The trace of the question.
        options: How the session goes.
        images: The images of the question.
    """

    def __init__(
        self,
        question: str,
        tools: Tools,
        schemas: Sequence[Mapping[str, Any]],
        resources: Resources,
        trace: Trace,
        options: SessionOptions,
        *,
        images: Sequence[Image] = (),
    ) -> None:
        assert resources.models is not None
        self._question = question
        self._tools = tools
        self._schemas = tuple(schemas)
        self._prompts = resources.prompts
        self._models = resources.models.for_question(trace)
        self._reask = resources.settings.llm.reask
        self._trace = trace
        self._options = options
        self._images = tuple(images)
        self._messages: list[Message] = []
        self._guard = LoopGuard()
        self.answer: ToolReply | None = None
        """The reply with the answer; None until there is one."""
        self.turn = 0
        self._silent = 0
        self._tokens = self._most_tokens = 0
        self._seconds = self._most_seconds = 0.0

    def run(self) -> None:
        """Let the model reply until it answers, or its turns are used up.

        Raises:
            BudgetExhausted: the budget of the question is spent.
        """
        limit = self._options.turns
        last = self._is_last(limit)
        self._messages = list(self._first_messages(last=last))
        while self.turn < limit and self.answer is None:
            self.turn += 1
            raw, reading = self._reply(() if last else self._schemas)
            self._record(raw, reading)
            reply = reading.value
            if reply is not None and reply.answer is not None:
                self.answer = reply
                return
            self._silent = 0 if raw else self._silent + 1
            if self._silent == MAX_SILENT:
                return
            if last and self._options.forced and self.turn < limit:
                return  # it was asked for an answer only
            found, forced = self._observation(reply, reading.problem)
            last = forced or self._is_last(limit)
            self._continue(raw, reply, found, last=last, limit=limit)

    def _first_messages(self, *, last: bool) -> Sequence[Message]:
        found = Observation()
        if self._options.first_query:
            found = self._tools.call("graph_search", {"query": self._options.first_query}, step=0)
            self._seen(found, "\n".join(found.lines), step=0)
        names = {each["name"] for each in self._schemas}
        prompt = self._prompts.prompt(
            self._options.start,
            STAGE,
            images=self._images,
            question=self._question,
            tools=[json.dumps(each, ensure_ascii=False) for each in self._schemas],
            turns=self._options.turns,
            web="web_search" in names,
            edits=bool(names & set(EDITS)),
            image=bool(self._images),
            lines=[*found.notes, *found.lines],
            last=last,
        )
        texts = {message.role: message.text for message in prompt.messages}
        self._trace.record(TaskGiven(system=texts.get("system", ""), user=texts.get("user", "")))
        return prompt.messages

    def _is_last(self, limit: int) -> bool:
        """Return whether the next reply must be an answer: it is the last one, or no more calls are allowed."""
        if not self._options.forced:
            return False
        return self.turn + 1 >= limit or self._nearly_spent()

    def _nearly_spent(self) -> bool:
        """Return whether the budget allows about one more reply, judged by the longest one so far."""
        used, budget = self._trace.usage(), self._trace.budget
        tokens, seconds = used.prompt_tokens + used.completion_tokens, used.seconds
        self._most_tokens = max(self._most_tokens, tokens - self._tokens)
        self._most_seconds = max(self._most_seconds, seconds - self._seconds)
        self._tokens, self._seconds = tokens, seconds
        return (
            (budget.calls is not None and used.calls + 1 >= budget.calls)
            or (budget.tokens is not None and tokens + 2 * self._most_tokens >= budget.tokens)
            or (budget.seconds is not None and seconds + 2 * self._most_seconds >= budget.seconds)
        )

    def _reply(self, schemas: Sequence[Mapping[str, Any]]) -> tuple[str, Reading[ToolReply]]:
        """Ask for a reply; return its text with the thought, and what was read."""
        texts: list[str] = []

        def read(text: str) -> Reading[ToolReply]:
            texts.append(text)
            return read_tool_reply(text, schemas=schemas)

        prompt = Prompt(tuple(self._messages), STAGE)
        (reading,) = ask_readings(self._models, self._prompts, [prompt], [read], reask=self._reask, with_reasoning=True)
        return texts[-1] if texts else "", reading

    def _record(self, raw: str, reading: Reading[ToolReply]) -> None:
        reply = reading.value
        call = (call_text(reply),) if reply is not None and reply.answer is None else ()
        self._trace.record(
            ActionRead(
                reply=raw,
                actions=call,
                problem=reading.problem,
                thought=reply.thought if reply is not None else "",
                step=self.turn,
            )
        )

    def _observation(self, reply: ToolReply | None, problem: str) -> tuple[Observation, bool]:
        """Return what the model is shown after its reply, and whether its next reply must be an answer."""
        if reply is None:
            return Observation((), (LOST.format(problem),), failed=True), False
        further = (FURTHER,) if reply.ignored else ()
        repeat = self._guard.check(call_text(reply), self.turn)
        if self._options.forced and repeat is not None:
            given = json.dumps(dict(reply.arguments), ensure_ascii=False)
            self._trace.record(Called(name=reply.name, arguments=(given,), failed=True, step=self.turn))
            note = THIRD if repeat.last else AGAIN.format(repeat.first)
            return Observation((), (note, *further), failed=True), repeat.last
        found = self._tools.call(reply.name, reply.arguments, step=self.turn)
        return Observation(found.results, (*further, *found.notes), found.failed), False

    def _continue(self, raw: str, reply: ToolReply | None, found: Observation, *, last: bool, limit: int) -> None:
        values = {"notes": list(found.notes), "lines": list(found.lines), "left": limit - self.turn, "last": last}
        shown = self._prompts.render("evograph/results", **values)
        self._messages.append(Message("assistant", history_text(reply, raw)))
        self._messages += shown
        self._seen(found, shown[-1].text, step=self.turn)

    def _seen(self, found: Observation, text: str, *, step: int) -> None:
        self._trace.record(Seen(text=text, count=len(found.results), step=step))


def call_text(reply: ToolReply) -> str:
    """Return a call as canonical JSON; equal for equal calls."""
    arguments = {key: reply.arguments[key] for key in sorted(reply.arguments)}
    return json.dumps({"name": reply.name, "arguments": arguments}, ensure_ascii=False)


def history_text(reply: ToolReply | None, raw: str) -> str:
    """Return a reply as later prompts show it: only what was read of it."""
    if reply is None:
        return raw.strip()[:MAX_HISTORY_THOUGHT] or "(nothing)"
    thought = f"<think>{reply.thought[:MAX_HISTORY_THOUGHT]}</think>\n" if reply.thought else ""
    return f"{thought}<tool_call>{call_text(reply)}</tool_call>"
