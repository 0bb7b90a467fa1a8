"""The tools of a corpus for rollouts of verl, which imports `CorpusTool` as the exported tools.yaml names it."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kgqa.methods.evograph.environment import Environment, call_tool, make_environment

MAX_SESSIONS = 10_000
"""How many rollouts have a session at once; the one that was used longest ago is closed."""
_sessions: OrderedDict[str, Environment] = OrderedDict()
_lock = threading.Lock()
_environment_class: Callable[..., Callable[[], Environment]] = cache(make_environment)


@dataclass(frozen=True)
class Response:
    """What a call shows."""

    text: str = ""


class CorpusTool:
    """A tool of EvoGraph-R1, in the form of verl's `BaseTool`.

    All tools of a rollout share a session, whose edits no other rollout sees.

    Args:
        config: Names the folder of the corpus, `corpus`, and where the web is searched, `web` (see `evograph.web`).
        tool_schema: The schema of the tool as verl has read it.
    """

    def __init__(self, config: Mapping[str, Any], tool_schema: Any) -> None:
        self.config = config
        self.tool_schema = tool_schema
        self.name: str = tool_schema.function.name

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, Response]:
        """Return an id for a call."""
        return instance_id or uuid.uuid4().hex, Response()

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        """End a call."""

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[Response, float, dict[str, Any]]:
        """Call the tool in the session of its rollout, and return what it shows, without a reward of its own."""
        session = str(getattr(kwargs.get("agent_data"), "request_id", instance_id))
        shown = await asyncio.to_thread(self._call, session, parameters)
        return Response(shown), 0.0, {}

    def _call(self, session: str, parameters: dict[str, Any]) -> str:
        with _lock:
            if session not in _sessions:
                _sessions[session] = _environment_class(self.config["corpus"], web=self.config.get("web", "none"))()
                while len(_sessions) > MAX_SESSIONS:
                    _sessions.popitem(last=False)
            _sessions.move_to_end(session)
            environment = _sessions[session]
        return call_tool(environment, self.name, parameters)
