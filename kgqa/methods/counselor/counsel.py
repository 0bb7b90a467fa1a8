"""What the trials of a question share: the functions of the graph, and how the language model is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kgqa.llm.asking import ask_readings
from kgqa.llm.client import Stage
from kgqa.llm.replies.action_lines import MAX_CALLS, MAX_DEPTH, Call, read_action_line
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.reply import Reply
from kgqa.methods.counselor.declarations import CounselorSettings
from kgqa.methods.counselor.definition import definition_lines, nearest_relations
from kgqa.methods.counselor.functions import FAILURES, GraphFunctions
from kgqa.methods.counselor.replies import TURN_SCHEMA
from kgqa.methods.counselor.writing import safe
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import BYTES_PER_TOKEN
from kgqa.model import Answer, Named
from kgqa.trace import GaveUp, TaskGiven
from kgqa.trace.trace import Trace

T = TypeVar("T")
MAX_PROMPT_TOKENS = 10_000
"""A longer prompt is not sent: it ends the trial."""
SHORTEST = 120
"""A line is not cut to fewer characters."""
CUT = "\u2026 (cut)"


class PromptTooLong(Exception):
    """A prompt has more than `MAX_PROMPT_TOKENS` tokens."""


@dataclass(frozen=True)
class Memory:
    """What one trial leaves to the next. `reflection`: a text. `facts`: observations, one line each."""

    reflection: str = ""
    facts: tuple[str, ...] = ()


class Counsel:
    """What the trials of a question share: the functions of the graph, and how the model is asked.

    Args:
        empty: An answer without results, with the question.
        resources: The resources of the run.
        trace: The trace of the question.
        depth: Most calls inside each other.

    Attributes:
        functions: The functions of the graph, with what they returned.
        definition: What prompts tell of the whole graph; empty for one with many relations.
        reply: The text of the last reply.
    """

    def __init__(
        self, empty: Answer, resources: Resources, trace: Trace, *, depth: int = MAX_DEPTH, ids_only: bool = False
    ) -> None:
        self.empty, self.resources, self.trace = empty, resources, trace
        self.settings = settings = resources.settings.of(CounselorSettings)
        self.depth, self.most_calls = (depth, MAX_CALLS) if settings.compose == "on" else (1, 1)
        self._graph, self._ids_only = resources.graph.for_question(trace), ids_only
        self.functions = self.new_functions()
        self.definition = self.tolerant(partial(definition_lines, self._graph, self.functions.hops))
        self.reply = ""

    def read_calls(self, text: str, *, published: bool = False) -> Reading[tuple[Call, ...]]:
        """Read a line of calls: with others inside and beside, unless an ablation allows a single one."""
        return read_action_line(text, depth=self.depth, calls=self.most_calls, published=published)

    def new_functions(self) -> GraphFunctions:
        """Return the functions of the graph, with nothing that they returned."""
        settings = self.settings
        return GraphFunctions(
            self._graph,
            encoder=self.resources.encoder,
            sets=settings.functions == "sets",
            retrieve=settings.retrieve,
            shown=settings.shown,
            ids_only=self._ids_only,
        )

    def tolerant(self, find: Callable[[], Sequence[str]]) -> tuple[str, ...]:
        """Return texts about the graph; none, with an event, if it does not return them."""
        try:
            return tuple(find())
        except FAILURES as error:
            self.trace.record(GaveUp(error=str(error)))
            return ()

    def relations_of(self, named: Named) -> str:
        """Return what is said of a retrieved node: its relations nearest to the question."""
        question, hops, encoder = self.empty.question.text, self.functions.hops, self.resources.encoder
        names = self.tolerant(lambda: nearest_relations(named, question, hops, encoder))
        return f"Relations of {safe(named.name)} nearest to the question: {'; '.join(names)}" if names else ""

    def ask(
        self,
        name: str,
        stage: Stage,
        read: Callable[[str], Reading[T]],
        lines: Sequence[str],
        memory: Memory,
        *,
        task: bool = False,
        **values: Any,
    ) -> Reading[T]:
        """Send a prompt of this method and return what was read; all prompts of a question begin alike.

        The prompt for the first actions of a trial is recorded as its task.

        Raises:
            PromptTooLong: The prompt is too long.
            BudgetExhausted: The question's budget is used up.
        """

        def read_and_keep(text: str) -> Reading[T]:
            self.reply = text
            return read(text)

        prompt = self.resources.prompts.prompt(
            f"counselor/{name}",
            stage,
            Reply(read_and_keep, TURN_SCHEMA if name == "merged" else None),
            question=self.empty.question.text,
            definition=self.definition,
            planned=self.settings.plan == "on",
            depth=self.depth,
            sets=self.settings.functions == "sets",
            reflection=memory.reflection,
            facts=memory.facts,
            lines=lines,
            **values,
        )
        if sum(tokens_of(message.text) for message in prompt.messages) > MAX_PROMPT_TOKENS:
            raise PromptTooLong(f"the prompt would have more than {MAX_PROMPT_TOKENS:,} tokens")
        if task:
            texts = {message.role: message.text for message in prompt.messages}
            self.trace.record(TaskGiven(system=texts.get("system", ""), user=texts.get("user", "")))
        assert self.resources.models is not None
        self.reply = ""
        models, reask = self.resources.models.for_question(self.trace), self.resources.settings.llm.reask
        (reading,) = ask_readings(models, self.resources.prompts, [prompt], reask=reask)
        return reading


def tokens_of(text: str) -> int:
    """Estimate the number of tokens of a text."""
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN


def within(lines: Sequence[str], tokens: int) -> list[str]:
    """Return lines with about so many tokens at most: the longest are cut, then the first left out."""
    limit, kept = max(map(len, lines), default=0), list(lines)
    while sum(tokens_of(line) + 1 for line in kept) > tokens:
        if limit > SHORTEST:
            limit = max(SHORTEST, limit * 3 // 4)
            kept = [line if len(line) <= limit else line[: limit - len(CUT)].rstrip() + CUT for line in kept]
        else:
            del kept[0]
    return kept
