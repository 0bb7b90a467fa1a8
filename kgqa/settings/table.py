"""The table of all settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from kgqa.errors import SettingsError

PluginKind = Literal["method", "chooser", "tournament", "dataset", "store", "web_search"]
LARGEST = 1_000_000_000
WalkRule = Literal["topic-not-end", "no-return", "topic-never", "free"]
WALK_RULES: tuple[str, ...] = get_args(WalkRule)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    `kind`: type of the value; dict means a TOML table, or JSON in an environment variable. The value may be None only
    if the default is None. `minimum`, `maximum`: smallest and largest value allowed. `trusted`: the setting is accepted
    only from the user's own settings file, an environment variable or the command line. `called`: name of the
    environment variable, if the name is not formed from KGQA_ and the key. `option`: the command line options,
    separated by a space; the first one names the keyword argument in Python (`--graph-iri`: `graph_iri`). `metavar`:
    the option's value in help texts. `plugin`: the value is the name of a plugin of this kind. `each_of`: the value is
    a list, separated by commas, of some of these. `secret`: `kgqa config show` hides the value.
    """

    key: str
    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float = LARGEST
    trusted: bool = False
    called: str = ""
    option: str = ""
    metavar: str | None = None
    plugin: PluginKind | None = None
    each_of: tuple[str, ...] = ()
    secret: bool = False

    @property
    def variable(self) -> str:
        return self.called or variable_of(self.key)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The names of the setting in Python: its key, the key with an underscore, the names of its options."""
        options = (option.removeprefix("--").replace("-", "_") for option in self.option.split())
        return (self.key, self.key.replace(".", "_"), *options)


def variable_of(key: str) -> str:
    """Return the name of an environment variable, formed from a setting's key."""
    return "KGQA_" + key.upper().replace(".", "_")


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "graph.path",
        str,
        None,
        "graph folder, corpus folder, URL of a SPARQL endpoint, or NAME:REST (store of another package); if not set, "
        "the demo graph",
    ),
    Setting(
        "graph.iri",
        str,
        None,
        "IRIs of named graphs to query, separated by spaces; if not set, the default graph (on Virtuoso: the only "
        "named graph)",
        option="--graph-iri",
        metavar="IRI",
    ),
    Setting(
        "graph.view",
        str,
        None,
        "views of a corpus to query, separated by commas: facts, hyper, text, statements, communities, edits; if not "
        "set, facts",
        option="--view",
        metavar="NAME",
    ),
    Setting(
        "graph.schema",
        str,
        None,
        "schema name or TOML file; if not set, the schema stored with the graph or detected",
        option="--schema",
        metavar="NAME|FILE",
    ),
    Setting(
        "graph.languages",
        str,
        None,
        "preferred languages of names, such as de,en; names in other languages are used only if these are missing",
        option="--languages",
        metavar="LIST",
    ),
    Setting(
        "graph.walks",
        str,
        None,
        "which nodes a walk may visit more than once; if not set, the rule stored with the graph or its schema",
        choices=WALK_RULES,
        option="--walks",
    ),
    Setting(
        "graph.frontier_cap",
        int,
        1000,
        "maximum end nodes of a path from which exploration continues",
        minimum=1,
        option="--frontier-cap",
    ),
    Setting(
        "graph.timeout", float, 60.0, "time limit of a SPARQL query, in seconds", minimum=0.001, option="--timeout"
    ),
    Setting(
        "graph.load_memory",
        int,
        None,
        "maximum memory for loading into a folder, in MB; if not set, 4,096 plus eight times the size of the files",
        minimum=1,
    ),
    Setting(
        "endpoint.profile",
        str,
        "auto",
        "kind of SPARQL server; auto: detected from the URL or the Server header",
        choices=("auto", "virtuoso", "qlever", "blazegraph", "wikidata", "generic"),
        option="--profile",
    ),
    Setting(
        "endpoint.concurrency",
        int,
        None,
        "maximum concurrent requests; if not set, the value of the server's profile",
        minimum=1,
    ),
    Setting(
        "endpoint.rate",
        float,
        None,
        "maximum requests per second; 0 = unlimited; if not set, the value of the server's profile",
        minimum=0,
    ),
    Setting(
        "endpoint.contact",
        str,
        None,
        "your email address or web page; it is sent in the User-Agent header, because public services ask for it",
    ),
    Setting(
        "endpoint.user",
        str,
        None,
        "user name for the server's login; the password is read from KGQA_ENDPOINT_PASSWORD or kept by kgqa keys",
        trusted=True,
    ),
    Setting(
        "endpoint.login_server",
        str,
        None,
        "URL of a server, other than on this machine, that gets your login if a corpus folder names it",
        trusted=True,
    ),
    Setting("endpoint.connect_timeout", float, 5.0, "maximum seconds to wait for a connection", minimum=0.001),
    Setting("endpoint.patience", float, 10.0, "for how many seconds a server without a reply is retried", minimum=0),
    Setting("endpoint.row_cap", int, None, "number of rows at which the server cuts results without notice", minimum=1),
    Setting(
        "endpoint.cache",
        str,
        "on",
        "on: cache query results on disk; off: send every query",
        choices=("on", "off"),
    ),
    Setting("endpoint.cache_days", float, 7.0, "days until a cached result expires", minimum=0),
    Setting("endpoint.cache_gb", float, 2.0, "maximum size of all cached results, in GB", minimum=0),
    Setting(
        "ask.method",
        str,
        None,
        "method that answers the questions",
        option="--method",
        plugin="method",
    ),
    Setting(
        "ask.preset",
        str,
        "ours",
        "ours: our settings; as-published: the settings of the paper; economy: fewest language model calls; or another "
        "preset of the method",
        option="--preset",
        metavar="NAME",
    ),
    Setting(
        "ask.compose",
        str,
        "ends",
        "source of the answers: ends: the end nodes of the accepted path; composed: the language model writes the "
        "answers from all kept paths and may use its own knowledge",
        choices=("ends", "composed"),
        option="--compose",
    ),
    Setting(
        "ask.answer_form",
        str,
        "short",
        "form of the text of an answer over a corpus: short: one to three sentences; long: a report; read by tog3",
        choices=("short", "long"),
        option="--answer-form",
    ),
    Setting(
        "ask.judge",
        str,
        "rows",
        "how a language model decides whether a path answers the question: rows: it reads rows of the best paths, and "
        "gives conditions or an operation; path: it accepts or rejects one path at a time",
        choices=("rows", "path"),
        option="--judge",
    ),
    Setting(
        "ask.on_exhausted",
        str,
        "best",
        "what to do if no path is accepted: best: answer from the best path, marked as not accepted; none: give no "
        "answer",
        choices=("best", "none"),
        option="--on-exhausted",
    ),
    Setting(
        "ask.min_score",
        float,
        0.0,
        "minimum score (0 to 1) of an answer found without a language model, which is the share of right answers among "
        "answers like it; below it, no answer",
        minimum=0,
        maximum=1,
        option="--min-score",
    ),
    Setting("explore.depth", int, 2, "maximum hops from the topic", minimum=1, option="--depth"),
    Setting(
        "explore.wording_depth",
        int,
        3,
        "maximum hops if the wording of the question suggests more than explore.depth, without a language model; "
        "explore.depth if that is set and this is not",
        minimum=1,
    ),
    Setting("explore.beam", int, 10, "number of paths kept after each hop", minimum=1, option="--beam"),
    Setting(
        "explore.mediator_hop",
        str,
        "edge",
        "how hops are counted at mediators: edge: each edge is a hop; free: two edges through a mediator are one hop",
        choices=("edge", "free"),
        option="--mediator-hop",
    ),
    Setting(
        "explore.shape",
        str,
        "path",
        "from which end nodes of a path to continue: path: all; path+entity: those that the chooser selects",
        choices=("path", "path+entity"),
        option="--shape --explore",
    ),
    Setting(
        "explore.stop",
        str,
        "depth",
        "when to stop: depth: at the maximum depth; accepted: when a path is accepted; answered: at the maximum depth, "
        "or when the language model says that entities it selects are the answer; converged: when the best paths give "
        "the same answers as one hop before",
        choices=("depth", "accepted", "answered", "converged"),
        option="--stop",
    ),
    Setting(
        "explore.retain",
        str,
        "chosen",
        "which paths may become the answer if a language model compares them: chosen: the winners of the last hop, and "
        "after these the paths chosen before; last: only the winners of the last hop",
        choices=("chosen", "last"),
        option="--retain",
    ),
    Setting(
        "explore.prune_by",
        str,
        "path",
        "what is compared: path: the whole path; last-relation: only its last relation (ablation)",
        choices=("path", "last-relation"),
        option="--prune-by",
    ),
    Setting(
        "explore.lengths",
        str,
        "any",
        "which paths may be accepted: any: paths of all lengths; deepest: only paths of the maximum depth",
        choices=("any", "deepest"),
        option="--lengths",
    ),
    Setting(
        "explore.combine",
        str,
        "intersect",
        "how several topics are handled: intersect: their paths must meet; separate: each topic is explored alone",
        choices=("intersect", "separate"),
        option="--combine",
    ),
    Setting(
        "explore.clauses",
        str,
        "off",
        "on: if a language model is set and the question has several topics, split it into one clause per topic",
        choices=("off", "on"),
        option="--clauses",
    ),
    Setting(
        "explore.mask",
        str,
        "drop",
        "what replaces the topic's name in the question: drop: nothing; placeholder; id: the topic's id; none: no "
        "masking",
        choices=("drop", "placeholder", "id", "none"),
        option="--mask",
    ),
    Setting(
        "rank.wording",
        str,
        "words",
        "how paths are worded for ranking: words: plain words; published: full names with -> and <-",
        choices=("words", "published"),
        option="--wording",
    ),
    Setting(
        "rank.prefilter",
        str,
        "rrf",
        "prefilter of the candidates: bm25; sbert: embeddings; rrf: both, by reciprocal rank fusion; random; none; "
        "trained: a trained ranker",
        choices=("bm25", "sbert", "rrf", "random", "none", "trained"),
        option="--prefilter",
    ),
    Setting("rank.pool", int, 50, "maximum candidates that enter a tournament", minimum=1, option="--pool"),
    Setting(
        "rank.lexical_weight",
        float,
        0.25,
        "weight of BM25 in the prefilter, relative to embeddings",
        minimum=0,
        option="--lexical-weight",
    ),
    Setting(
        "rank.tournament",
        str,
        "chunked",
        "kind of tournament",
        option="--tournament",
        plugin="tournament",
    ),
    Setting(
        "rank.chunk",
        int,
        10,
        "number of candidates compared at once in a chunked tournament",
        minimum=2,
        option="--chunk",
    ),
    Setting(
        "rank.equal_ends",
        str,
        "one",
        "how a language model compares paths with the same end nodes: one: only the best of them; each: all of them",
        choices=("one", "each"),
        option="--equal-ends",
    ),
    Setting("rank.votes", int, 1, "votes per comparison: 1 or 3", choices=(1, 3), option="--votes"),
    Setting(
        "rank.chooser",
        str,
        "auto",
        "how candidates are compared. auto: llm if a language model is set, otherwise offline; llm: by the language "
        "model; offline: by similarity of words or embeddings; random: at random; trained: by a trained ranker; or the "
        "name of a chooser from another package",
        option="--chooser",
        plugin="chooser",
    ),
    Setting(
        "rank.ranker",
        str,
        None,
        "file of a trained ranker, written by `kgqa rank train`",
        option="--ranker",
        metavar="FILE",
    ),
    Setting("rank.seed", int, 0, "seed of the random number generator for ranking", minimum=0, option="--seed"),
    Setting(
        "rank.alignment",
        float,
        0.5,
        "weight of how well the question's words align with a path's hops",
        minimum=0,
    ),
    Setting("rank.answer_type", float, 0.3, "weight of the type of answer that the question asks for", minimum=0),
    Setting(
        "rank.depth_penalty",
        float,
        0.15,
        "penalty for each hop beyond the number of hops that the question's wording suggests",
        minimum=0,
        option="--depth-penalty",
    ),
    Setting(
        "rank.accept", float, 0.1, "minimum score of a path to be accepted as an answer", minimum=-10, option="--accept"
    ),
    Setting(
        "rank.embeddings",
        str,
        "auto",
        "auto: use embeddings if installed; off: words only",
        choices=("auto", "off"),
        option="--embeddings",
    ),
    Setting(
        "rank.model",
        str,
        None,
        "name or folder of a sentence-transformers model; if not set, all-MiniLM-L6-v2",
        trusted=True,
        option="--model",
        metavar="NAME|FOLDER",
    ),
    Setting("rank.bm25", str, "own", "BM25 variant: own: Lucene's idf; okapi: as rank-bm25", choices=("own", "okapi")),
    Setting("rank.model_url", str, None, "URL of an OpenAI-compatible server for embeddings", trusted=True),
    Setting(
        "rank.query_prompt",
        str,
        None,
        "text put before each question that is embedded; if not set, the query prompt of the embedding model",
    ),
    Setting(
        "rank.precision",
        str,
        "fp32",
        "number format of the embedding model",
        choices=("fp32", "int8"),
        option="--precision",
    ),
    Setting("budget.seconds", float, 300.0, "maximum seconds per question", minimum=0.001, option="--max-seconds"),
    Setting("budget.queries", int, None, "maximum SPARQL queries per question", minimum=1, option="--max-queries"),
    Setting("budget.calls", int, None, "maximum language model calls per question", minimum=0, option="--max-calls"),
    Setting(
        "budget.tokens",
        int,
        None,
        "maximum tokens per question, prompts and replies together",
        minimum=0,
        option="--max-tokens",
    ),
    Setting(
        "budget.cost", float, None, "maximum cost per question, in USD (see llm.prices)", minimum=0, option="--max-cost"
    ),
    Setting(
        "llm.model",
        str,
        None,
        "language model: openai:NAME, the URL of an OpenAI-compatible server (http://host:8000/v1; append #NAME to "
        "choose a model), vllm:NAME|FOLDER, replay:FILE, none",
        trusted=True,
        called="KGQA_LLM",
        option="--llm",
        metavar="MODEL",
    ),
    Setting(
        "llm.concurrency",
        int,
        16,
        "maximum concurrent requests of all questions together",
        minimum=1,
        option="--concurrency",
    ),
    Setting("llm.timeout", float, 120.0, "time limit of a request, in seconds", minimum=0.001),
    Setting("llm.retries", int, 4, "how often a failed request is repeated", minimum=0),
    Setting(
        "llm.replay",
        str,
        None,
        "file in which replies are recorded and from which they are reused",
        trusted=True,
        option="--replay",
        metavar="FILE",
    ),
    Setting(
        "llm.replay_only",
        str,
        "off",
        "on: use only recorded replies; a prompt without a recorded reply is an error",
        option="--replay-only",
        choices=("off", "on"),
    ),
    Setting(
        "llm.compare",
        str,
        "choice",
        "reply format of a comparison: choice: a label, enforced by the server if possible; mark: a label; reasons: "
        "a sentence on each candidate, then a label, as published",
        choices=("choice", "mark", "reasons"),
        option="--compare",
    ),
    Setting(
        "llm.abstain",
        str,
        "on",
        "whether a language model may reply that no candidate is useful (an empty list, NEITHER): on: such a reply "
        "stands; off: the order of the prefilter decides, as published",
        choices=("on", "off"),
        option="--abstain",
    ),
    Setting(
        "llm.mask",
        str,
        "same",
        "what replaces the topic's name in prompts: same: as explore.mask, but [E1] for drop; placeholder; id: the "
        "topic's id; none: no masking",
        choices=("same", "placeholder", "id", "none"),
        option="--llm-mask",
    ),
    Setting(
        "llm.samples",
        int,
        3,
        "number of end nodes that a prompt shows beside each of many paths; 0: none",
        minimum=0,
        option="--samples",
    ),
    Setting(
        "llm.reask", int, 1, "how often a prompt is sent again after an unusable reply", minimum=0, option="--reask"
    ),
    Setting("llm.temperature", float, 0.0, "sampling temperature", minimum=0, option="--temperature"),
    Setting("llm.top_p", float, None, "probability for nucleus sampling", minimum=0),
    Setting("llm.seed", int, None, "sampling seed, for servers that accept a seed", minimum=0),
    Setting(
        "llm.max_tokens",
        int,
        None,
        "maximum tokens per reply; if not set, the server's limit",
        minimum=1,
        option="--max-reply-tokens",
    ),
    Setting("llm.extra_body", dict, None, "table of additional fields sent with every request", trusted=True),
    Setting(
        "llm.stages",
        dict,
        None,
        "other values for single stages: a table with a table per stage (link, clauses, filter, tournament, entity, "
        "decide, judge, a stage of the method, or extract, resolve, summarise of a corpus) of model, temperature, "
        "top_p, seed, max_tokens, extra_body",
        trusted=True,
    ),
    Setting(
        "llm.prompts",
        str,
        None,
        "folder of prompt files that replace the bundled ones",
        trusted=True,
        option="--prompts",
        metavar="FOLDER",
    ),
    Setting("llm.prices", str, None, "TOML file with the prices of models, in USD per million tokens", trusted=True),
    Setting(
        "corpus.extract",
        str,
        "auto",
        "what is taken from the text of a corpus. triples: entities and facts; hyperedges: facts with any number of "
        "participants; openie: named entities, then facts (two prompts per chunk); these need a language model. rules: "
        "what can be read without a model; none: nothing; auto: triples with a language model, otherwise rules",
        choices=("auto", "triples", "hyperedges", "openie", "rules", "none"),
        option="--extract",
    ),
    Setting(
        "corpus.limit", int, 20, "maximum facts per chunk of a corpus", minimum=1, maximum=200, option="--max-facts"
    ),
    Setting(
        "corpus.images",
        str,
        "off",
        "whether figures and image files of a corpus are sent to the language model, which has to accept images",
        choices=("on", "off"),
    ),
    Setting(
        "corpus.resolve",
        str,
        "rules",
        "how names are found that mean the same entity. rules: by rules and embeddings; model: a language model also "
        "decides the pairs that rules leave open; none: names are not merged",
        choices=("rules", "model", "none"),
        option="--resolve",
    ),
    Setting(
        "corpus.summaries",
        str,
        "words",
        "how communities of entities are summarised. words: by their main entities and relations; model: by a language "
        "model, one call for each new or changed community",
        choices=("words", "model"),
        option="--summaries",
    ),
    Setting("cache.folder", str, None, "cache folder; if not set, your user's cache folder", trusted=True),
    Setting("cache.limit_gb", float, 10.0, "maximum size of the cache, in GB", minimum=0, trusted=True),
)
KINDS = {int: "a whole number", float: "a number", str: "text", dict: "a table (in JSON, an object)"}
BY_KEY = {setting.key: setting for setting in SETTINGS}
BY_KEYWORD = {keyword: setting for setting in SETTINGS for keyword in setting.keywords}


