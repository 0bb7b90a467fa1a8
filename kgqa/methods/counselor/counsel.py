"""What the trials of a question share: the functions of the graph, what prompts tell of it, how the model is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.client import Stage
from kgqa.llm.replies.action_lines import MAX_CALLS, MAX_DEPTH, Call, read_action_line
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.reply import Reply
from kgqa.methods.counselor.declarations import CounselorSettings
from kgqa.methods.counselor.functions import FAILURES, GraphFunctions
from kgqa.methods.counselor.names import HopNames
from kgqa.methods.counselor.replies import TURN
from kgqa.methods.counselor.writing import safe
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import BYTES_PER_TOKEN
from kgqa.model import Answer, Entity, Named, Step
from kgqa.rank.embedding.encoder import cosines
from kgqa.rank.lexical import bm25
from kgqa.text.words import type_words
from kgqa.trace import GaveUp, TaskGiven
from kgqa.trace.trace import Trace

T = TypeVar("T")
MAX_PROMPT_TOKENS = 10_000
"""A longer prompt for a line of a step is not sent: it ends the trial."""
SHORTEST = 120
"""A line is not cut to fewer characters."""
CUT = "\u2026 (cut)"
MAX_RELATIONS = 60
"""Most relations of a graph whose definition is shown as a whole."""
NEAREST = 25
"""How many relations of a retrieved node are shown if the graph has more."""
ANY = "any node"


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
        self, empty: Answer, resources: Resources, trace: Trace, depth: int = MAX_DEPTH, *, ids_only: bool = False
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
        """Return what is said of a retrieved node: its relations nearest to the question, nearest first."""
        node, question, encoder = named.value, self.empty.question.text, self.resources.encoder
        assert isinstance(node, Entity)
        names = self.tolerant(lambda: list(dict.fromkeys(self.functions.hops.present((node,)).values())))
        scores = bm25(question, names) if encoder is None else cosines(encoder, question, names)
        order = sorted(range(len(names)), key=lambda at: (-scores[at], names[at]))
        nearest = "; ".join(safe(names[at]) for at in order[:NEAREST])
        return f"Relations of {safe(named.name)} nearest to the question: {nearest}" if names else ""

    def ask(
        self,
        name: str,
        stage: Stage,
        read: Callable[[str], Reading[T]],
        lines: Sequence[str],
        memory: Memory,
        **values: Any,
    ) -> Reading[T]:
        """Send a prompt of this method and return what was read; all prompts of a question begin alike.

        The prompt for the first actions of a trial is recorded as its task.

        Raises:
            PromptTooLong: The prompt for a line of a step is too long.
            BudgetExhausted: The question's budget is used up.
        """
        prompt = self.resources.prompts.prompt(
            f"counselor/{name}",
            stage,
            Reply(read, TURN.schema if name == "merged" else None),
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
        tokens = sum(tokens_of(message.text) for message in prompt.messages)
        if stage in ("plan", "think", "act") and tokens > MAX_PROMPT_TOKENS:
            raise PromptTooLong(f"the prompt would have more than {MAX_PROMPT_TOKENS:,} tokens")
        if stage == "act" and values["step"] == 1:
            texts = {message.role: message.text for message in prompt.messages}
            self.trace.record(TaskGiven(system=texts.get("system", ""), user=texts.get("user", "")))
        reading = self.resources.read(prompt, self.trace)
        self.reply = reading.text
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


def definition_lines(graph: KnowledgeGraph, hops: HopNames) -> tuple[str, ...]:
    """Return the types of nodes, each with its relations; nothing for a graph with many relations.

    Args:
        graph: The graph.
        hops: Names its relations.
    """
    return graph.tables.values.get("types with their relations", lambda: tuple(_lines(graph, hops)))


def _lines(graph: KnowledgeGraph, hops: HopNames) -> Iterator[str]:
    """Yield a line for each type of nodes: its relations, with the types to which they lead."""
    tables = graph.tables
    relations = sorted(name for name in tables.relations if not tables.is_noise(name))
    by_type: dict[str, dict[str, None]] = defaultdict(dict)
    for relation in relations if len(relations) <= MAX_RELATIONS else ():
        out, back = Step(relation), tables.inverses.get(relation)
        starts, ends = (_types(graph, step) for step in (out.reversed(), out))
        directions = [(out, starts, ends)]
        if back and back not in tables.relations:
            directions.append((out.reversed(), ends, starts))
        for step, here, there in directions:
            leads = f" ({', '.join(there)})" if there else ""
            for type_ in here or [ANY]:
                by_type[type_][safe(f"{hops.name((step,))}{leads}")] = None
    for type_ in sorted(by_type, key=lambda each: (each == ANY, each)):
        yield f"{safe(type_)}: {', '.join(by_type[type_])}"


def _types(graph: KnowledgeGraph, step: Step) -> list[str]:
    """Return the types of the nodes to which a step leads, as the graph declares them, in words."""
    one = graph.tables.target_type(step)
    declared = graph.tables.declarations.types["in"].get(step.relation, ()) if step.direction == "in" else ()
    return [type_words(each, graph.schema) for each in sorted(declared) or filter(None, [one])]
