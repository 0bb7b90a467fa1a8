"""The tools of a corpus for rollouts of verl, which imports `CorpusTool` as the exported tools.yaml names it."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any

from kgqa.methods.evograph.environment import Environment, call_tool, make_environment

try:
    from verl.tools.base_tool import BaseTool
    from verl.tools.schemas import ToolResponse
except ImportError:  # verl imports this module; nothing else needs the class
    BaseTool = ToolResponse = object

MAX_SESSIONS = 10_000
"""How many rollouts have a session at once; the oldest one is closed."""
_sessions: OrderedDict[str, Environment] = OrderedDict()
_lock = threading.Lock()
_environment_class: Callable[..., Callable[[], Environment]] = cache(make_environment)


class CorpusTool(BaseTool):  # type: ignore[misc]
    """A tool of EvoGraph-R1. All tools of a rollout share a session, whose edits no other rollout sees.

    Its `config` names the folder of the corpus, `corpus`, and where the web is searched, `web` (see `evograph.web`).
    """

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, Any]:
        """Return an id for a call."""
        return instance_id or uuid.uuid4().hex, ToolResponse()

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[Any, float, dict[str, Any]]:
        """Call the tool in the session of its rollout, and return what it shows, without a reward of its own."""
        session = str(getattr(kwargs.get("agent_data"), "request_id", instance_id))
        shown = await asyncio.to_thread(self._call, session, parameters)
        return ToolResponse(text=shown), 0.0, {}

    def _call(self, session: str, parameters: dict[str, Any]) -> str:
        with _lock:
            if session not in _sessions:
                _sessions[session] = _environment_class(self.config["corpus"], web=self.config.get("web", "none"))()
                while len(_sessions) > MAX_SESSIONS:
                    _sessions.popitem(last=False)
            environment = _sessions[session]
        return call_tool(environment, self.name, parameters)
