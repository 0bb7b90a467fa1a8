"""GraphSearch as published: each channel has its sub-questions, refined contexts, answers, draft and verdict.

The prompts of both channels that do not need each other are sent together; their number is that of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.client import Stage
from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.quoted_answers import QuotedAnswer
from kgqa.methods.graphsearch.channels import RELATIONAL, Channels, Found, prompt_values
from kgqa.methods.graphsearch.lanes import Entry, Lane, history_of
from kgqa.methods.graphsearch.replies import (
    Plan,
    prose,
    read_copies,
    read_patterns,
    read_plan,
    read_prose,
    read_question,
    read_verdict,
)
from kgqa.methods.graphsearch.results import LAST_STEP, Result, result_of_text
from kgqa.methods.graphsearch.sub_queries import MAX_STEPS, GroundedQuery, SubQuery, planned
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.searching import TextSearch, within_tokens
from kgqa.model import Piece, Question
from kgqa.trace import (
    Drafted,
    DraftVerified,
    Grounded,
    PiecesKept,
    Planned,
    StepAnswered,
    Stopped,
)
from kgqa.trace.trace import Trace

UNREFINED_TOKENS = 500
"""About how many tokens of passages stand in for a refined context that could not be read."""
Asked = tuple[str, dict[str, Any], Callable[[str], Reading[Any]]]
"""The name of a prompt, its values, and the reader of the reply."""


class PublishedSearch:
    """The published search for the answer to one question.

    Attributes:
        lanes: The channels.
        final: The text of the last prompt; "" if there is none yet.
        pieces: The pieces that refined contexts come from.
    """

    def __init__(self, question: Question, resources: Resources, search: TextSearch, trace: Trace) -> None:
        settings = resources.settings.of(GraphSearchSettings)
        self._question = question.text
        self._resources = resources
        self._trace = trace
        self._corpus = search.corpus
        self._channels = Channels(search, settings)
        self._gate = settings.gate
        self._modules = tuple(settings.modules.split(","))
        self.lanes = [Lane(name) for name in self._channels.names]
        self.final = ""
        self.pieces: dict[str, Piece] = {}

    def uses(self, module: str) -> bool:
        """Return whether a module is used: qd, cr, qg, ld, or all for those after them."""
        return module in self._modules or self._modules == ("all",)

    @property
    def _reflects(self) -> bool:
        """Whether drafts are verified; if nothing follows from a verdict, none is asked for."""
        return self.uses("all") and self._gate != "never"

    @property
    def judged(self) -> bool:
        """Whether the answer needs to be accepted: drafts were verified, or the last reply could not be read."""
        return self._reflects or not self.final

    @property
    def accepted(self) -> bool:
        """Whether the draft of a channel was accepted."""
        return any(lane.accepted for lane in self.lanes)

    def run(self) -> None:
        """Answer the sub-questions of all channels, reflect once, and write the final text."""
        if not self._channels.searchable:
            self._trace.record(Stopped(round=0, why="nothing was retrieved"))
            return
        self._plan()
        for level in zip_longest(*(lane.queries for lane in self.lanes)):
            self._answer_level([(lane, query) for lane, query in zip(self.lanes, level) if query is not None])
        if self._reflects:
            self._reflect()
        background = self._background()
        if not background and not any(entry.context for lane in self.lanes for entry in lane.entries):
            self._trace.record(Stopped(round=0, why="nothing was retrieved"))
            return
        drafts = self.uses("ld")
        values = {"question": self._question, "background": background, "steps": history_of(self.lanes)}
        name = "published_draft" if drafts else "published_answer"
        (text,) = self._ask("decide", [(name, values, read_prose)])
        self.final = text or ""
        if drafts and self.final:
            self._trace.record(Drafted(text=self.final, round=1))

    @property
    def retrieved(self) -> bool:
        """Whether anything was found for a sub-question or the question."""
        return bool(self.pieces) or any(entry.context for lane in self.lanes for entry in lane.entries)

    def result(self) -> Result | None:
        """Return the last text, or else a draft, an accepted one first, or the last answered sub-question."""
        lanes = sorted(self.lanes, key=lambda lane: lane.accepted)[::-1]
        text = self.final or next((lane.draft for lane in lanes if lane.draft), "")
        if text:
            return result_of_text(text)
        answered = [entry for lane in self.lanes for entry in lane.entries if entry.answers]
        return Result(QuotedAnswer(answered[-1].answers), notes=(LAST_STEP,)) if answered else None

    def facts_used(self, graph: KnowledgeGraph) -> list[Piece]:
        """Return the facts in refined contexts."""
        return [piece for piece in self.pieces.values() if piece.kind != "chunk"]

    # ---- sub-questions ----

    def _plan(self) -> None:
        values = {"question": self._question, "most": MAX_STEPS}
        asked: list[Asked] = [(f"decompose_{lane.form}", values, read_plan) for lane in self.lanes]
        number = 0
        every: list[SubQuery] = []
        for lane, plan in zip(self.lanes, self._ask("plan", asked)):
            lane.queries = self._queries(lane, plan, number)
            number += len(lane.queries)
            every += lane.queries
        self._trace.record(Planned(sub_questions=tuple(query.event for query in every)))

    def _queries(self, lane: Lane, plan: Plan | None, before: int) -> tuple[SubQuery, ...]:
        """Return the sub-questions of a channel, numbered after those of the other one."""
        if lane.channel == RELATIONAL:
            patterns = [each for each in plan.patterns if each][:MAX_STEPS] if plan else []
            if not patterns:
                return (SubQuery(before + 1, self._question),)
            return tuple(
                SubQuery(before + at, "; ".join(", ".join(each) for each in several), several)
                for at, several in enumerate(patterns, 1)
            )
        texts = [text for text in plan.texts if text] if plan else []
        return planned(self._question, texts or [self._question])

    def _answer_level(self, level: Sequence[tuple[Lane, SubQuery]]) -> None:
        """Ground, retrieve, refine and answer one sub-question of each channel."""
        queries = self._grounded(level) if self.uses("qg") else [_as_it_stands(query) for _, query in level]
        lanes = [lane for lane, _ in level]
        contexts = self._refined(lanes, queries)
        answers: list[tuple[str, ...] | None] = [()] * len(lanes)
        if self.uses("qg"):
            asked = [at for at, (_, context) in enumerate(contexts) if context]
            values = [
                {
                    "number": queries[at].number,
                    "sub_question": lanes[at].shown(queries[at]),
                    "context": contexts[at][1],
                    "steps": lanes[at].steps(),
                }
                for at in asked
            ]
            for at, read in zip(asked, self._ask("decide", [("answer", each, read_answers) for each in values])):
                answers[at] = read
        for lane, query, (pieces, context), read in zip(lanes, queries, contexts, answers):
            if self.uses("qg"):
                event = StepAnswered(
                    question=lane.shown(query), answers=(read or ())[:20], read=read is not None, step=query.number
                )
                self._trace.record(event)
            lane.entries.append(Entry(query, pieces, context, read or ()))

    def _grounded(self, level: Sequence[tuple[Lane, SubQuery]]) -> list[GroundedQuery]:
        """Let the model put earlier answers into sub-questions; one that stays unread is left unchanged."""
        found = {id(query): _as_it_stands(query) for _, query in level}
        open_ = [(lane, query) for lane, query in level if query.needs or (lane.form == "graph" and lane.entries)]
        asked: list[Asked] = []
        for lane, query in open_:
            shown = lane.shown(found[id(query)])
            values = {
                "question": self._question,
                "number": query.number,
                "sub_question": shown,
                "steps": lane.steps(),
            }
            reader = read_patterns if lane.form == "graph" else read_question
            asked.append((f"ground_{lane.form}", values, reader))
        for (lane, query), read in zip(open_, self._ask("plan", asked)):
            if read is not None and lane.form == "graph":
                text = "; ".join(", ".join(each) for each in read)
                found[id(query)] = GroundedQuery(query.number, text, read)
            elif read is not None:
                found[id(query)] = GroundedQuery(query.number, read)
            after = found[id(query)]
            self._trace.record(Grounded(step=query.number, text=after.text, filled=read is not None))
        return [found[id(query)] for _, query in level]

    def _refined(self, lanes: Sequence[Lane], queries: Sequence[GroundedQuery]) -> list[tuple[tuple[Piece, ...], str]]:
        """Retrieve for sub-questions, each in its channel, and let the model reduce what is found.

        Returns:
            For each sub-question the pieces of the context, and the context; "" if nothing was found.
        """
        found = [self._channels.in_channel(lane.channel, [query])[0] for lane, query in zip(lanes, queries)]
        asked: list[Asked] = []
        for lane, query, each in zip(lanes, queries, found):
            asked += [self._refinement(lane, query, each)] if each.pieces else []
        replies = iter(self._ask("refine", asked))
        contexts = []
        for query, each in zip(queries, found):
            pieces, context = self._context(each, next(replies)) if each.pieces else ((), "")
            self._trace.record(PiecesKept(pieces=tuple(piece.iri for piece in pieces), step=query.number))
            self.pieces |= {piece.iri: piece for piece in pieces}
            contexts.append((pieces, context))
        return contexts

    def _refinement(self, lane: Lane, query: GroundedQuery, found: Found) -> Asked:
        values: dict[str, Any] = {"number": query.number, "sub_question": lane.shown(query)}
        if found.passages:
            return "refine_text", values | prompt_values(found, self._corpus), read_prose
        facts = [piece.text for piece in found.facts]
        return "refine_graph", {**values, "facts": facts}, partial(read_copies, listed=facts)

    def _context(self, found: Found, read: Any) -> tuple[tuple[Piece, ...], str]:
        """Return the pieces and the text of a refined context; without a readable reply, the first pieces as found."""
        if read is None:
            kept = tuple(within_tokens(found.pieces, UNREFINED_TOKENS))
            return kept, prose("\n".join(piece.text for piece in kept))
        if isinstance(read, str):
            return found.pieces, read
        kept = tuple(found.facts[at] for at in read)
        return kept, "\n".join(piece.text for piece in kept) or "Nothing relevant."

    # ---- reflection ----

    def _reflect(self) -> None:
        """Draft and verify in each channel; ask once for what rejected drafts lack."""
        lanes = [lane for lane in self.lanes if any(entry.context for entry in lane.entries)]
        asked: list[Asked] = []
        for lane in lanes:
            values = {"question": self._question, "background": "", "steps": lane.steps()}
            asked.append(("published_draft", values, read_prose))
        for lane, text in zip(lanes, self._ask("decide", asked)):
            lane.draft = text or ""
            self._trace.record(Drafted(text=lane.draft, channel=lane.channel))
        drafted = [lane for lane in lanes if lane.draft]
        asked = []
        for lane in drafted:
            values = {"question": self._question, "steps": lane.steps(), "draft": lane.draft}
            asked.append(("published_verify", values, read_verdict))
        for lane, verdict in zip(drafted, self._ask("decide", asked)):
            lane.verdict = verdict
            self._trace.record(DraftVerified(verdict=verdict.verdict if verdict else "unparsed", channel=lane.channel))
        self._expand([lane for lane in drafted if self._needs_more(lane)])

    def _needs_more(self, lane: Lane) -> bool:
        return {"reject": not lane.accepted, "accept": lane.accepted, "always": True}[self._gate]

    def _expand(self, lanes: Sequence[Lane]) -> None:
        """Ask for new sub-questions in some channels, and add what is retrieved for them, without answers."""
        asked: list[Asked] = []
        for lane in lanes:
            values = {
                "question": self._question,
                "most": MAX_STEPS,
                "steps": lane.steps(),
                "draft": lane.draft,
                "analysis": lane.verdict.analysis if lane.verdict else "",
            }
            asked.append(("published_expand", values, partial(read_plan, empty=True)))
        number = max(query.number for lane in self.lanes for query in lane.queries)
        new: list[tuple[Lane, GroundedQuery]] = []
        for lane, plan in zip(lanes, self._ask("plan", asked)):
            for text in plan.texts[:MAX_STEPS] if plan else ():
                number += 1
                new.append((lane, GroundedQuery(number, text)))
        if not new:
            return
        events = tuple(SubQuery(query.number, query.text).event for _, query in new)
        self._trace.record(Planned(sub_questions=events, round=1))
        contexts = self._refined([lane for lane, _ in new], [query for _, query in new])
        for (lane, query), (pieces, context) in zip(new, contexts):
            lane.entries.append(Entry(query, pieces, context))

    def _background(self) -> str:
        """Return the refined contexts of the whole question."""
        query = GroundedQuery(0, self._question)
        contexts = self._refined(self.lanes, [query] * len(self.lanes))
        return "\n".join(context for _, context in contexts if context)

    def _ask(self, stage: Stage, asked: Sequence[Asked]) -> list[Any]:
        if not asked:
            return []
        prompts = self._resources.prompts
        rendered = [prompts.prompt(f"graphsearch/{name}", stage, **values) for name, values, _ in asked]
        return self._resources.ask_model(rendered, [reader for _, _, reader in asked], self._trace)


def _as_it_stands(query: SubQuery) -> GroundedQuery:
    return GroundedQuery(query.number, query.text, query.patterns, not query.needs)
