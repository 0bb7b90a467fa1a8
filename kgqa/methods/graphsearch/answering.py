"""GraphSearch over a text corpus, with fewer prompts than published and drafts whose quotes are checked.

Earlier answers are put into sub-questions in code; one prompt answers a sub-question from both channels; one draft
consists of claims with quotes, of which a verdict is asked for only if all were verified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgqa.llm.replies.quoted_answers import quoted_reply
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evidence import LIKELY, CheckedReply, Exhibits, shown_passages
from kgqa.methods.graphsearch.channels import Channels, interleaved, prompt_values
from kgqa.methods.graphsearch.replies import DRAFT, STEP, DraftVerdict, Plan, plan_reply, verdict_reply
from kgqa.methods.graphsearch.sub_queries import AskedSubQuery, SubQuery, fill_in, levels, planned, without_unknown
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import (
    NOTHING_FOUND,
    Rounds,
    RoundsOutcome,
    answer_in_rounds,
    in_rounds,
    new_questions,
    outcome,
    unless_accepted,
)
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.pattern_paths import Pattern
from kgqa.methods.text.searching import within_tokens
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.trace import DraftClaim, Drafted, DraftVerified, Grounded, PiecesKept, StepAnswered
from kgqa.trace.trace import Trace

DISPUTED = "The answers to a sub-question disagree: {}"
LAST_STEP = "This is the answer of the last sub-question that was answered."
NOT_VERIFIED = "The answer is not verified: no draft of the reasoning was accepted."
MAX_STEPS = 6
"""Most sub-questions of a plan, and most prompts that answer them."""
MAX_ROUNDS = 2
"""Most rounds of new sub-questions."""
MAX_EXPANSIONS = 3
"""Most new sub-questions of a round."""
MAX_TITLES = 30
"""Most titles of passages in a prompt that asks for what is missing."""
DRAFT_TOKENS = 2500
"""About how many tokens the passages of a draft have."""
MAX_DRAFT_FACTS = 6


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by GraphSearch over a corpus; arguments and errors as in `top.answer`. Topics are ignored."""
    return answer_in_rounds("graphsearch", GraphSearchRounds(resources, trace, question), run, best)


@dataclass
class GraphSearchRounds(Rounds):
    """The state of one question.

    Attributes:
        steps: The sub-questions that were asked, in their order.
        draft: The last draft with an answer, or else the last one; None before the first.
        accepted: Whether the last draft was accepted; without the module of verdicts, whether its quotes are verified.
        answered: How many sub-questions had been asked at the last draft.
    """

    steps: list[AskedSubQuery] = field(default_factory=list)
    draft: CheckedReply[Piece] | None = None
    accepted: bool = False
    answered: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own = self.resources.settings.of(GraphSearchSettings)
        self.channels = Channels(self, self.own)

    @property
    def shown_steps(self) -> list[dict[str, Any]]:
        """The sub-questions with their answers, in the order of their numbers."""
        return [step.values for step in sorted(self.steps, key=lambda step: step.query.number)]

    @property
    def known(self) -> list[dict[str, Any]]:
        """The sub-questions with an answer."""
        return [each for each in self.shown_steps if each["answer"]]

    @property
    def passages(self) -> list[Piece]:
        """The chunks that prompts of sub-questions showed, the best of each one first."""
        return interleaved([piece for piece in step.reply.shown if piece.kind == "chunk"] for step in self.steps)

    @property
    def facts(self) -> list[Piece]:
        """The other pieces that they showed."""
        return interleaved([piece for piece in step.reply.shown if piece.kind != "chunk"] for step in self.steps)

    def ground(self, query: SubQuery, most: int) -> list[SubQuery]:
        """Put the answers so far into a sub-question; see `fill_in`."""
        names: dict[int, list[str]] = {}
        for step in self.steps:
            names.setdefault(step.query.number, []).extend(step.answers)
        texts = {step.query.number: step.query.text for step in reversed(self.steps)}
        return fill_in(query, names, texts, most=most)


def run(state: GraphSearchRounds) -> RoundsOutcome:
    """Decompose the question, answer the sub-questions, then draft, verify and expand until a draft is accepted."""
    if state.channels.searchable:
        answer_plan(state, decompose(state) if state.own.uses("qd") else [SubQuery(1, state.question)])
    if not any(step.reply.shown for step in state.steps):
        state.stopped(0, "nothing was retrieved")
        return result(state)
    in_rounds(state, range(MAX_ROUNDS + 1), write_draft, verify, expand)
    return unless_accepted(state, result(state), state.accepted, NOT_VERIFIED)


