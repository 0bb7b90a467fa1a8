"""GraphSearch over a text corpus, with fewer prompts than published and drafts whose quotes are checked.

Earlier answers are put into sub-questions in code; one prompt answers a sub-question from both channels; one draft
consists of claims with quotes, of which a verdict is asked for only if all were verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgqa.errors import StoreError
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evidence import LIKELY, CheckedReply, Exhibits, shown_passages
from kgqa.methods.graphsearch.channels import Channels, interleaved, prompt_values
from kgqa.methods.graphsearch.replies import (
    LAST_STEP,
    NOT_VERIFIED,
    Plan,
    SubQuestion,
    Verdict,
    draft_reply,
    plan_reply,
    step_reply,
    verdict_reply,
)
from kgqa.methods.graphsearch.sub_queries import (
    MAX_NAMES,
    MAX_STEPS,
    GroundedQuery,
    Step,
    SubQuery,
    fill_in,
    levels,
    planned,
    references,
    without_unknown,
)
from kgqa.methods.resources import Resources
from kgqa.methods.rounds import (
    NOTHING_FOUND,
    Outcome,
    Rounds,
    answer_in_rounds,
    in_rounds,
    unless_accepted,
)
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.searching import within_tokens
from kgqa.model import Answer, Named, Piece, Question, Triple, Value
from kgqa.text.words import normalise
from kgqa.trace import DraftClaim, Drafted, DraftVerified, GaveUp, Grounded, PiecesKept, StepAnswered
from kgqa.trace.trace import BudgetExhausted, Trace

DISPUTED = "The answers to a sub-question disagree: {}"
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
    return answer_in_rounds("graphsearch", Search(question, resources, trace), run, best)


@dataclass
class Search(Rounds):
    """The state of one question.

    Attributes:
        steps: The sub-questions that were asked, in their order.
        draft: The last draft with an answer, or else the last one; None before the first.
        accepted: Whether the last draft was accepted; without the module of verdicts, whether its quotes are verified.
        answered: How many sub-questions had been asked at the last draft.
    """

    steps: list[Step] = field(default_factory=list)
    draft: CheckedReply[Piece] | None = None
    accepted: bool = False
    answered: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own = self.resources.settings.of(GraphSearchSettings)
        self.channels = Channels(self.search, self.own)

    @property
    def shown_steps(self) -> list[dict[str, Any]]:
        """The sub-questions with their answers, in the order of their numbers."""
        return [step.values for step in sorted(self.steps, key=lambda step: step.query.number)]

    @property
    def known(self) -> list[dict[str, Any]]:
        """The sub-questions with an answer."""
        return [each for each in self.shown_steps if each["answer"]]

    @property
    def names(self) -> Mapping[int, Sequence[str]]:
        """The answers by the number of their sub-question, at most `MAX_NAMES` each."""
        found: dict[int, dict[str, None]] = {}
        for step in self.steps:
            found.setdefault(step.query.number, {}).update(dict.fromkeys(step.answers))
        return {number: tuple(names)[:MAX_NAMES] for number, names in found.items()}

    @property
    def texts(self) -> Mapping[int, str]:
        """The sub-questions by number, as they were asked; the first one where there are several."""
        return {step.query.number: step.query.text for step in reversed(self.steps)}

    @property
    def pieces(self) -> Iterable[Piece]:
        """All pieces that prompts of sub-questions showed, the best of each one first."""
        return interleaved(step.reply.shown for step in self.steps)


def run(state: Search) -> Outcome:
    """Decompose the question, answer the sub-questions, then draft, verify and expand until a draft is accepted."""
    if state.channels.searchable:
        answer_plan(state, decompose(state) if state.own.uses("qd") else planned(state.question, ()))
    if not any(True for _ in state.pieces):
        state.stopped(0, "nothing was retrieved")
        return result(state)
    in_rounds(state, range(MAX_ROUNDS + 1), write_draft, verify, expand)
    return unless_accepted(state, result(state), state.accepted, NOT_VERIFIED)


def decompose(state: Search) -> tuple[SubQuery, ...]:
    """Cut the question into sub-questions, each in words and in triples (section 4.1.1)."""
    (plan,) = state.ask([state.prompt("graphsearch/decompose", "plan", plan_reply(), most=MAX_STEPS)])
    queries = planned(state.question, list(map(_asked, plan or ())), [each.triples for each in plan or ()])
    state.planned(query.event for query in queries)
    return queries


def answer_plan(state: Search, queries: Sequence[SubQuery]) -> None:
    """Ground, retrieve and answer sub-questions level by level, each level in one batch."""
    left, waiting = MAX_STEPS, len(queries)
    for level in levels(queries) if state.own.uses("qg") else [list(queries)]:
        grounded: list[GroundedQuery] = []
        for query in level:
            waiting -= 1
            several = [GroundedQuery(query.number, query.text, query.patterns, not query.needs)]
            if state.own.uses("qg") and query.needs:
                several = list(fill_in(query, state.names, state.texts, most=left - waiting))
                for each in several:
                    state.trace.record(Grounded(step=each.number, text=each.text, filled=each.filled))
            grounded += several
            left -= len(several)
        answer_steps(state, grounded, state.channels.retrieve(grounded), 0)


def answer_steps(
    state: Search, queries: Sequence[GroundedQuery], found: Sequence[Exhibits[Piece]], number: int
) -> None:
    """Ask for the answers of sub-questions in one batch; one for which nothing was found is unknown."""
    prompts, known = [], state.known
    for query, shown in zip(queries, found):
        if shown:
            state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in shown), step=query.number))
            values = {"number": query.number, "sub_question": query.text, "known": known, **prompt_values(shown)}
            prompts.append(state.prompt("graphsearch/step", "decide", step_reply(len(shown)), **values))
    read_all = state.ask(prompts)
    replies = iter(read_all)
    for query, shown in zip(queries, found):
        read = next(replies) if shown else None
        step = Step(query, shown.check(read))
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


def write_draft(state: Search, number: int) -> CheckedReply[Piece] | None:
    """Draft the answer from the quoted passages, then those of all sub-questions (section 4.1.2)."""
    quoted = _quoted_chunks(state, [step.reply for step in state.steps])
    passages = interleaved([piece for piece in step.reply.shown if piece.kind == "chunk"] for step in state.steps)
    facts = interleaved([piece for piece in step.reply.shown if piece.kind != "chunk"] for step in state.steps)
    kept = within_tokens(list({piece.iri: piece for piece in (*quoted, *passages)}.values()), DRAFT_TOKENS)
    shown = Exhibits(state.corpus, [*kept, *list(facts)[:MAX_DRAFT_FACTS]])
    state.trace.record(PiecesKept(pieces=tuple(piece.iri for piece in shown)))
    values = prompt_values(shown)
    if state.own.uses("ld"):
        form = draft_reply(len(shown))
        prompt = state.prompt("graphsearch/draft", "decide", form, steps=state.shown_steps, **values)
    else:  # the question is answered like a sub-question
        values |= {"number": 1 + max(step.query.number for step in state.steps), "sub_question": state.question}
        values["known"] = state.known if state.own.uses("qg") else []
        prompt = state.prompt("graphsearch/step", "decide", step_reply(len(shown)), **values)
    (read,) = state.ask([prompt])
    if read is None:
        state.stopped(number, "the draft could not be read")
        return None
    draft = shown.check(read)
    claims = tuple(DraftClaim(text, verified) for text, verified in _claims(draft))
    state.trace.record(Drafted(text=draft.response, claims=claims, round=number))
    if state.draft is None or draft.answers or not state.draft.answers:
        state.draft = draft
    return draft


def _quoted_chunks(state: Search, replies: Iterable[CheckedReply[Piece]]) -> list[Piece]:
    """Return the chunks in which verified quotes stand, each once."""
    table = state.corpus.index.pieces("chunk")
    spans = (each.span for reply in replies for each in reply.citations if each.span is not None)
    chunks = dict.fromkeys(span.chunk for span in spans)
    return [piece for iri in chunks if (piece := table.get(iri)) is not None]


def _claims(draft: CheckedReply[Piece]) -> list[tuple[str, bool]]:
    """Return the claims of a draft, each with whether its quote was verified; those without a quote come last."""
    quoted = [(each.claim or each.quote, each.verified) for each in draft.citations]
    return [*quoted, *((text, False) for text in draft.unquoted)]


def verify(state: Search, number: int, draft: CheckedReply[Piece]) -> tuple[CheckedReply[Piece], Verdict] | None:
    """Return a draft with the verdict on it if more is to be asked; None if the search ends."""
    if not state.own.uses("all"):
        state.accepted = draft.sound
        return None
    verdict = judge(state, number, draft)
    state.accepted = verdict.verdict == "yes" and draft.sound
    gates = {"reject": not state.accepted, "accept": state.accepted, "always": True, "never": False}
    if gates[state.own.gate]:
        return draft, verdict
    state.stopped(number, "the draft was accepted" if state.accepted else "the draft was not accepted")
    return None


def judge(state: Search, number: int, draft: CheckedReply[Piece]) -> Verdict:
    """Return the verdict on a draft; the model is asked only if every claim has a verified quote."""
    if not draft.sound:
        failed = tuple(at for at, (_, verified) in enumerate(_claims(draft), 1) if not verified)
        state.trace.record(DraftVerified(verdict="no", failed=failed, round=number))
        return Verdict(verdict="no", failed=failed)
    cited, prompts = _quoted_chunks(state, [draft]), []
    for vote in range(state.own.votes):  # each time in another order
        at = vote % len(cited)
        turned = [*cited[at:], *cited[:at]]
        places = {piece.iri: place for place, piece in enumerate(turned, 1)}
        claims = [
            {"claim": each.claim or each.quote, "passage": places[each.span.chunk], "quote": each.quote}
            for each in draft.citations
            if each.span is not None
        ]
        values = {"answer": draft.words, "claims": claims, "passages": shown_passages(turned, state.corpus)}
        prompts.append(state.prompt("graphsearch/verify", "decide", verdict_reply(), **values))
    verdicts = state.ask(prompts)
    read = [each for each in verdicts if each is not None]
    accepted = sum(each.verdict == "yes" for each in read) * 2 > len(verdicts)
    failed = () if accepted else tuple(sorted({claim for each in read for claim in each.failed}))
    name = "yes" if accepted else "no" if read else "unparsed"
    state.trace.record(DraftVerified(verdict=name, failed=failed, round=number))
    return Verdict(verdict="yes" if accepted else "no", failed=failed)


def expand(state: Search, number: int, rejected: tuple[CheckedReply[Piece], Verdict]) -> str:
    """Ask for what is missing, and answer it; return why the search ends, "" if something new was found."""
    draft, verdict = rejected
    if number and not any(step.answers for step in state.steps[state.answered :]):
        return state.stopped(number, "the new sub-questions found no answer")
    if number == MAX_ROUNDS:
        return state.stopped(number, f"all {MAX_ROUNDS} rounds were used")
    state.answered = len(state.steps)
    passages = list(interleaved([p for p in step.reply.shown if p.kind == "chunk"] for step in state.steps))
    titles = dict.fromkeys(each["title"] for each in shown_passages(passages, state.corpus) if each["title"])
    claims = [
        {"claim": text, "holds": verified and at not in verdict.failed}
        for at, (text, verified) in enumerate(_claims(draft), 1)
    ]
    values: dict[str, Any] = {
        "steps": state.shown_steps,
        "answer": draft.words,
        "response": draft.response,
        "claims": claims,
    }
    values |= {"titles": list(titles)[:MAX_TITLES], "most": MAX_EXPANSIONS}
    (plan,) = state.ask([state.prompt("graphsearch/expand", "plan", plan_reply(empty=True), **values)])
    queries = _new_queries(state, plan) if plan else []
    if not queries:
        return state.stopped(number + 1, "no new sub-question")
    state.planned((query.event for query in queries), number + 1)
    names, texts = state.names, state.texts
    grounded = [each for query in queries for each in fill_in(query, names, texts, most=1)]
    found = state.channels.retrieve(grounded)
    if not {piece.iri for shown in found for piece in shown} - {piece.iri for piece in state.pieces}:
        return state.stopped(number + 1, "the new sub-questions found nothing new")
    answer_steps(state, grounded, found, number + 1)
    return ""


def _new_queries(state: Search, plan: Plan) -> list[SubQuery]:
    """Return the sub-questions of a plan that were not asked yet, numbered after the others."""
    asked = {normalise(step.query.text) for step in state.steps}
    last = max(step.query.number for step in state.steps)
    found: list[SubQuery] = []
    for each in plan:
        text = without_unknown(_asked(each), range(1, last + 1), state.question)
        if text and normalise(text) not in asked and len(found) < MAX_EXPANSIONS:
            asked.add(normalise(text))
            needs = tuple(number for number in references(text) if number <= last)
            found.append(SubQuery(last + 1 + len(found), text, each.triples, needs))
    return found


def _asked(each: SubQuestion) -> str:
    """Return a sub-question in words; for one that a reply does not give in words, its triples."""
    return each.question or "; ".join(" ".join(pattern) for pattern in each.triples)


def result(state: Search) -> Outcome:
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
        return Outcome(reason=UNREADABLE if any(True for _ in state.pieces) else NOTHING_FOUND)
    reply = replace(reply, notes=(*dict.fromkeys(notes), *reply.notes))
    return Outcome(reply, [*reply.cited, *supporting_facts(state)] if reply.answers else ())


def best(state: Search) -> Outcome:
    """Return the best answer so far, which was not accepted."""
    return replace(result(state), accepted=False)


def supporting_facts(state: Search) -> list[Piece]:
    """Return the facts that were shown and say what a sub-question was answered: between a name in it and an answer.

    Of a path, only such triples are returned. If the graph fails, there are none.
    """
    shown = [(step, piece) for step in state.steps if step.answers for piece in step.reply.shown]
    triples = [triple for _, piece in shown for triple in piece.triples]
    try:
        nodes = state.search.graph.named(dict.fromkeys(n for each in triples for n in (each.subject, each.object)))
    except (StoreError, BudgetExhausted) as error:
        state.trace.record(GaveUp(error=str(error)))
        return []
    names = {each.value: normalise(each.name) for each in nodes}
    found: dict[str, Piece] = {}
    for step, piece in shown:
        said = tuple(triple for triple in piece.triples if _supports(triple, step, names))
        if said:
            found.setdefault(piece.iri, replace(piece, triples=said))
    return list(found.values())


def _supports(triple: Triple, step: Step, names: Mapping[Value, str]) -> bool:
    answers = {normalise(answer) for answer in step.answers}
    asked = f" {normalise(step.query.text)} "
    subject, object_ = names[triple.subject], names[triple.object]
    return any(
        one in answers and other and other not in answers and f" {other} " in asked
        for one, other in ((subject, object_), (object_, subject))
    )
