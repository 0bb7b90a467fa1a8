"""The settings of kgqa itself, section by section; methods and other packages declare sections of their own."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

from kgqa.settings.setting import Section, Setting, setting, settings_of, variant

WalkRule = Literal["topic-not-end", "no-return", "topic-never", "free"]
WALK_RULES: tuple[str, ...] = get_args(WalkRule)


class GraphSettings(Section, name="graph"):
    """Which graph is asked, and how it is read."""

    path: str | None = setting(
        None,
        "graph folder, corpus folder, URL of a SPARQL endpoint, or NAME:REST (store of another package); if not set, "
        "the demo graph",
        example="mygraph/",
        explained="folder",
    )
    iri: str | None = setting(
        None,
        "IRIs of named graphs to query, separated by spaces; if not set, the default graph (on Virtuoso: the only "
        "named graph)",
        option="--graph-iri",
        metavar="IRI",
        example="http://example.org/graph",
        explained="folder",
    )
    view: str | None = setting(
        None,
        "views of a corpus to query, separated by commas: facts, hyper, text, statements, communities, edits; if not "
        "set, facts",
        option="--view",
        metavar="NAME",
    )
    schema: str | None = setting(
        None,
        "schema name or TOML file; if not set, the schema stored with the graph or detected",
        option="--schema",
        metavar="NAME|FILE",
        example="myschema.toml",
        explained="folder",
    )
    languages: str | None = setting(
        None,
        "preferred languages of names, such as de,en; names in other languages are used only if these are missing",
        option="--languages",
        metavar="LIST",
        example="de,en",
        explained="folder",
    )
    walks: WalkRule | None = setting(
        None,
        "which nodes a walk may visit more than once; if not set, the rule stored with the graph or its schema",
        option="--walks",
    )
    frontier_cap: int = setting(
        1000, "maximum end nodes of a path from which exploration continues", minimum=1, option="--frontier-cap"
    )
    timeout: float = setting(
        60.0, "time limit of a SPARQL query, in seconds", minimum=0.001, option="--timeout", explained="folder"
    )


class EndpointSettings(Section, name="endpoint"):
    """How a SPARQL server is asked."""

    profile: Literal["auto", "virtuoso", "qlever", "blazegraph", "wikidata", "generic"] = setting(
        "auto", "kind of SPARQL server; auto: detected from the URL or the Server header", option="--profile"
    )
    concurrency: int | None = setting(
        None, "maximum concurrent requests; if not set, the value of the server's profile", minimum=1
    )
    rate: float | None = setting(
        None,
        "maximum requests per second; 0 = unlimited; if not set, the value of the server's profile",
        minimum=0,
        example=5.0,
        explained="folder",
    )
    contact: str | None = setting(
        None,
        "your email address or web page; it is sent in the User-Agent header, because public services ask for it",
        example="me@example.org",
        explained="folder",
    )
    user: str | None = setting(
        None,
        "user name for the server's login; the password is read from KGQA_ENDPOINT_PASSWORD or kept by kgqa keys",
        trusted=True,
        example="me",
        explained="user",
    )
    row_cap: int | None = setting(None, "number of rows at which the server cuts results without notice", minimum=1)
    cache: Literal["on", "off"] = setting(
        "on", "on: cache query results on disk; off: send every query", explained="folder"
    )


class AskSettings(Section, name="ask"):
    """How a question is answered."""

    method: str = setting(
        "", "method that answers the questions", option="--method", plugin="method", explained="folder"
    )
    preset: str = setting(
        "ours",
        "ours: our settings; as-published: the settings of the paper; economy: fewest language model calls; or "
        "another preset of the method; several with commas",
        option="--preset",
        metavar="NAME",
        explained="folder",
    )
    compose: Literal["ends", "composed"] = setting(
        "ends",
        "source of the answers: ends: the end nodes of the accepted path; composed: the language model writes the "
        "answers from all kept paths and may use its own knowledge",
        option="--compose",
    )
    answer_form: Literal["short", "long"] = setting(
        "short",
        "form of the text of an answer over a corpus: short: one to three sentences; long: a report; read by tog3 and "
        "rag",
        option="--answer-form",
    )
    on_exhausted: Literal["best", "none"] = setting(
        "best",
        "what to do if no path is accepted: best: answer from the best path, marked as not accepted; none: give no "
        "answer",
        option="--on-exhausted",
        explained="folder",
    )
    min_score: float = setting(
        0.0,
        "minimum score (0 to 1) of an answer found without a language model, which is the share of right answers "
        "among answers like it; below it, no answer",
        minimum=0,
        maximum=1,
        option="--min-score",
        explained="folder",
    )


class ExploreSettings(Section, name="explore"):
    """How paths are explored."""

    depth: int = setting(2, "maximum hops from the topic", minimum=1, option="--depth", explained="folder")
    wording_depth: int = setting(
        3,
        "maximum hops if the wording of the question suggests more than explore.depth, without a language model; "
        "explore.depth if that is set and this is not",
        minimum=1,
    )
    beam: int = setting(10, "number of paths kept after each hop", minimum=1, option="--beam", explained="folder")
    mediator_hop: Literal["edge", "free"] = setting(
        "edge",
        "how hops are counted at mediators: edge: each edge is a hop; free: two edges through a mediator are one hop",
        option="--mediator-hop",
    )
    shape: Literal["path", "path+entity"] = setting(
        "path",
        "from which end nodes of a path to continue: path: all; path+entity: those that the chooser selects",
        option="--shape --explore",
    )
    stop: Literal["depth", "accepted", "answered", "converged"] = setting(
        "depth",
        "when to stop: depth: at the maximum depth; accepted: when a path is accepted; answered: at the maximum "
        "depth, or when the language model says that entities it selects are the answer; converged: when the best "
        "paths give the same answers as one hop before",
        option="--stop",
    )
    entity_pool: int = variant(30, "maximum entities that are offered when the search selects entities", minimum=1)
    entity_chunk: int = variant(20, "number of these entities in one prompt", minimum=1)
    prune_by: Literal["path", "last-relation"] = variant(
        "path",
        "what is compared: path: the whole path; last-relation: only its last relation (ablation)",
    )
    combine: Literal["intersect", "separate"] = variant(
        "intersect",
        "how several topics are handled: intersect: their paths must meet; separate: each topic is explored alone",
    )
    clauses: Literal["off", "on"] = setting(
        "off",
        "on: if a language model is set and the question has several topics, split it into one clause per topic",
        option="--clauses",
    )
    mask: Literal["drop", "placeholder", "id", "none"] = setting(
        "drop",
        "what replaces the topic's name in the question: drop: nothing; placeholder; id: the topic's id; none: no "
        "masking",
        option="--mask",
    )


class RankSettings(Section, name="rank"):
    """How paths are ranked."""

    wording: Literal["words", "published"] = variant(
        "words",
        "how paths are worded for ranking: words: plain words; published: full names with -> and <-",
    )
    prefilter: Literal["bm25", "sbert", "rrf", "random", "none", "trained"] = setting(
        "rrf",
        "prefilter of the candidates: bm25; sbert: embeddings; rrf: both, by reciprocal rank fusion; random; none; "
        "trained: a trained ranker",
        option="--prefilter",
    )
    pool: int = setting(50, "maximum candidates that enter a tournament", minimum=1, option="--pool")
    lexical_weight: float = setting(
        0.25, "weight of BM25 in the prefilter, relative to embeddings", minimum=0, option="--lexical-weight"
    )
    tournament: str = setting("chunked", "kind of tournament", option="--tournament", plugin="tournament")
    chunk: int = setting(
        10, "number of candidates compared at once in a chunked tournament", minimum=2, option="--chunk"
    )
    votes: Literal[1, 3] = setting(1, "votes per comparison: 1 or 3", option="--votes")
    chooser: str = setting(
        "auto",
        "how candidates are compared. auto: llm if a language model is set, otherwise offline; llm: by the language "
        "model; offline: by similarity of words or embeddings; random: at random; trained: by a trained ranker; or "
        "the name of a chooser from another package",
        option="--chooser",
        plugin="chooser",
        explained="folder",
    )
    ranker: str | None = setting(
        None, "file of a trained ranker, written by `kgqa rank train`", option="--ranker", metavar="FILE"
    )
    trained_share: float = setting(
        0.5,
        "share of the trained ranker in a path's similarity, the rest is the cosine of the words. 0: the ranker has no "
        "effect; 1: the ranker alone",
        minimum=0,
        maximum=1,
    )
    seed: int = setting(0, "seed of the random number generator for ranking", minimum=0, option="--seed")
    alignment: float = variant(0.5, "weight of how well the question's words align with a path's hops", minimum=0)
    answer_type: float = variant(0.3, "weight of the type of answer that the question asks for", minimum=0)
    depth_penalty: float = setting(
        0.15,
        "penalty for each hop beyond the number of hops that the question's wording suggests",
        minimum=0,
        option="--depth-penalty",
    )
    accept: float = setting(
        0.1, "minimum score of a path to be accepted as an answer", minimum=-10, option="--accept", explained="folder"
    )
    embeddings: Literal["auto", "off"] = setting(
        "auto",
        "auto: use embeddings if installed; off: words only",
        option="--embeddings",
        explained="folder",
    )
    model: str | None = setting(
        None,
        "name or folder of a sentence-transformers model; if not set, all-MiniLM-L6-v2",
        trusted=True,
        option="--model",
        metavar="NAME|FOLDER",
        example="sentence-transformers/all-mpnet-base-v2",
        explained="user",
    )
    bm25: Literal["own", "okapi"] = variant("own", "BM25 variant: own: Lucene's idf; okapi: as rank-bm25")
    model_url: str | None = setting(
        None,
        "URL of an OpenAI-compatible server for embeddings",
        trusted=True,
        example="http://localhost:8000/v1",
        explained="user",
    )
    query_prompt: str | None = setting(
        None, "text put before each question that is embedded; if not set, the query prompt of the embedding model"
    )


class BudgetSettings(Section, name="budget"):
    """What a question may cost."""

    seconds: float = setting(
        300.0, "maximum seconds per question", minimum=0.001, option="--max-seconds", explained="folder"
    )
    queries: int | None = setting(
        None, "maximum SPARQL queries per question", minimum=1, option="--max-queries", example=1000, explained="folder"
    )
    calls: int | None = setting(
        None,
        "maximum language model calls per question",
        minimum=0,
        option="--max-calls",
        example=50,
        explained="folder",
    )
    tokens: int | None = setting(
        None,
        "maximum tokens per question, prompts and replies together",
        minimum=0,
        option="--max-tokens",
        example=100000,
        explained="folder",
    )
    cost: float | None = setting(
        None,
        "maximum cost per question, in USD (see llm.prices)",
        minimum=0,
        option="--max-cost",
        example=0.01,
        explained="folder",
    )


class LlmSettings(Section, name="llm"):
    """Language models."""

    model: str | None = setting(
        None,
        "language model: openai:NAME, the URL of an OpenAI-compatible server (http://host:8000/v1; append #NAME to "
        "choose a model), vllm:NAME|FOLDER, replay:FILE, none",
        trusted=True,
        called="KGQA_LLM",
        option="--llm",
        metavar="MODEL",
        example="openai:gpt-4.1-mini",
        explained="user",
    )
    concurrency: int = setting(
        16,
        "maximum concurrent requests of all questions together",
        minimum=1,
        option="--concurrency",
        explained="user",
    )
    timeout: float = setting(120.0, "time limit of a request, in seconds", minimum=0.001, explained="user")
    retries: int = setting(4, "how often a failed request is repeated", minimum=0)
    replay: str | None = setting(
        None,
        "file in which replies are recorded and from which they are reused",
        trusted=True,
        option="--replay",
        metavar="FILE",
    )
    replay_only: Literal["off", "on"] = setting(
        "off", "on: use only recorded replies; a prompt without a recorded reply is an error", option="--replay-only"
    )
    compare: Literal["choice", "mark", "reasons"] = setting(
        "choice",
        "reply format of a comparison: choice: a label, enforced by the server if possible; mark: a label; reasons: a "
        "sentence on each candidate, then a label, as published",
        option="--compare",
    )
    mask: Literal["same", "placeholder", "id", "none"] = setting(
        "same",
        "what replaces the topic's name in prompts: same: as explore.mask, but [E1] for drop; placeholder; id: the "
        "topic's id; none: no masking",
        option="--llm-mask",
    )
    samples: int = setting(
        3, "number of end nodes that a prompt shows beside each of many paths; 0: none", minimum=0, option="--samples"
    )
    reask: int = setting(1, "how often a prompt is sent again after an unusable reply", minimum=0, option="--reask")
    temperature: float = setting(0.0, "sampling temperature", minimum=0, option="--temperature", explained="user")
    top_p: float | None = setting(None, "probability for nucleus sampling", minimum=0)
    seed: int | None = setting(None, "sampling seed, for servers that accept a seed", minimum=0)
    max_tokens: int | None = setting(
        None, "maximum tokens per reply; if not set, the server's limit", minimum=1, option="--max-reply-tokens"
    )
    extra_body: dict[str, Any] | None = setting(
        None, "table of additional fields sent with every request", trusted=True
    )
    stages: dict[str, Any] | None = setting(
        None,
        "other values for single stages: a table with a table per stage (link, clauses, filter, tournament, entity, "
        "decide, judge, a stage of the method, or extract, resolve, summarise of a corpus) of model, temperature, "
        "top_p, seed, max_tokens, extra_body",
        trusted=True,
    )
    prompts: str | None = setting(
        None, "folder of prompt files that replace the bundled ones", trusted=True, option="--prompts", metavar="FOLDER"
    )
    prices: str | None = setting(
        None,
        "TOML file with the prices of models, in USD per million tokens",
        trusted=True,
        example="prices.toml",
        explained="user",
    )


class CorpusSettings(Section, name="corpus"):
    """How a graph is made from text."""

    extract: Literal["auto", "triples", "hyperedges", "segments", "openie", "rules", "none"] = setting(
        "auto",
        "what is taken from the text of a corpus. triples: entities and facts; hyperedges: facts with any number of "
        "participants; segments: the same, as EvoGraph-R1 publishes it; openie: named entities, then facts (two "
        "prompts per chunk); these need a language model. rules: what can be read without a model; none: nothing; "
        "auto: triples with a language model, otherwise rules",
        option="--extract",
    )
    limit: int = setting(20, "maximum facts per chunk of a corpus", minimum=1, maximum=200, option="--max-facts")
    images: Literal["on", "off"] = setting(
        "off", "whether figures and image files of a corpus are sent to the language model, which has to accept images"
    )
    resolve: Literal["rules", "model", "none"] = setting(
        "rules",
        "how names are found that mean the same entity. rules: by rules and embeddings; model: a language model also "
        "decides the pairs that rules leave open; none: names are not merged",
        option="--resolve",
    )
    summaries: Literal["words", "model"] = setting(
        "words",
        "how communities of entities are summarised. words: by their main entities and relations; model: by a "
        "language model, one call for each new or changed community",
        option="--summaries",
    )


class CacheSettings(Section, name="cache"):
    """Where kgqa keeps what can be made again."""

    folder: str | None = setting(
        None,
        "cache folder; if not set, your user's cache folder",
        trusted=True,
        example="/data/kgqa-cache",
        explained="user",
    )


class ServeSettings(Section, name="serve"):
    """The settings of `kgqa serve`: its address, who may ask questions, and the limits of each client."""

    token: str | None = setting(
        None,
        "token that every request must send, or several, separated by commas, one per client",
        trusted=True,
        secret=True,
    )
    hosts: str | None = setting(
        None,
        "names under which clients reach the service, separated by commas, beside those of this machine",
        trusted=True,
    )
    proxy: str | None = setting(
        None,
        "addresses of reverse proxies, separated by commas, whose header X-Forwarded-For names the client",
        trusted=True,
    )
    models: str | None = setting(
        None,
        "further language models that clients may choose, separated by commas, in the form of llm.model",
        trusted=True,
    )
    folder: str | None = setting(
        None,
        "folder for the answers behind permanent links, or none to keep them in memory only; if not set, a folder of "
        "your user's data",
        trusted=True,
    )
    cache: int = setting(
        1000,
        "number of answers that are given again for the same question while the graph is unchanged; 0: none",
        minimum=0,
    )
    workers: int | None = setting(
        None,
        "questions answered at the same time; if not set, one per processor, with a language model eight",
        minimum=1,
    )
    queue: int = setting(200, "maximum questions that wait", minimum=0)
    query_seconds: float = setting(20.0, "time limit of a client's own SPARQL query, in seconds", minimum=0.1)
    shutdown_seconds: float = setting(
        30.0, "how long questions in flight may take after Ctrl-C or SIGTERM before they are stopped", minimum=0
    )
    client_questions: int = setting(64, "maximum questions of a client at the same time", minimum=1)
    client_per_minute: int | None = setting(None, "maximum questions of a client per minute", minimum=1)
    client_cost: float | None = setting(None, "maximum cost of a client per day (UTC), in USD", minimum=0, trusted=True)
    client_tokens: int | None = setting(
        None, "maximum tokens of language models of a client per day (UTC)", minimum=0, trusted=True
    )


SECTIONS: tuple[type[Section], ...] = (
    GraphSettings,
    EndpointSettings,
    AskSettings,
    ExploreSettings,
    RankSettings,
    BudgetSettings,
    LlmSettings,
    CorpusSettings,
    CacheSettings,
    ServeSettings,
)


@lru_cache(1)
def own_settings() -> Mapping[str, Setting]:
    """Return the settings of kgqa itself by key, without those of methods."""
    return {key: each for section in SECTIONS for key, each in settings_of(section).items()}


@lru_cache(1)
def own_keywords() -> Mapping[str, str]:
    """Return the keys of the settings of kgqa itself by each keyword that stands for them in Python."""
    return {keyword: key for key, each in own_settings().items() if not each.variant for keyword in each.keywords}