def decompose(state: GraphSearchRounds) -> list[SubQuery]:
    """Cut the question into sub-questions, each in words and in triples (section 4.1.1)."""
    plan = state.reply("graphsearch/decompose", "plan", plan_reply(), most=MAX_STEPS) or ()
    queries = planned(_proposed(plan)[:MAX_STEPS], state.question)
    state.planned(query.event for query in queries)
    return queries


def _proposed(plan: Plan) -> list[tuple[str, tuple[Pattern, ...]]]:
    """Return sub-questions in words and in triples; for one that a reply does not give in words, its triples."""
    return [(each.question or "; ".join(map(" ".join, each.triples)), each.triples) for each in plan]


def answer_plan(state: GraphSearchRounds, queries: Sequence[SubQuery]) -> None:
    """Ground, retrieve and answer sub-questions level by level, each level in one batch."""
    waiting, grounding = len(queries), state.own.uses("qg")
    for level in levels(queries) if grounding else [queries]:
        grounded: list[SubQuery] = []
        for query in level:
            waiting -= 1
            if not (grounding and query.needs):
                grounded.append(query)
                continue
            several = state.ground(query, MAX_STEPS - len(state.steps) - len(grounded) - waiting)
            filled = {*query.needs} <= {step.query.number for step in state.steps if step.answers}
            for each in several:
                state.trace.record(Grounded(step=each.number, text=each.text, filled=filled))
            grounded += several
        answer_steps(state, grounded, state.channels.retrieve(grounded), 0)


def answer_steps(
    state: GraphSearchRounds, queries: Sequence[SubQuery], found: Sequence[Exhibits[Piece]], number: int
) -> None:
    """Ask for the answers of sub-questions in one batch; one for which nothing was found is unknown."""
    prompts, known = [], state.known
    for query, shown in zip(queries, found):
        if shown:
            state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in shown), step=query.number))
            values = {"number": query.number, "sub_question": query.text, "known": known, **prompt_values(shown)}
            prompts.append(state.prompt("graphsearch/step", "decide", quoted_reply(len(shown), STEP), **values))
    read_all = state.ask(prompts)
    replies = iter(read_all)
    for query, shown in zip(queries, found):
        read = next(replies) if shown else None
        step = AskedSubQuery(query, shown.check(read))
        event = StepAnswered(
            question=query.text,
            answers=step.answers[:20],
            read=read is not None or not shown,
            quotes=len(step.reply.citations),
            verified=step.reply.verified,
            step=query.number,
            round=number,
        )
        state.trace.record(event)
        state.steps.append(step)


def write_draft(state: GraphSearchRounds, number: int) -> CheckedReply[Piece] | None:
    """Draft the answer from the quoted passages, then those of all sub-questions (section 4.1.2)."""
    quoted = [piece for step in state.steps for piece in _quoted_chunks(state, step.reply)]
    kept = within_tokens(list({piece.iri: piece for piece in (*quoted, *state.passages)}.values()), DRAFT_TOKENS)
    shown = Exhibits(state.corpus, [*kept, *state.facts[:MAX_DRAFT_FACTS]])
    state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in shown)))
    values = prompt_values(shown)
    if state.own.uses("ld"):
        form = quoted_reply(len(shown), DRAFT)
        read = state.reply("graphsearch/draft", "decide", form, steps=state.shown_steps, **values)
    else:  # the question is answered like a sub-question
        values |= {"number": 1 + max(step.query.number for step in state.steps), "sub_question": state.question}
        values["known"] = state.known if state.own.uses("qg") else []
        read = state.reply("graphsearch/step", "decide", quoted_reply(len(shown), STEP), **values)
    if read is None:
        state.stopped(number, "the draft could not be read")
        return None
    draft = shown.check(read)
    claims = tuple(DraftClaim(text, verified) for text, verified in _claims(draft))
    state.trace.record(Drafted(text=draft.response, claims=claims, round=number))
    if state.draft is None or draft.answers or not state.draft.answers:
        state.draft = draft
    return draft


def _quoted_chunks(state: GraphSearchRounds, reply: CheckedReply[Piece]) -> list[Piece]:
    """Return the chunks in which verified quotes stand, each once."""
    table = state.corpus.index.pieces("chunk")
    return [piece for iri in dict.fromkeys(each.span.chunk for each in reply.quotes) if (piece := table.get(iri))]


def _claims(draft: CheckedReply[Piece]) -> list[tuple[str, bool]]:
    """Return the claims of a draft, each with whether its quote was verified; those without a quote come last."""
    quoted = [(each.claim or each.quote, each.verified) for each in draft.citations]
    return [*quoted, *((text, False) for text in draft.unquoted)]


