"""GraphSearch as published (section 4): each channel has its sub-questions, contexts, answers, draft and verdict.

The number of prompts is that of the paper. What the paper leaves open, such as the background of the last prompt, is as
in its code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.json_values import Reading, last_part
from kgqa.llm.replies.reply import Reply, schema_of
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evidence import CheckedReply
from kgqa.methods.graphsearch.answering import LAST_STEP, NOT_VERIFIED
from kgqa.methods.graphsearch.channels import RELATIONAL, Channels, prompt_values
from kgqa.methods.graphsearch.replies import (
    ShortAnswers,
    copies_reply,
    numbered_reply,
    question_reply,
    triples_reply,
    verdict_reply,
)
from kgqa.methods.graphsearch.sub_queries import SubQuery, pattern_text, planned
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import NOTHING_FOUND, Rounds, RoundsOutcome, answer_in_rounds, unless_accepted
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.replies import PROSE, prose
from kgqa.methods.text.searching import within_tokens
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.text.words import clean, safe_text
from kgqa.trace import Drafted, DraftVerified, Grounded, PiecesKept, StepAnswered
from kgqa.trace.trace import Trace

ONE_ROUND_TOKENS = 12_000
"""About how many tokens of pieces are shown if no module is used: one search, one answer."""
UNREFINED_TOKENS = 500
"""About how many tokens of passages stand in for a refined context that could not be read."""
MAX_ANSWER_CHARS = 500
T = TypeVar("T")
ANSWERS: Reply[tuple[str, ...]] = Reply(read_answers, schema_of(ShortAnswers))


@dataclass(frozen=True, slots=True)
class Entry:
    """A sub-question of the history. `context`: its refined evidence."""

    query: SubQuery
    context: str = ""
    answers: tuple[str, ...] = ()


@dataclass
class Channel:
    """The state of one channel: its sub-questions, its history, its draft, and whether this was accepted."""

    name: str
    queries: tuple[SubQuery, ...] = ()
    entries: list[Entry] = field(default_factory=list)
    draft: str = ""
    accepted: bool = False

    @property
    def form(self) -> str:
        """The end of the names of its prompts."""
        return "graph" if self.name == RELATIONAL else "text"

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The history as prompts show it."""
        return [{"question": e.query.text, "context": e.context, "answer": "; ".join(e.answers)} for e in self.entries]

    def words(self, query: SubQuery) -> str:
        """Return a sub-question as prompts show it."""
        return (pattern_text(query.patterns) if self.name == RELATIONAL else "") or query.text

    def asked(self, query: SubQuery) -> dict[str, Any]:
        """Return a sub-question and the history as values of a prompt."""
        return {"number": query.number, "sub_question": self.words(query), "steps": self.steps}


