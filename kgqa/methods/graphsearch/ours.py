"""GraphSearch with our departures: grounding in code, one prompt a sub-question, one draft with checked quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.client import Prompt
from kgqa.llm.replies.quoted_answers import QuotedAnswer, read_quoted_answer
from kgqa.methods.graphsearch.channels import Channels, Found, distinct, interleaved, prompt_values
from kgqa.methods.graphsearch.drafts import Draft, draft_pieces, votes_on
from kgqa.methods.graphsearch.history import History, StepAnswer, answered_event, settled
from kgqa.methods.graphsearch.replies import Plan, Verdict, read_plan, read_verdict
from kgqa.methods.graphsearch.results import DISPUTED, LAST_STEP, Result, result_of_quotes
from kgqa.methods.graphsearch.sub_queries import (
    MAX_STEPS,
    GroundedQuery,
    SubQuery,
    ground,
    levels,
    planned,
    references,
    without_unknown,
)
from kgqa.methods.graphsearch.supporting import supporting_facts
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import GraphSearchSettings
from kgqa.methods.text.pieces import LIKELY, check_quotes, shown_passages, with_likely
from kgqa.methods.text.searching import TextSearch
from kgqa.model import Piece, Question
from kgqa.text.words import normalise
from kgqa.trace import DraftClaim, Drafted, DraftVerified, Grounded, PiecesKept, Planned, Stopped
from kgqa.trace.trace import Trace

MAX_ROUNDS = 2
MAX_EXPANSIONS = 3
MAX_TITLES = 30
"""Most titles of passages in a prompt that asks for what is missing."""


class Search:
    """The search for the answer to one question.

    Attributes:
        history: The answered sub-questions.
        draft: The last draft with an answer, or else the last one; None before the first.
        accepted: Whether the last draft was accepted; without the module of verdicts, whether its quotes are verified.
    """

    judged = True
    """Whether drafts can be accepted."""

    def __init__(self, question: Question, resources: Resources, search: TextSearch, trace: Trace) -> None:
        settings = resources.settings.of(GraphSearchSettings)
        self._question = question.text
        self._resources = resources
        self._trace = trace
        self._corpus = search.corpus
        self._channels = Channels(search, settings)
        self._gate = settings.gate
        self._votes = settings.votes
        modules = settings.modules
        self._grounds = modules == "all" or "qg" in modules.split(",")
        self._drafts = modules == "all" or "ld" in modules.split(",")
        self._reflects = modules == "all"
        self.history = History()
        self.draft: Draft | None = None
        self.accepted = False

    def run(self) -> None:
        """Ask, answer and draft until a draft is accepted, or nothing more helps."""
        if self._channels.searchable:
            self._answer_plan(self._plan())
        if not self.retrieved:
            self._stop(0, "nothing was retrieved")
            return
        rejected = self._draft_and_verify(0)
        for round_ in range(1, MAX_ROUNDS + 1):
            if rejected is None:
                return
            before = len(self.history.steps)
            if not self._expand(round_, *rejected):
                return
            rejected = self._draft_and_verify(round_)
            if rejected is not None and not any(step.answers for step in self.history.steps[before:]):
                self._stop(round_, "the new sub-questions found no answer")
                return
        if rejected is not None:
            self._stop(MAX_ROUNDS, f"all {MAX_ROUNDS} rounds were used")

    @property
    def retrieved(self) -> bool:
        """Whether anything was found for a sub-question."""
        return any(step.found.pieces for step in self.history.steps)

    def result(self) -> Result | None:
        """Return the last draft, or what it calls likely; without a draft the last step; None if there is neither."""
        draft, last = self.draft, self.history.last()
        notes = [DISPUTED.format(step.query.text) for step in self.history.steps if step.disputed]
        if draft is not None:
            notes += [LIKELY] if draft.read.likely and not draft.read.answers else []
            return result_of_quotes(with_likely(draft.read), draft.quotes, draft.found.pieces, notes)
        if last is None:
            return None
        return result_of_quotes(QuotedAnswer(last.answers), last.quotes, last.found.pieces, [*notes, LAST_STEP])

    def facts_used(self, graph: KnowledgeGraph) -> list[Piece]:
        """Return the facts, among those that were shown, that support the answers of sub-questions."""
        return supporting_facts(self.history.steps, graph)

    # ---- sub-questions ----

    def _plan(self) -> tuple[SubQuery, ...]:
        prompts = self._resources.prompts
        prompt = prompts.prompt("graphsearch/decompose", "plan", question=self._question, most=MAX_STEPS)
        plan: Plan | None
        (plan,) = self._resources.ask_model([prompt], [read_plan], self._trace)
        texts = [text or _asked(plan.patterns[at]) for at, text in enumerate(plan.texts)] if plan else []
        queries = planned(self._question, texts or [self._question], plan.patterns if plan else ())
        self._trace.record(Planned(sub_questions=tuple(query.event for query in queries)))
        return queries

    def _answer_plan(self, queries: Sequence[SubQuery]) -> None:
        """Answer sub-questions level by level, each level in one batch."""
        left = MAX_STEPS
        waiting = len(queries)
        for level in levels(queries) if self._grounds else [list(queries)]:
            grounded: list[GroundedQuery] = []
            for query in level:
                waiting -= 1
                if self._grounds and query.needs:
                    several = ground(query, self.history.names(), self.history.texts(), most=left - waiting)
                    for each in several:
                        self._trace.record(Grounded(step=each.number, text=each.text, filled=each.filled))
                else:
                    several = (GroundedQuery(query.number, query.text, query.patterns, not query.needs),)
                grounded += several
                left -= len(several)
            self._answer(grounded, self._channels.retrieve(grounded), 0)

    def _answer(self, queries: Sequence[GroundedQuery], found: Sequence[Found], round_: int) -> None:
        """Ask for the answers of sub-questions in one batch; one for which nothing was found is unknown."""
        asked = [(query, each) for query, each in zip(queries, found) if each.pieces]
        prompts = []
        known = self.history.known()
        for query, each in asked:
            self._trace.record(PiecesKept(pieces=tuple(piece.iri for piece in each.pieces), step=query.number))
            values: dict[str, Any] = {
                "question": self._question,
                "number": query.number,
                "sub_question": query.text,
                "known": known,
            }
            values |= prompt_values(each, self._corpus)
            prompts.append(self._resources.prompts.prompt("graphsearch/step", "decide", **values))
        readers = [partial(read_quoted_answer, size=len(each.pieces)) for _, each in asked]
        replies = iter(self._resources.ask_model(prompts, readers, self._trace) if prompts else ())
        for query, each in zip(queries, found):
            read: QuotedAnswer | None = next(replies) if each.pieces else None
            step = StepAnswer(query, each)
            if read is not None:
                step = settled(query, each, read, check_quotes(read.supports, each.pieces, self._corpus))
            self._trace.record(answered_event(step, read=read is not None or not each.pieces, round_=round_))
            self.history.steps.append(step)

    # ---- reflection ----

    def _draft_and_verify(self, round_: int) -> tuple[Draft, Verdict] | None:
        """Draft the answer; return the draft and the verdict if more is to be asked, or None if the search ends."""
        draft = self._draft(round_)
        if draft is None:
            self._stop(round_, "the draft could not be read")
            return None
        if self.draft is None or draft.read.answers or not self.draft.read.answers:
            self.draft = draft
        if not self._reflects:
            self.accepted = draft.sound
            return None
        verdict = self._verdict(draft, round_)
        self.accepted = verdict.verdict == "yes" and draft.sound
        expand = {"reject": not self.accepted, "accept": self.accepted, "always": True, "never": False}[self._gate]
        if not expand:
            self._stop(round_, "the draft was accepted" if self.accepted else "the draft was not accepted")
            return None
        return draft, verdict

    def _draft(self, round_: int) -> Draft | None:
        found = draft_pieces(self.history, self._corpus)
        self._trace.record(PiecesKept(pieces=tuple(piece.iri for piece in found.pieces)))
        prompt = self._last_prompt(prompt_values(found, self._corpus))
        read: QuotedAnswer | None
        reader = partial(read_quoted_answer, size=len(found.pieces))
        (read,) = self._resources.ask_model([prompt], [reader], self._trace)
        if read is None:
            return None
        draft = Draft(read, check_quotes(read.supports, found.pieces, self._corpus), found)
        claims = tuple(DraftClaim(text, verified) for text, verified in draft.claims)
        self._trace.record(Drafted(text=read.response, claims=claims, round=round_))
        return draft

    def _last_prompt(self, values: Mapping[str, Any]) -> Prompt:
        """Return the prompt of a draft, or without drafts the one that answers the question like a sub-question."""
        prompts = self._resources.prompts
        values = {**values, "question": self._question}
        if self._drafts:
            return prompts.prompt("graphsearch/draft", "decide", steps=self.history.shown(), **values)
        values["number"] = 1 + max(step.query.number for step in self.history.steps)
        known = self.history.known() if self._grounds else []
        return prompts.prompt("graphsearch/step", "decide", sub_question=self._question, known=known, **values)

    def _verdict(self, draft: Draft, round_: int) -> Verdict:
        """Return the verdict on a draft; the model is asked only if every claim has a verified quote."""
        if not draft.sound:
            failed = draft.unverified()
            self._trace.record(DraftVerified(verdict="no", failed=failed, round=round_))
            return Verdict("no", failed)
        prompt = partial(self._resources.prompts.prompt, "graphsearch/verify", "decide", question=self._question)
        prompts = [prompt(**values) for values in votes_on(draft, self._votes, self._corpus)]
        verdicts: list[Verdict | None] = self._resources.ask_model(prompts, [read_verdict] * len(prompts), self._trace)
        read = [each for each in verdicts if each is not None]
        failed = tuple(sorted({number for each in read for number in each.failed}))
        yes = sum(each.verdict == "yes" for each in read)
        accepted = yes * 2 > len(verdicts)
        name = "yes" if accepted else "no" if read else "unparsed"
        self._trace.record(DraftVerified(verdict=name, failed=() if accepted else failed, round=round_))
        return Verdict("yes") if accepted else Verdict("no", failed)

    def _titles(self) -> list[str]:
        """Return the titles of the passages that were shown, the best of each sub-question first."""
        pieces = distinct(interleaved(step.found.passages for step in self.history.steps))
        titles = (each["title"] for each in shown_passages(pieces, self._corpus))
        return [title for title in dict.fromkeys(titles) if title][:MAX_TITLES]

    def _expand(self, round_: int, draft: Draft, verdict: Verdict) -> bool:
        """Ask for what is missing, and answer it; return whether something new was found."""
        prompt = self._resources.prompts.prompt(
            "graphsearch/expand",
            "plan",
            question=self._question,
            most=MAX_EXPANSIONS,
            steps=self.history.shown(),
            answer=draft.answer,
            response=draft.read.response,
            titles=self._titles(),
            claims=[
                {"claim": text, "holds": verified and number not in verdict.failed}
                for number, (text, verified) in enumerate(draft.claims, 1)
            ],
        )
        plan: Plan | None
        (plan,) = self._resources.ask_model([prompt], [partial(read_plan, empty=True)], self._trace)
        queries = self._new_queries(plan) if plan else []
        if not queries:
            self._stop(round_, "no new sub-question")
            return False
        self._trace.record(Planned(sub_questions=tuple(query.event for query in queries), round=round_))
        names, texts = self.history.names(), self.history.texts()
        grounded = [each for query in queries for each in ground(query, names, texts, most=1)]
        found = self._channels.retrieve(grounded)
        if not {piece.iri for each in found for piece in each.pieces} - self.history.retrieved():
            self._stop(round_, "the new sub-questions found nothing new")
            return False
        self._answer(grounded, found, round_)
        return True

    def _new_queries(self, plan: Plan) -> list[SubQuery]:
        """Return the sub-questions of a plan that were not asked yet, numbered after the others."""
        asked = {normalise(step.query.text) for step in self.history.steps}
        last = max(step.query.number for step in self.history.steps)
        found: list[SubQuery] = []
        for words, patterns in zip(plan.texts, plan.patterns):
            text = without_unknown(words or _asked(patterns), range(1, last + 1), self._question)
            if text and normalise(text) not in asked and len(found) < MAX_EXPANSIONS:
                asked.add(normalise(text))
                needs = tuple(number for number in references(text) if number <= last)
                found.append(SubQuery(last + 1 + len(found), text, patterns, needs))
        return found

    def _stop(self, round_: int, why: str) -> None:
        self._trace.record(Stopped(round=round_, why=why))


def _asked(patterns: Sequence[tuple[str, str, str]]) -> str:
    """Return triples as a sub-question, for one that a reply does not give in words."""
    return "; ".join(" ".join(pattern) for pattern in patterns)