def verify(
    state: GraphSearchRounds, number: int, draft: CheckedReply[Piece]
) -> tuple[CheckedReply[Piece], DraftVerdict] | None:
    """Return a draft with the verdict on it if more is to be asked; None if the search ends."""
    if not state.own.uses("all"):
        state.accepted = draft.sound
        return None
    verdict = judge(state, number, draft)
    state.accepted = verdict.verdict == "yes"
    if state.accepted == (state.own.gate == "accept"):
        return draft, verdict
    state.stopped(number, "the draft was accepted" if state.accepted else "the draft was not accepted")
    return None


def judge(state: GraphSearchRounds, number: int, draft: CheckedReply[Piece]) -> DraftVerdict:
    """Return the verdict on a draft; the model is asked only if every claim has a verified quote."""
    unproven = tuple(at for at, (_, verified) in enumerate(_claims(draft), 1) if not verified)
    read: DraftVerdict | None = DraftVerdict(verdict="no", failed=unproven)
    if draft.sound:
        passages = _quoted_chunks(state, draft)
        places = {piece.iri: place for place, piece in enumerate(passages, 1)}
        claims = [
            {"claim": each.claim or each.quote, "passage": places[each.span.chunk], "quote": each.quote}
            for each in draft.citations
            if each.span is not None
        ]
        values = {"answer": draft.words, "claims": claims, "passages": shown_passages(passages, state.corpus)}
        read = state.reply("graphsearch/verify", "decide", verdict_reply(), **values)
    verdict = read or DraftVerdict(verdict="no")
    event = DraftVerified(verdict=read.verdict if read else "unparsed", failed=verdict.failed, round=number)
    state.trace.record(event)
    return verdict


def expand(state: GraphSearchRounds, number: int, rejected: tuple[CheckedReply[Piece], DraftVerdict]) -> str:
    """Ask for what is missing, and answer it; return why the search ends, "" if something new was found."""
    draft, verdict = rejected
    if number and not any(step.answers for step in state.steps[state.answered :]):
        return state.stopped(number, "the new sub-questions found no answer")
    if number == MAX_ROUNDS:
        return state.stopped(number, f"all {MAX_ROUNDS} rounds were used")
    state.answered = len(state.steps)
    titles = dict.fromkeys(each["title"] for each in shown_passages(state.passages, state.corpus) if each["title"])
    claims = [
        {"claim": text, "holds": verified and at not in verdict.failed}
        for at, (text, verified) in enumerate(_claims(draft), 1)
    ]
    values: dict[str, Any] = {"steps": state.shown_steps, "answer": draft.words, "response": draft.response}
    values |= {"claims": claims, "titles": list(titles)[:MAX_TITLES], "most": MAX_EXPANSIONS}
    plan = state.reply("graphsearch/expand", "plan", plan_reply(empty=True), **values) or ()
    last = max(step.query.number for step in state.steps)
    given = {without_unknown(text, range(1, last + 1), state.question): triples for text, triples in _proposed(plan)}
    texts = new_questions(given, [step.query.text for step in state.steps])[:MAX_EXPANSIONS]
    if not texts:
        return state.stopped(number + 1, "no new sub-question")
    queries = planned([(text, given[text]) for text in texts], state.question, last + 1)
    state.planned((query.event for query in queries), number + 1)
    grounded = [each for query in queries for each in state.ground(query, 1)]
    found = state.channels.retrieve(grounded)
    known = {piece.iri for step in state.steps for piece in step.reply.shown}
    if known.issuperset(piece.iri for shown in found for piece in shown):
        return state.stopped(number + 1, "the new sub-questions found nothing new")
    answer_steps(state, grounded, found, number + 1)
    return ""


def result(state: GraphSearchRounds) -> RoundsOutcome:
    """Return the last draft, or what it calls likely; without a draft the last step with an answer."""
    notes = [DISPUTED.format(step.query.text) for step in state.steps if step.disputed]
    last = next((step for step in reversed(state.steps) if step.answers), None)
    if state.draft is not None:
        reply = state.draft.best
        notes += [LIKELY] if state.draft.likely else []
    elif last is not None:
        proven = 0 < last.reply.verified == len(last.reply.citations)
        reply = replace(last.reply, answers=last.answers, response="", unquoted=(), likely=(), proven=proven)
        notes.append(LAST_STEP)
    else:
        return RoundsOutcome(reason=UNREADABLE if any(step.reply.shown for step in state.steps) else NOTHING_FOUND)
    reply = replace(reply, notes=(*dict.fromkeys(notes), *reply.notes))
    return outcome(reply, shown=state.facts)


def best(state: GraphSearchRounds) -> RoundsOutcome:
    """Return the best answer so far, which was not accepted."""
    return replace(result(state), accepted=False)
