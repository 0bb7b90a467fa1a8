"""The table of all settings, and the values that methods and presets give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgqa.schema import WALK_RULES


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    `kind`: its type; dict is a TOML table, or JSON in the environment. None is allowed if the default is None.
    `trusted`: accepted only from the user's own file, the environment or the command line. `called`: name of its
    environment variable, if not KGQA_ and the key.
    """

    key: str
    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    trusted: bool = False
    called: str = ""

    @property
    def variable(self) -> str:
        return self.called or "KGQA_" + self.key.upper().replace(".", "_")


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "graph.path",
        str,
        None,
        "graph folder, or URL of a SPARQL endpoint; none: the bundled demo graph",
    ),
    Setting(
        "graph.iri",
        str,
        None,
        "IRIs of named graphs to query, separated by spaces; none: the default graph, or on Virtuoso the only one",
    ),
    Setting("graph.schema", str, None, "schema name or TOML file; none: the graph's own, or detected"),
    Setting(
        "graph.languages",
        str,
        None,
        "preferred languages of names, such as de,en; then the schema's own, then any other",
    ),
    Setting("graph.walks", str, None, "which nodes a walk may revisit; none: the graph's own rule", choices=WALK_RULES),
    Setting("graph.frontier_cap", int, 1000, "end nodes of a path that exploration continues from", minimum=1),
    Setting("graph.timeout", float, 60.0, "seconds per SPARQL query", minimum=0.001),
    Setting(
        "graph.load_memory",
        int,
        None,
        "memory for loading into a folder, in MB; none: 4,096 plus eight times the size of the files",
        minimum=1,
    ),
    Setting(
        "endpoint.profile",
        str,
        "auto",
        "kind of SPARQL server; auto: detected from its URL or its Server header",
        choices=("auto", "virtuoso", "qlever", "blazegraph", "wikidata", "generic"),
    ),
    Setting("endpoint.concurrency", int, None, "concurrent requests; none: the profile's value", minimum=1),
    Setting("endpoint.rate", float, None, "requests per second; 0: no limit; none: the profile's value", minimum=0),
    Setting("endpoint.contact", str, None, "mail address or page, sent in User-Agent; public services ask for one"),
    Setting("endpoint.user", str, None, "user to log in as, with the password in KGQA_ENDPOINT_PASSWORD", trusted=True),
    Setting("endpoint.connect_timeout", float, 5.0, "seconds to wait for a connection", minimum=0.001),
    Setting("endpoint.patience", float, 10.0, "seconds to keep retrying a server that does not respond", minimum=0),
    Setting("endpoint.row_cap", int, None, "row count at which the server silently truncates results", minimum=1),
    Setting(
        "endpoint.cache",
        str,
        "on",
        "on: cache results on disk, by endpoint and fingerprint; off: do not",
        choices=("on", "off"),
    ),
    Setting("endpoint.cache_days", float, 7.0, "days until a cached result expires", minimum=0),
    Setting("endpoint.cache_gb", float, 2.0, "size limit of cached results, in GB", minimum=0),
    Setting(
        "ask.method",
        str,
        "top",
        "top: Tournament on Path with our best settings; top-1, top-2: its two published systems; tog: Think-on-Graph "
        "(baseline); io, cot: a language model alone; or a method of another package",
    ),
    Setting(
        "ask.preset",
        str,
        "ours",
        "ours: our settings; as-published: exactly as in the paper; economy: fewest language model calls",
        choices=("ours", "as-published", "economy"),
    ),
    Setting(
        "ask.compose",
        str,
        "ends",
        "with a language model: ends: the answers are the ends of the accepted path; composed: the model answers from "
        "all kept paths and may use its own knowledge",
        choices=("ends", "composed"),
    ),
    Setting(
        "ask.on_exhausted",
        str,
        "none",
        "if no path is accepted: none: give no answer; best: answer from the best path, with a note",
        choices=("none", "best"),
    ),
    Setting("explore.depth", int, 2, "hops from the topic", minimum=1),
    Setting("explore.beam", int, 10, "paths kept per hop", minimum=1),
    Setting(
        "explore.mediator_hop",
        str,
        "edge",
        "how hops are counted at mediators: edge: each edge is a hop; free: a mediator and its exit are one hop",
        choices=("edge", "free"),
    ),
    Setting(
        "explore.shape",
        str,
        "path",
        "path: continue from all ends of a path; path+entity: only from selected entities",
        choices=("path", "path+entity"),
    ),
    Setting(
        "explore.stop",
        str,
        "depth",
        "when to stop: depth: at the full depth; accepted: when a path is accepted as an answer; converged: when the "
        "best paths give the same answers as one hop before",
        choices=("depth", "accepted", "converged"),
    ),
    Setting(
        "explore.prune_by",
        str,
        "path",
        "what is compared: path: the whole path; last-relation: only its last relation (ablation)",
        choices=("path", "last-relation"),
    ),
    Setting(
        "explore.lengths",
        str,
        "any",
        "which paths may answer: any: paths of all lengths; deepest: only those of the full depth",
        choices=("any", "deepest"),
    ),
    Setting(
        "explore.combine",
        str,
        "intersect",
        "with several topics: intersect: their paths must meet; separate: each is explored on its own",
        choices=("intersect", "separate"),
    ),
    Setting(
        "explore.clauses",
        str,
        "off",
        "on: with a language model and several topics, split the question into one clause per topic",
        choices=("off", "on"),
    ),
    Setting(
        "explore.mask",
        str,
        "drop",
        "how the topic's name is masked: drop, placeholder, id, none",
        choices=("drop", "placeholder", "id", "none"),
    ),
    Setting(
        "rank.wording",
        str,
        "words",
        "how paths are worded for ranking: words: plain words; published: full names with -> and <-",
        choices=("words", "published"),
    ),
    Setting(
        "rank.prefilter",
        str,
        "rrf",
        "prefilter of the pool: bm25; sbert: embeddings; rrf: both, by reciprocal rank fusion; random; none; "
        "trained: a trained ranker",
        choices=("bm25", "sbert", "rrf", "random", "none", "trained"),
    ),
    Setting("rank.pool", int, 50, "candidates that enter a tournament, at most", minimum=1),
    Setting("rank.lexical_weight", float, 0.25, "weight of BM25 in the prefilter, relative to embeddings", minimum=0),
    Setting(
        "rank.tournament",
        str,
        "chunked",
        "kind of tournament: chunked, pairwise, knockout, pointwise, single",
        choices=("chunked", "pairwise", "knockout", "pointwise", "single"),
    ),
    Setting("rank.chunk", int, 10, "candidates compared at once in a chunked tournament", minimum=2),
    Setting("rank.votes", int, 1, "votes per comparison: 1 or 3", choices=(1, 3)),
    Setting(
        "rank.chooser",
        str,
        "auto",
        "what compares candidates: auto: llm if a language model is set, else offline; llm: the language model; "
        "offline: similarity; random; trained: a trained ranker; or a chooser of another package",
    ),
    Setting("rank.ranker", str, None, "file of a trained ranker, from `kgqa rank train`"),
    Setting("rank.seed", int, 0, "random seed", minimum=0),
    Setting(
        "rank.alignment", float, 0.5, "weight of word-by-hop alignment for questions of more than one hop", minimum=0
    ),
    Setting("rank.answer_type", float, 0.3, "weight of the expected answer type", minimum=0),
    Setting("rank.depth_penalty", float, 0.15, "penalty per hop beyond what the question suggests", minimum=0),
    Setting("rank.accept", float, 0.1, "minimum score of a path to be accepted as an answer", minimum=-10),
    Setting("rank.embeddings", str, "auto", "auto: embeddings if installed; off: words only", choices=("auto", "off")),
    Setting(
        "rank.model",
        str,
        None,
        "sentence-transformers model, by name or folder; none: the packaged one",
        trusted=True,
    ),
    Setting("rank.bm25", str, "own", "BM25 variant: own: Lucene's idf; okapi: as rank-bm25", choices=("own", "okapi")),
    Setting("rank.model_url", str, None, "URL of an OpenAI-compatible service for embeddings", trusted=True),
    Setting("rank.query_prompt", str, None, "text put before an embedded question; none: the model's own"),
    Setting("rank.precision", str, "fp32", "precision of an exported embedding model", choices=("fp32", "int8")),
    Setting(
        "tog.parse",
        str,
        "robust",
        "how Think-on-Graph reads replies: robust: also in other forms; faithful: only as published",
        choices=("robust", "faithful"),
    ),
    Setting(
        "tog.temperature",
        float,
        0.4,
        "sampling temperature of Think-on-Graph's exploration, unless llm.temperature is given",
        minimum=0,
    ),
    Setting("tog.sampled", int, 5, "entities sampled per relation that leads to 20 or more", minimum=1),
    Setting("budget.seconds", float, 300.0, "seconds per question", minimum=0.001),
    Setting("budget.queries", int, None, "SPARQL queries per question", minimum=1),
    Setting("budget.calls", int, None, "language model calls per question", minimum=0),
    Setting("budget.tokens", int, None, "tokens per question, prompts and replies together", minimum=0),
    Setting("budget.cost", float, None, "USD per question (see llm.prices)", minimum=0),
    Setting(
        "llm.model",
        str,
        None,
        "language model: openai:NAME, the URL of an OpenAI-compatible server (http://host:8000/v1; append #NAME to "
        "choose a model), vllm:NAME|FOLDER, replay:FILE, none",
        trusted=True,
        called="KGQA_LLM",
    ),
    Setting("llm.concurrency", int, 16, "concurrent requests, over all questions", minimum=1),
    Setting("llm.timeout", float, 120.0, "seconds per request", minimum=0.001),
    Setting("llm.retries", int, 4, "retries of a failed request", minimum=0),
    Setting("llm.replay", str, None, "file that replies are recorded to and replayed from", trusted=True),
    Setting("llm.replay_only", str, "off", "on: a prompt without a recorded reply is an error", choices=("off", "on")),
    Setting(
        "llm.compare",
        str,
        "choice",
        "reply format of a comparison: choice: a label, enforced by the server if possible; mark: a label; reasons: "
        "a sentence on each candidate, then a label, as published",
        choices=("choice", "mark", "reasons"),
    ),
    Setting(
        "llm.mask",
        str,
        "same",
        "how a topic's name is masked in prompts: same: as explore.mask, with [E1] for drop; placeholder, id, none",
        choices=("same", "placeholder", "id", "none"),
    ),
    Setting("llm.reask", int, 1, "repeated requests after an unusable reply", minimum=0),
    Setting("llm.temperature", float, 0.0, "sampling temperature", minimum=0),
    Setting("llm.top_p", float, None, "nucleus sampling probability", minimum=0),
    Setting("llm.seed", int, None, "sampling seed, for servers that support it", minimum=0),
    Setting("llm.max_tokens", int, None, "tokens per reply; none: the server's limit", minimum=1),
    Setting("llm.extra_body", dict, None, "table of further fields of every request", trusted=True),
    Setting(
        "llm.stages",
        dict,
        None,
        "table of other values per stage (link, clauses, filter, tournament, entity, decide, judge), each a table with "
        "model, temperature, top_p, seed, max_tokens, extra_body",
        trusted=True,
    ),
    Setting("llm.prompts", str, None, "folder of prompt files that replace the bundled ones", trusted=True),
    Setting("llm.prices", str, None, "TOML file of prices, in USD per million tokens", trusted=True),
    Setting("cache.folder", str, None, "cache folder; none: the user's cache folder on this platform", trusted=True),
    Setting("cache.limit_gb", float, 10.0, "size limit of the cache, in GB", minimum=0, trusted=True),
)
_AS_PUBLISHED = {
    "explore.depth": 3,
    "explore.combine": "separate",
    "rank.bm25": "okapi",
    "rank.lexical_weight": 1.0,
    "rank.pool": 30,
    "rank.chunk": 10,
    "rank.wording": "published",
    "llm.compare": "reasons",
    "llm.reask": 0,
}
_ECONOMY = {"rank.pool": 20, "rank.chunk": 20, "llm.compare": "choice"}
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "top": {"ours": {}, "as-published": _AS_PUBLISHED, "economy": _ECONOMY},
    # the two systems of the thesis (table 4.1)
    "top-1": {
        "ours": {
            "explore.shape": "path+entity",
            "explore.beam": 3,
            "llm.mask": "none",
            "rank.prefilter": "rrf",
            "rank.lexical_weight": 1.0,
            "rank.tournament": "chunked",
            "explore.stop": "depth",
            "ask.compose": "composed",
        },
        "as-published": {**_AS_PUBLISHED, "explore.mask": "none"},
        "economy": _ECONOMY,
    },
    "top-2": {
        "ours": {
            "explore.shape": "path",
            "explore.beam": 3,
            "rank.prefilter": "sbert",
            "rank.tournament": "pairwise",
            "explore.stop": "accepted",
            "ask.compose": "ends",
        },
        "as-published": {**_AS_PUBLISHED, "explore.mask": "id"},
        "economy": {**_ECONOMY, "rank.tournament": "knockout"},
    },
    # width 3, depth 3; temperature 0.4 while exploring, 0 while reasoning (Sun et al. 2024, section 3.1)
    "tog": {
        "ours": {
            "explore.beam": 3,
            "explore.depth": 3,
            "llm.mask": "none",
        },
        "as-published": {"tog.parse": "faithful", "rank.wording": "published", "llm.reask": 0},
        "economy": {},
    },
}
"""Values set by methods (`ours`) and presets. They override defaults only; a preset overrides a method."""
BY_KEY = {setting.key: setting for setting in SETTINGS}
