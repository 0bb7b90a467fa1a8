"""A question as Tournament on Path reads it: without a model by rules, with one as the model sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kgqa.graph.graph import KnowledgeGraph
from kgqa.llm.replies.json_values import Reading, read_json
from kgqa.llm.replies.reply import Reply
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.model import Candidate, Entity, Named, Question, Value
from kgqa.search.classes import starts
from kgqa.search.conditions.amounts import read_amount
from kgqa.search.conditions.applying import NOT_APPLIED, without_excluded
from kgqa.search.conditions.requests import Request
from kgqa.search.conditions.times import with_years_of_event, without_qualifier
from kgqa.search.cues import Cues, asking_clause, read_cues
from kgqa.search.kinds import AskedKind
from kgqa.search.masking import Span, drop_spans, leaks, placeholders, replace_spans, topic_spans
from kgqa.search.question_language import in_english
from kgqa.search.topics import request_of
from kgqa.search.words import pattern
from kgqa.settings.values import Settings
from kgqa.text.words import clean
from kgqa.trace import Clauses, CuesRead, Masked
from kgqa.trace.trace import Trace

Names = Mapping[Value, Sequence[str]]
LONGEST_CLAUSE = 500


@dataclass(frozen=True)
class AskedQuestion:
    """What a question asks, and with what it is answered.

    Attributes:
        question: The question.
        resources: The resources of the run.
        trace: Records the search and keeps account of the question's budget.
        graph: The graph, which charges the trace.
        view: The question as a language model sees it; None if no language model decides.
        text: The text of the question.
        masked: The text with which paths are compared, without the names of its topics.
        topics: The topics from which paths start.
        spans: Where the names of the topics stand in the text.
        start: The paths from which the search starts.
        cues: Cues in the wording about the path.
        kind: The kind of the answers.
        request: The amount or operation that it asks for; None if there is none, or a model reads it.
        unsupported: Why paths can't answer it, unless the request is fulfilled; None if they can.
        excluded: The entities after "other than" and the like.
        notes: Sentences for the reader.
    """

    question: Question
    resources: Resources
    trace: Trace
    graph: KnowledgeGraph
    view: PromptView | None
    text: str
    masked: str
    topics: Sequence[Named]
    spans: Sequence[Span]
    start: Sequence[Candidate]
    cues: Cues
    kind: AskedKind
    request: Request | None = None
    unsupported: str | None = None
    excluded: tuple[Entity, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return self.resources.settings

    @property
    def entities(self) -> list[Entity]:
        """The topics that are entities."""
        return [topic.value for topic in self.topics if isinstance(topic.value, Entity)]

    @property
    def shown(self) -> PromptView:
        """The question as a language model sees it."""
        assert self.view is not None
        return self.view


def read_by_rules(
    question: Question, resources: Resources, trace: Trace, topics: Sequence[Named], names: Names
) -> AskedQuestion | None:
    """Read a question without a language model; None if it asks for what is not, which paths can't answer."""
    graph = resources.graph.for_question(trace)
    every = [name for each in names.values() for name in each]
    text = asking_clause(in_english(question.text, every), every)
    unsupported, request = request_of(text, every)
    text, qualifier = without_qualifier(request.text if request else text)
    named = {topic.value: names[topic.value] for topic in topics if isinstance(topic.value, Entity)}
    text, event = with_years_of_event(graph, text, topic_spans(text, named))
    spans = topic_spans(text, {topic: texts for topic, texts in named.items() if topic != event})
    text, excluded = without_excluded(text, spans)
    topics = [topic for topic in topics if topic.value != event]
    others = [topic for topic in topics if topic.value not in excluded]
    if pattern("{negation}").search(drop_spans(text, spans)) or (topics and not others):
        return None
    nouns = (request.noun, request.counted) if request else ()
    start = starts(graph, [t.value for t in others if t.value in named], all_topics=False, nouns=nouns)
    kept = {each.path.topic for each in start}
    topics = [topic for topic in others if topic.value in kept]
    named = {topic: texts for topic, texts in named.items() if topic in kept}
    masked, spans = _masked(text, named, topics, resources.settings, trace)
    amount = read_amount(text)
    cues = _cues(text.replace(amount.cue, " ") if amount else text, text, spans, topics, trace)
    kind = AskedKind(graph, "number" if request and request.kind == "count" else cues.value, cues.noun)
    notes = (f"{NOT_APPLIED.format('time')}: “{qualifier}”.",) if qualifier else ()
    return AskedQuestion(
        question, resources, trace, graph, None, text, masked, topics, spans, start, cues, kind,
        request, unsupported, excluded, notes,
    )  # fmt: skip