def check(setting: Setting, value: Any, origin: str) -> Any:
    """Return the value, converted to the setting's type.

    Raises:
        SettingsError: the value has a wrong type, is out of range, or is not one of the setting's choices.
    """
    if value is None and setting.default is None:
        return None
    if setting.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    wrong = not isinstance(value, setting.kind) or isinstance(value, bool)
    if wrong or (setting.choices and value not in setting.choices):
        allowed = f"one of {', '.join(map(str, setting.choices))}" if setting.choices else KINDS[setting.kind]
        raise SettingsError(f"{setting.key} ({origin}) must be {allowed}, not {value!r}.")
    if setting.each_of and not {each.strip() for each in value.split(",")} <= set(setting.each_of):
        allowed = ", ".join(setting.each_of)
        raise SettingsError(f"{setting.key} ({origin}) must be a list of {allowed}, with commas, not {value!r}.")
    number = value if isinstance(value, (int, float)) else None
    if number is not None and not -LARGEST <= number <= setting.maximum:
        raise SettingsError(f"{setting.key} ({origin}) must be at most {setting.maximum:,}, not {value!r}.")
    if setting.minimum is not None and number is not None and not number >= setting.minimum:
        raise SettingsError(f"{setting.key} ({origin}) must be at least {setting.minimum:g}, not {value!r}.")
    return value
