"""Every setting there is, and what the methods and presets set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgqa.schema import WALK_RULES


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `kind` is its type (dict: a TOML table, JSON in the environment); None is allowed where the default
    is None. `trusted`: only from the user's own file, the environment or the command line. `called`: its environment
    variable, where it is not KGQA_ and the key.
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
        "graph to ask: a folder, or the address of a SPARQL endpoint; none: the bundled demo graph",
    ),
    Setting(
        "graph.iri",
        str,
        None,
        "named graphs to look at, separated by blanks; none: the default graph, or on Virtuoso the only one there is",
    ),
    Setting("graph.schema", str, None, "schema name or TOML file; none: what the graph says, or detection"),
    Setting(
        "graph.languages", str, None, "languages of names, such as de,en: before the schema's own and then any other"
    ),
    Setting("graph.walks", str, None, "what a walk may return to; none: the graph's own rule", choices=WALK_RULES),
    Setting("graph.frontier_cap", int, 1000, "nodes at the end of a path that exploration looks on from", minimum=1),
    Setting("graph.timeout", float, 60.0, "seconds a single SPARQL query may take", minimum=0.001),
    Setting(
        "graph.load_memory",
        int,
        None,
        "megabytes that a load into a folder may take; none: 4,096 and eight times the size of the files",
        minimum=1,
    ),
    Setting(
        "endpoint.profile",
        str,
        "auto",
        "what kind of SPARQL server it is; auto: told by its address or what it calls itself",
        choices=("auto", "virtuoso", "qlever", "blazegraph", "wikidata", "generic"),
    ),
    Setting("endpoint.concurrency", int, None, "requests under way at once; none: what its profile says", minimum=1),
    Setting("endpoint.rate", float, None, "requests a second; 0: any number; none: what its profile says", minimum=0),
    Setting("endpoint.contact", str, None, "mail address or page, sent in User-Agent; public services want one"),
    Setting("endpoint.user", str, None, "user to log in as; the password is in KGQA_ENDPOINT_PASSWORD", trusted=True),
    Setting("endpoint.connect_timeout", float, 5.0, "seconds until a server has to take a connection", minimum=0.001),
    Setting("endpoint.patience", float, 10.0, "seconds to keep trying where nothing answers", minimum=0),
    Setting("endpoint.row_cap", int, None, "rows at which the server is known to cut results silently", minimum=1),
    Setting(
        "endpoint.cache",
        str,
        "on",
        "whether results are kept on disk, by endpoint and fingerprint",
        choices=("on", "off"),
    ),
    Setting("endpoint.cache_days", float, 7.0, "days a kept result is used", minimum=0),
    Setting("endpoint.cache_gb", float, 2.0, "size that kept results are cut back to", minimum=0),
    Setting(
        "ask.method",
        str,
        "top",
        "top: what measured best here; top-1 and top-2: the two published systems, as columns of settings; tog: "
        "Think-on-Graph, the baseline; io and cot: a language model alone; or one of another package",
    ),
    Setting(
        "ask.preset",
        str,
        "ours",
        "as-published: without any departure of ours; economy: fewest calls of a language model",
        choices=("ours", "as-published", "economy"),
    ),
    Setting(
        "ask.compose",
        str,
        "ends",
        "with a language model: the answer is the ends of the accepted path, or composed from all kept paths, where the "
        "model may also answer from its own knowledge",
        choices=("ends", "composed"),
    ),
    Setting(
        "ask.on_exhausted",
        str,
        "none",
        "with --stop accepted, where no path is accepted: no answer, or the best path's, marked as unaccepted",
        choices=("none", "best"),
    ),
    Setting("explore.depth", int, 2, "hops from the topic", minimum=1),
    Setting("explore.beam", int, 10, "paths kept a hop", minimum=1),
    Setting(
        "explore.mediator_hop",
        str,
        "edge",
        "whether a mediator and its exit count as one hop",
        choices=("edge", "free"),
    ),
    Setting(
        "explore.shape",
        str,
        "path",
        "path: all ends of a path are walked on from; path+entity: only entities that were selected",
        choices=("path", "path+entity"),
    ),
    Setting(
        "explore.stop",
        str,
        "depth",
        "depth: explore to the full depth; accepted: until a path is accepted as an answer; converged: until the best "
        "paths give the same answers as the hop before",
        choices=("depth", "accepted", "converged"),
    ),
    Setting(
        "explore.prune_by",
        str,
        "path",
        "what a comparison sees of a path: all of it, or (for the ablation) its last relation",
        choices=("path", "last-relation"),
    ),
    Setting(
        "explore.lengths",
        str,
        "any",
        "any: paths of all lengths may answer; deepest: only those of the full depth",
        choices=("any", "deepest"),
    ),
    Setting(
        "explore.combine",
        str,
        "intersect",
        "several topics: their paths must meet, or each is explored by itself",
        choices=("intersect", "separate"),
    ),
    Setting(
        "explore.clauses",
        str,
        "off",
        "with a language model and several topics: cut the question into its clauses, each explored from its topic",
        choices=("off", "on"),
    ),
    Setting(
        "explore.mask",
        str,
        "drop",
        "what a topic's mention becomes",
        choices=("drop", "placeholder", "id", "none"),
    ),
    Setting(
        "rank.wording",
        str,
        "words",
        "how paths are worded for ranking: plain words, or as published, full names with -> and <-",
        choices=("words", "published"),
    ),
    Setting(
        "rank.prefilter",
        str,
        "rrf",
        "what cuts a pool down: BM25, embeddings, both by reciprocal rank, chance, nothing, a trained ranker",
        choices=("bm25", "sbert", "rrf", "random", "none", "trained"),
    ),
    Setting("rank.pool", int, 50, "candidates a tournament gets at most", minimum=1),
    Setting("rank.lexical_weight", float, 0.25, "weight of BM25 in the prefilter; embeddings weigh 1", minimum=0),
    Setting(
        "rank.tournament",
        str,
        "chunked",
        "how candidates are compared",
        choices=("chunked", "pairwise", "knockout", "pointwise", "single"),
    ),
    Setting("rank.chunk", int, 10, "candidates compared at once in a chunked tournament", minimum=2),
    Setting("rank.votes", int, 1, "how often each comparison is made: 1 or 3", choices=(1, 3)),
    Setting(
        "rank.chooser",
        str,
        "auto",
        "who compares: auto: the language model (llm) if one is given, else similarity (offline); random: chance; "
        "trained: a trained ranker; or one of another package",
    ),
    Setting("rank.ranker", str, None, "file of a trained ranker, from `kgqa rank train`"),
    Setting("rank.seed", int, 0, "seed of what is left to chance", minimum=0),
    Setting("rank.alignment", float, 0.5, "share of word-by-hop alignment where more than one hop is asked", minimum=0),
    Setting("rank.answer_type", float, 0.3, "weight of the expected type of answer", minimum=0),
    Setting("rank.depth_penalty", float, 0.15, "taken off for each hop more than the wording announces", minimum=0),
    Setting("rank.accept", float, 0.1, "score from which a path is accepted as an answer", minimum=-10),
    Setting("rank.embeddings", str, "auto", "auto: embeddings if installed; off: words only", choices=("auto", "off")),
    Setting(
        "rank.model",
        str,
        None,
        "embedding model of sentence-transformers, by name or folder; none: the packaged one",
        trusted=True,
    ),
    Setting("rank.bm25", str, "own", "own: Lucene's idf; okapi: as rank-bm25 has it", choices=("own", "okapi")),
    Setting("rank.model_url", str, None, "OpenAI-compatible service for embeddings", trusted=True),
    Setting("rank.query_prompt", str, None, "text put before an embedded question; none: what the model itself says"),
    Setting("rank.precision", str, "fp32", "of an exported embedding model", choices=("fp32", "int8")),
    Setting(
        "tog.parse",
        str,
        "robust",
        "how Think-on-Graph reads replies: robust, or by the published rules of form alone",
        choices=("robust", "faithful"),
    ),
    Setting(
        "tog.temperature",
        float,
        0.4,
        "temperature while Think-on-Graph explores, where llm.temperature is not given",
        minimum=0,
    ),
    Setting("tog.sampled", int, 5, "entities drawn of those a relation leads to, where they are 20 or more", minimum=1),
    Setting("budget.seconds", float, 300.0, "seconds a question may take", minimum=0.001),
    Setting("budget.queries", int, None, "SPARQL queries a question may send", minimum=1),
    Setting("budget.calls", int, None, "calls of a language model a question may make", minimum=0),
    Setting("budget.tokens", int, None, "tokens a question may cost, prompts and replies together", minimum=0),
    Setting("budget.cost", float, None, "USD a question may cost (see llm.prices)", minimum=0),
    Setting(
        "llm.model",
        str,
        None,
        "language model: openai:NAME, the URL of an OpenAI-compatible server (http://host:8000/v1, or #NAME behind it "
        "to choose one of several), vllm:NAME|FOLDER, replay:FILE, none",
        trusted=True,
        called="KGQA_LLM",
    ),
    Setting("llm.concurrency", int, 16, "requests under way at once, over all questions", minimum=1),
    Setting("llm.timeout", float, 120.0, "seconds one request may take", minimum=0.001),
    Setting("llm.retries", int, 4, "times a failed request is sent again", minimum=0),
    Setting("llm.replay", str, None, "file in which replies are kept and from which they are taken", trusted=True),
    Setting("llm.replay_only", str, "off", "on: a prompt without a kept reply is an error", choices=("off", "on")),
    Setting(
        "llm.compare",
        str,
        "choice",
        "how a comparison is asked for: choice: its mark alone, which the server is made to keep to where it can; mark: "
        "its mark alone; reasons: a sentence on each candidate first, as published",
        choices=("choice", "mark", "reasons"),
    ),
    Setting(
        "llm.mask",
        str,
        "same",
        "what a language model sees of a topic: same: as explore.mask says, and [E1] where that drops it",
        choices=("same", "placeholder", "id", "none"),
    ),
    Setting("llm.reask", int, 1, "times a reply without use is asked for again", minimum=0),
    Setting("llm.temperature", float, 0.0, "sampling temperature", minimum=0),
    Setting("llm.top_p", float, None, "nucleus sampling", minimum=0),
    Setting("llm.seed", int, None, "sampling seed, for servers that take one", minimum=0),
    Setting("llm.max_tokens", int, None, "tokens a reply may have; none: the server's limit", minimum=1),
    Setting("llm.extra_body", dict, None, "anything else to send with every request, as a table", trusted=True),
    Setting(
        "llm.stages",
        dict,
        None,
        "other values for a stage of a question (link, clauses, filter, tournament, entity, decide, judge): a table of "
        "tables with model, temperature, top_p, seed, max_tokens, extra_body",
        trusted=True,
    ),
    Setting("llm.prompts", str, None, "folder whose prompt files stand in for ours", trusted=True),
    Setting("llm.prices", str, None, "TOML file of prices, USD for a million tokens", trusted=True),
    Setting("cache.folder", str, None, "where derived things are kept; none: the user's cache folder", trusted=True),
    Setting("cache.limit_gb", float, 10.0, "size the cache is cut back to", minimum=0, trusted=True),
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
"""What a method, and over it a preset, sets where nobody else does: between the defaults and the graph's own settings."""
BY_KEY = {setting.key: setting for setting in SETTINGS}