@dataclass
class PublishedGraphSearch(Rounds):
    """The state of one question. `final`: the last reply. `pieces`: those that refined contexts come from."""

    final: str = ""
    pieces: dict[str, Piece] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own = self.resources.settings.of(GraphSearchSettings)
        self.retrieval = Channels(self, self.own, published=True)
        self.channels = [Channel(name) for name in self.retrieval.names]


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by GraphSearch as published; arguments and errors as in `top.answer`. Topics are ignored."""
    return answer_in_rounds("graphsearch", PublishedGraphSearch(resources, trace, question), run, best)


def run(state: PublishedGraphSearch) -> RoundsOutcome:
    """Answer the sub-questions of each channel, reflect once in each, and write the final text."""
    background = ""
    if state.retrieval.searchable and not state.own.uses("qd"):
        background = one_round(state)
    elif state.retrieval.searchable:
        for channel in state.channels:
            decompose(state, channel)
        for channel in state.channels:
            for query in channel.queries:
                answer_step(state, channel, query)
        for channel in state.channels if state.own.uses("all") else ():
            reflect(state, channel)
        contexts = [refine(state, channel, SubQuery(0, state.question)) for channel in state.channels]
        background = "\n".join(filter(None, contexts))
    if not background and not any(entry.context for channel in state.channels for entry in channel.entries):
        state.stopped(0, "nothing was retrieved")
        return result(state)
    name = "published_draft" if state.own.uses("ld") else "published_answer"
    steps = [step for channel in state.channels for step in channel.steps]
    state.final = state.reply(f"graphsearch/{name}", "decide", PROSE, background=background, steps=steps) or ""
    if state.final and state.own.uses("ld"):
        state.trace.record(Drafted(text=state.final, round=1))
    judged = state.own.uses("all") or not state.final  # else there is nothing that accepts an answer
    accepted = not judged or any(each.accepted for each in state.channels)
    return unless_accepted(state, result(state), accepted, NOT_VERIFIED)


def one_round(state: PublishedGraphSearch) -> str:
    """Search once for the question, as GraphRAG systems do; return what is found, as it is."""
    query = SubQuery(0, state.question)
    shown = [state.retrieval.in_channel(channel.name, [query])[0] for channel in state.channels]
    kept = within_tokens([piece for each in shown for piece in each], ONE_ROUND_TOKENS)
    state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in kept)))
    state.pieces = {piece.iri: piece for piece in kept}
    return safe_text("\n".join(piece.text for piece in kept))


def decompose(state: PublishedGraphSearch, channel: Channel) -> None:
    """Cut the question into sub-questions in words or in triples (query decomposition)."""
    plan = state.reply(f"graphsearch/decompose_{channel.form}", "plan", numbered_reply()) or ()
    if channel.name == RELATIONAL:
        before = sum(len(each.queries) for each in state.channels)
        patterns = [each.triples for each in plan if each.triples]
        queries = tuple(SubQuery(before + at, pattern_text(each), each) for at, each in enumerate(patterns, 1))
        channel.queries = queries or (SubQuery(before + 1, state.question),)
    else:
        channel.queries = tuple(planned([(each.question, ()) for each in plan if each.question], state.question))
    state.planned(query.event for query in channel.queries)


def answer_step(state: PublishedGraphSearch, channel: Channel, query: SubQuery) -> None:
    """Ground, retrieve, refine and answer a sub-question."""
    grounded = ground(state, channel, query)
    context = refine(state, channel, grounded)
    read: tuple[str, ...] | None = ()
    if state.own.uses("qg"):
        if context:
            read = state.reply("graphsearch/answer", "decide", ANSWERS, **channel.asked(grounded), context=context)
        found = (read or ())[:20]
        event = StepAnswered(
            question=channel.words(grounded), answers=found, read=read is not None, step=grounded.number
        )
        state.trace.record(event)
    channel.entries.append(Entry(grounded, context, read or ()))


def ground(state: PublishedGraphSearch, channel: Channel, query: SubQuery) -> SubQuery:
    """Let the model put earlier answers into a sub-question; one that stays unread is unchanged (query grounding).

    In words, those with a reference are grounded; in triples, all after the first.
    """
    found = query
    if not state.own.uses("qg") or not (query.needs or (channel.name == RELATIONAL and channel.entries)):
        return found
    form: Reply[Any] = triples_reply() if channel.name == RELATIONAL else question_reply()
    plan = [channel.words(each) for each in channel.queries]
    read = state.reply(f"graphsearch/ground_{channel.form}", "plan", form, **channel.asked(found), plan=plan)
    if read is not None:
        patterns = () if isinstance(read, str) else read
        found = SubQuery(query.number, pattern_text(patterns) or read, patterns)
    state.trace.record(Grounded(step=query.number, text=found.text, filled=read is not None))
    return found


def refine(state: PublishedGraphSearch, channel: Channel, query: SubQuery) -> str:
    """Retrieve for a sub-question, and let the model reduce what is found (context refinement).

    Returns:
        The context; "" if nothing was found. Without a readable reply, the first pieces as found.
    """
    (shown,) = state.retrieval.in_channel(channel.name, [query])
    kept, context = list(shown), ""
    values = {"number": query.number, "sub_question": channel.words(query)}
    if shown.passages:
        text = state.reply("graphsearch/refine_text", "refine", PROSE, **values, **prompt_values(shown))
        kept = within_tokens(kept, UNREFINED_TOKENS) if text is None else kept
        context = prose("\n".join(piece.text for piece in kept)) if text is None else text
    elif shown:
        facts = [piece.text for piece in shown]
        places = state.reply("graphsearch/refine_graph", "refine", copies_reply(facts), **values, facts=facts)
        kept = within_tokens(kept, UNREFINED_TOKENS) if places is None else [shown.facts[at] for at in places]
        context = prose("\n".join(piece.text for piece in kept)) or "Nothing relevant."
    state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in kept), step=query.number))
    state.pieces |= {piece.iri: piece for piece in kept}
    return context


def reflect(state: PublishedGraphSearch, channel: Channel) -> None:
    """Write a chain of reasoning and verify it; add what is retrieved for new sub-questions, unanswered.

    These are logic drafting, evidence verification and query expansion.
    """
    if not any(entry.context for entry in channel.entries):
        return
    channel.draft = (
        state.reply("graphsearch/published_draft", "decide", PROSE, background="", steps=channel.steps) or ""
    )
    state.trace.record(Drafted(text=channel.draft, channel=channel.name))
    if not channel.draft:
        return
    values = {"steps": channel.steps, "draft": channel.draft}
    verdict, analysis = state.reply("graphsearch/published_verify", "decide", Reply(_read_verdict), **values) or (
        "unparsed",
        "",
    )
    channel.accepted = verdict == "yes"
    state.trace.record(DraftVerified(verdict=verdict, channel=channel.name))
    if channel.accepted != (state.own.gate == "accept"):
        return
    plan = (
        state.reply("graphsearch/published_expand", "plan", numbered_reply(empty=True), **values, analysis=analysis)
        or ()
    )
    last = max(entry.query.number for each in state.channels for entry in each.entries)
    queries = [SubQuery(number, each.question) for number, each in enumerate(plan, last + 1)]
    if queries:
        state.planned((SubQuery(query.number, query.text).event for query in queries), 1)
    channel.entries += [Entry(query, refine(state, channel, query)) for query in queries]


def _read_verdict(text: str) -> Reading[tuple[str, str]]:
    """Read the last yes or no of an analysis, with the analysis."""
    reading = verdict_reply().read(text)
    value = (reading.value.verdict, prose(last_part(text))) if reading.value is not None else None
    return Reading(value, reading.repaired, reading.problem)


def result(state: PublishedGraphSearch) -> RoundsOutcome:
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
        return RoundsOutcome(reason=UNREADABLE if retrieved else NOTHING_FOUND)
    return RoundsOutcome(
        reply, [each for each in state.pieces.values() if each.kind != "chunk"] if reply.answers else ()
    )


def best(state: PublishedGraphSearch) -> RoundsOutcome:
    """Return the best answer so far, which was not accepted."""
    return replace(result(state), accepted=False)