def read_for_model(
    question: Question,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Names,
    *,
    noise: bool = False,
) -> AskedQuestion:
    """Read a question for the search with a language model; `noise`: whether to search what a schema calls noise."""
    graph, settings, text = resources.graph.for_question(trace), resources.settings, question.text
    graph = graph.with_noise() if noise else graph
    named = {topic.value: names[topic.value] for topic in topics if isinstance(topic.value, Entity)}
    start = starts(graph, list(named), all_topics=True)
    view = PromptView(graph, text, topics, names, settings, trace)
    masked, spans = _masked(text, named, topics, settings, trace, prompted=view.question)
    cues = _cues(text, text, spans, topics, trace)
    kind = AskedKind(graph, cues.value, cues.noun)
    return AskedQuestion(question, resources, trace, graph, view, text, masked, topics, spans, start, cues, kind)


def clauses_of(asked: AskedQuestion) -> Mapping[Entity, str]:
    """Ask the language model for the clause of each topic (thesis, section 6.2.1), with which its paths are compared.

    The result is {} for a single topic and after an unusable reply.

    Raises:
        BudgetExhausted: The question's budget is spent.
        ModelUnavailable: The language model failed.
    """
    view = asked.shown
    marks = {view.topic(entity): entity for entity in asked.entities}
    if len(marks) < 2:
        return {}
    form = Reply(partial(_read_clauses, marks=list(marks)))
    prompts = asked.resources.prompts
    prompt = prompts.prompt("top/clauses", "clauses", form, question=view.question, topics=list(marks))
    clauses = asked.resources.ask([prompt], asked.trace)[0] or {}
    asked.trace.record(Clauses(clauses=clauses))
    view.texts.update(clauses.values())  # searched for leaks, because the model may have guessed a topic's name
    return {marks[mark]: clause for mark, clause in clauses.items()}


def _read_clauses(text: str, *, marks: Sequence[str]) -> Reading[dict[str, str]]:
    value, repaired = read_json(text)
    found = value.get("clauses", value) if isinstance(value, dict) else {}
    texts = {m: clean(str(found[m]))[:LONGEST_CLAUSE] for m in marks if isinstance(found, dict) and found.get(m)}
    if len(texts) == len(marks) and all(texts.values()):
        return Reading(texts, repaired, "")
    return Reading(None, repaired, f"Give one clause for each of {', '.join(marks)}, as a JSON object.")


def _cues(text: str, whole: str, spans: Sequence[Span], topics: Sequence[Named], trace: Trace) -> Cues:
    cues = read_cues(text, [*(whole[span.start : span.end] for span in spans), *(topic.name for topic in topics)])
    trace.record(CuesRead(words=cues.words, hops=cues.hops, asked_for=cues.asked_for))
    return cues


def _masked(
    text: str,
    names: Mapping[Entity, Sequence[str]],
    topics: Sequence[Named],
    settings: Settings,
    trace: Trace,
    prompted: str = "",
) -> tuple[str, list[Span]]:
    """Return the question as paths are compared with it, without a language model, and the spans that are masked.

    Args:
        prompted: The question as prompts show it; "" without a language model.
    """
    style, spans = settings.explore.mask, topic_spans(text, names)
    masked = drop_spans(text, spans)
    if style in ("placeholder", "id"):
        ids = {topic.value: topic.id for topic in topics if isinstance(topic.value, Entity)} if style == "id" else {}
        masked = replace_spans(text, spans, {**placeholders(names), **ids})
    found = [] if masked == text else list(spans)
    shown, every = (text, []) if style == "none" else (masked, [name for each in names.values() for name in each])
    unmasked = len(names.keys() - {span.topic for span in found})
    trace.record(Masked(question=shown, unmasked=unmasked, leaks=len(leaks([shown], every)), shown=prompted))
    return shown, found
