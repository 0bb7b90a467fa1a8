"""GraphSearch as published (section 4): each channel has its sub-questions, contexts, answers, draft and verdict.

The prompts of both channels that do not need each other are sent together; their number is that of the paper. What the
paper leaves open, such as the background of the last prompt, is as in its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from kgqa.llm.client import Stage
from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.json_values import Reading, last_part
from kgqa.llm.replies.reply import Reply, schema_of
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evidence import CheckedReply, Exhibits
from kgqa.methods.graphsearch.channels import RELATIONAL, Channels, prompt_values
from kgqa.methods.graphsearch.replies import (
    Plan,
    ShortAnswers,
    copies_reply,
    numbered_reply,
    question_reply,
    triples_reply,
    verdict_reply,
)
from kgqa.methods.graphsearch.sub_queries import GroundedQuery, SubQuery, pattern_text, planned
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import NOTHING_FOUND, Outcome, Rounds, answer_in_rounds, unless_accepted
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.replies import PROSE, prose
from kgqa.methods.text.searching import within_tokens
from kgqa.model import Answer, Piece, Question
from kgqa.text.words import clean, safe_text
from kgqa.trace import Drafted, DraftVerified, Grounded, PiecesKept, StepAnswered
from kgqa.trace.trace import Trace

ONE_ROUND_TOKENS = 12_000
"""About how many tokens of pieces are shown if no module is used: one search, one answer."""
UNREFINED_TOKENS = 500
"""About how many tokens of passages stand in for a refined context that could not be read."""
MAX_ANSWER_CHARS = 500
NOT_VERIFIED = "The answer is not verified: no draft of the reasoning was accepted."
LAST_STEP = "This is the answer of the last sub-question that was answered."
Asked = tuple[str, dict[str, Any], Reply[Any]]
"""The name of a prompt, its values, and the form of the reply."""
ANSWERS: Reply[tuple[str, ...]] = Reply(read_answers, schema_of(ShortAnswers))


@dataclass(frozen=True, slots=True)
class Entry:
    """A sub-question of the history. `context`: its refined evidence."""

    query: GroundedQuery
    context: str = ""
    answers: tuple[str, ...] = ()


@dataclass
class Channel:
    """The state of one channel: its sub-questions, its history, its last draft, and the verdict on it with reasons."""

    name: str
    queries: tuple[SubQuery, ...] = ()
    entries: list[Entry] = field(default_factory=list)
    draft: str = ""
    verdict: str = ""
    analysis: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the draft was accepted."""
        return self.verdict == "yes"

    @property
    def form(self) -> str:
        """The end of the names of its prompts."""
        return "graph" if self.name == RELATIONAL else "text"

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The history as prompts show it."""
        return [{"question": e.query.text, "context": e.context, "answer": "; ".join(e.answers)} for e in self.entries]

    @property
    def plan(self) -> list[str]:
        """The sub-questions as planned."""
        return [self.words(query) for query in self.queries]

    def words(self, query: GroundedQuery | SubQuery) -> str:
        """Return a sub-question as prompts show it."""
        return (pattern_text(query.patterns) if self.name == RELATIONAL else "") or query.text


@dataclass
class Search(Rounds):
    """The state of one question. `final`: the last reply. `pieces`: those that refined contexts come from."""

    final: str = ""
    pieces: dict[str, Piece] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own = self.resources.settings.of(GraphSearchSettings)
        self.retrieval = Channels(self.search, self.own, published=True)
        self.channels = [Channel(name) for name in self.retrieval.names]

    def uses(self, module: str) -> bool:
        """Return whether a module is used: qd, cr, qg, ld, or all for those after them."""
        return self.own.modules == "all" or module in self.own.modules.split(",")

    @property
    def reflects(self) -> bool:
        """Whether drafts are verified; if nothing follows from a verdict, none is asked for."""
        return self.uses("all") and self.own.gate != "never"

    def replies(self, stage: Stage, asked: Iterable[Asked]) -> list[Any]:
        """Send prompts of one stage together, and return the values in the replies."""
        return self.ask([self.prompt(f"graphsearch/{name}", stage, form, **values) for name, values, form in asked])


def answer(question: Question, *, resources: Resources, trace: Trace) -> Answer:
    """Answer by GraphSearch as published; see `graphsearch.answering.answer`."""
    return answer_in_rounds("graphsearch", Search(question, resources, trace), run, best)


def run(state: Search) -> Outcome:
    """Answer the sub-questions of all channels, reflect once, and write the final text."""
    background = ""
    if state.retrieval.searchable and not state.uses("qd"):
        background = one_round(state)
    elif state.retrieval.searchable:
        decompose(state)
        for level in zip_longest(*(channel.queries for channel in state.channels)):
            answer_level(state, [(each, query) for each, query in zip(state.channels, level) if query is not None])
        if state.reflects:
            expand(state, verify(state, write_drafts(state)))
        query = GroundedQuery(0, state.question)
        background = "\n".join(filter(None, refine(state, state.channels, [query] * len(state.channels))))
    if not background and not any(entry.context for channel in state.channels for entry in channel.entries):
        state.stopped(0, "nothing was retrieved")
        return result(state)
    name = "published_draft" if state.uses("ld") else "published_answer"
    values = {"background": background, "steps": [step for channel in state.channels for step in channel.steps]}
    (text,) = state.replies("decide", [(name, values, PROSE)])
    state.final = text or ""
    if state.final and state.uses("ld"):
        state.trace.record(Drafted(text=state.final, round=1))
    judged = state.reflects or not state.final  # else there is nothing that accepts an answer
    accepted = not judged or any(each.accepted for each in state.channels)
    return unless_accepted(state, result(state), accepted, NOT_VERIFIED)


def one_round(state: Search) -> str:
    """Search once for the question, as GraphRAG systems do; return what is found, as it is."""
    query = GroundedQuery(0, state.question)
    shown = [state.retrieval.in_channel(channel.name, [query])[0] for channel in state.channels]
    kept = within_tokens([piece for each in shown for piece in each], ONE_ROUND_TOKENS)
    state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in kept)))
    state.pieces = {piece.iri: piece for piece in kept}
    return safe_text("\n".join(piece.text for piece in kept))


def decompose(state: Search) -> None:
    """Cut the question into sub-questions, in each channel by a prompt of its own (query decomposition)."""
    asked: list[Asked] = [(f"decompose_{channel.form}", {}, numbered_reply()) for channel in state.channels]
    every: list[SubQuery] = []
    for channel, plan in zip(state.channels, state.replies("plan", asked)):
        channel.queries = _queries(state, channel, plan, len(every))
        every += channel.queries
    state.planned(query.event for query in every)


def _queries(state: Search, channel: Channel, plan: Plan | None, before: int) -> tuple[SubQuery, ...]:
    """Return the sub-questions of a channel; those in triples are numbered after those in words."""
    if channel.name == RELATIONAL:
        patterns = [each.triples for each in plan or () if each.triples]
        queries = tuple(SubQuery(before + at, pattern_text(each), each) for at, each in enumerate(patterns, 1))
        return queries or (SubQuery(before + 1, state.question),)
    return planned(state.question, [each.question for each in plan or () if each.question], most=None)


def answer_level(state: Search, level: Sequence[tuple[Channel, SubQuery]]) -> None:
    """Ground, retrieve, refine and answer one sub-question of each channel."""
    channels = [channel for channel, _ in level]
    queries = ground(state, level) if state.uses("qg") else [_as_it_stands(query) for _, query in level]
    contexts = refine(state, channels, queries)
    answers: list[tuple[str, ...] | None] = [()] * len(level)
    if state.uses("qg"):
        asked = [at for at, context in enumerate(contexts) if context]
        values = [_sub_question(channels[at], queries[at]) | {"context": contexts[at]} for at in asked]
        for at, read in zip(asked, state.replies("decide", [("answer", each, ANSWERS) for each in values])):
            answers[at] = read
    for channel, query, context, read in zip(channels, queries, contexts, answers):
        if state.uses("qg"):
            found, words = (read or ())[:20], channel.words(query)
            event = StepAnswered(question=words, answers=found, read=read is not None, step=query.number)
            state.trace.record(event)
        channel.entries.append(Entry(query, context, read or ()))


def _sub_question(channel: Channel, query: GroundedQuery) -> dict[str, Any]:
    return {"number": query.number, "sub_question": channel.words(query), "steps": channel.steps}


def _as_it_stands(query: SubQuery) -> GroundedQuery:
    return GroundedQuery(query.number, query.text, query.patterns, not query.needs)


def ground(state: Search, level: Sequence[tuple[Channel, SubQuery]]) -> list[GroundedQuery]:
    """Let the model put earlier answers into sub-questions; one that stays unread is left unchanged (query grounding).

    In words, those with a reference are grounded; in triples, all after the first.
    """
    found = [_as_it_stands(query) for _, query in level]
    open_ = [at for at, (each, query) in enumerate(level) if query.needs or (each.name == RELATIONAL and each.entries)]
    forms: dict[str, Reply[Any]] = {"graph": triples_reply(), "text": question_reply()}
    asked: list[Asked] = [
        (f"ground_{channel.form}", _sub_question(channel, found[at]) | {"plan": channel.plan}, forms[channel.form])
        for at in open_
        for channel in level[at][:1]
    ]
    for at, read in zip(open_, state.replies("plan", asked)):
        if read is not None:
            patterns = () if isinstance(read, str) else read
            found[at] = GroundedQuery(found[at].number, pattern_text(patterns) or read, patterns)
        state.trace.record(Grounded(step=found[at].number, text=found[at].text, filled=read is not None))
    return found


def refine(state: Search, channels: Sequence[Channel], queries: Sequence[GroundedQuery]) -> list[str]:
    """Retrieve for sub-questions, each in its channel, and let the model reduce what is found (context refinement).

    Returns:
        The context of each sub-question; "" if nothing was found.
    """
    found = [state.retrieval.in_channel(channel.name, [query])[0] for channel, query in zip(channels, queries)]
    asked = [_refinement(*each) for each in zip(channels, queries, found) if each[2]]
    replies = iter(state.replies("refine", asked))
    contexts = []
    for query, shown in zip(queries, found):
        pieces, context = _context(shown, next(replies)) if shown else ([], "")
        state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in pieces), step=query.number))
        state.pieces |= {piece.iri: piece for piece in pieces}
        contexts.append(context)
    return contexts


def _refinement(channel: Channel, query: GroundedQuery, shown: Exhibits[Piece]) -> Asked:
    values: dict[str, Any] = {"number": query.number, "sub_question": channel.words(query)}
    if shown.passages:
        return "refine_text", values | prompt_values(shown), PROSE
    facts = [piece.text for piece in shown]
    return "refine_graph", {**values, "facts": facts}, copies_reply(facts)


def _context(shown: Exhibits[Piece], read: Any) -> tuple[Sequence[Piece], str]:
    """Return the pieces and the text of a refined context; without a readable reply, the first pieces as found."""
    if isinstance(read, str):
        return list(shown), read
    if read is None:
        kept = within_tokens(list(shown), UNREFINED_TOKENS)
        return kept, prose("\n".join(piece.text for piece in kept))
    kept = [shown.facts[at] for at in read]
    return kept, "\n".join(piece.text for piece in kept) or "Nothing relevant."


def write_drafts(state: Search) -> list[Channel]:
    """Write a chain of reasoning in each channel with evidence (logic drafting); return the channels with a draft."""
    channels = [channel for channel in state.channels if any(entry.context for entry in channel.entries)]
    values = [{"background": "", "steps": channel.steps} for channel in channels]
    texts = state.replies("decide", [("published_draft", each, PROSE) for each in values])
    for channel, text in zip(channels, texts):
        channel.draft = text or ""
        state.trace.record(Drafted(text=channel.draft, channel=channel.name))
    return [channel for channel in channels if channel.draft]


def verify(state: Search, channels: Sequence[Channel]) -> list[Channel]:
    """Ask for a verdict on each draft (evidence verification); return the channels that ask for more."""
    values = [{"steps": channel.steps, "draft": channel.draft} for channel in channels]
    verdicts = state.replies("decide", [("published_verify", each, Reply(_read_verdict)) for each in values])
    for channel, read in zip(channels, verdicts):
        channel.verdict, channel.analysis = read or ("unparsed", "")
        state.trace.record(DraftVerified(verdict=channel.verdict, channel=channel.name))
    gate = state.own.gate
    return [each for each in channels if gate == "always" or each.accepted == (gate == "accept")]


def _read_verdict(text: str) -> Reading[tuple[str, str]]:
    """Read the last yes or no of an analysis."""
    reading = verdict_reply().read(text)
    value = (reading.value.verdict, prose(last_part(text))) if reading.value is not None else None
    return Reading(value, reading.repaired, reading.problem)


def expand(state: Search, channels: Sequence[Channel]) -> None:
    """Ask for new sub-questions in some channels (query expansion); add what is retrieved for them, unanswered."""
    asked: list[Asked] = [
        (
            "published_expand",
            {
                "steps": channel.steps,
                "draft": channel.draft,
                "analysis": channel.analysis,
            },
            numbered_reply(empty=True),
        )
        for channel in channels
    ]
    number = max(query.number for channel in state.channels for query in channel.queries)
    new: list[tuple[Channel, GroundedQuery]] = []
    for channel, plan in zip(channels, state.replies("plan", asked)):
        for each in plan or ():
            number += 1
            new.append((channel, GroundedQuery(number, each.question)))
    if new:
        state.planned((SubQuery(query.number, query.text).event for _, query in new), 1)
        contexts = refine(state, [channel for channel, _ in new], [query for _, query in new])
        for (channel, query), context in zip(new, contexts):
            channel.entries.append(Entry(query, context))


def result(state: Search) -> Outcome:
    """Return the last text, or else a draft, an accepted one first, or the last answered sub-question."""
    drafts = [each.draft for each in sorted(state.channels, key=lambda each: each.accepted)[::-1] if each.draft]
    text = state.final or next(iter(drafts), "")
    entries = [entry for channel in state.channels for entry in channel.entries]
    answered = [entry.answers for entry in entries if entry.answers]
    if text:
        read = read_answers(text).value
        whole = (clean(text)[:MAX_ANSWER_CHARS].strip(),)
        reply: CheckedReply[Piece] = CheckedReply(whole if read is None else read, text)
    elif answered:
        reply = CheckedReply(answered[-1], notes=(LAST_STEP,))
    else:
        retrieved = state.pieces or any(entry.context for entry in entries)
        return Outcome(reason=UNREADABLE if retrieved else NOTHING_FOUND)
    return Outcome(reply, [each for each in state.pieces.values() if each.kind != "chunk"] if reply.answers else ())


def best(state: Search) -> Outcome:
    """Return the best answer so far, which was not accepted."""
    return replace(result(state), accepted=False)
