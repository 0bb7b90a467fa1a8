"""The settings of `kgqa serve`: where it listens, who may ask, and how much."""

from __future__ import annotations

from kgqa.settings.table import Setting

SERVE_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "serve.token",
        str,
        None,
        "token that every request must send, or several, separated by commas, one per client",
        trusted=True,
        secret=True,
    ),
    Setting(
        "serve.hosts",
        str,
        None,
        "names under which clients reach the service, separated by commas, beside those of this machine",
        trusted=True,
    ),
    Setting(
        "serve.proxy",
        str,
        None,
        "addresses of reverse proxies, separated by commas, whose header X-Forwarded-For names the client",
        trusted=True,
    ),
    Setting(
        "serve.models",
        str,
        None,
        "further language models that clients may choose, separated by commas, in the form of llm.model",
        trusted=True,
    ),
    Setting(
        "serve.folder",
        str,
        None,
        "folder for the answers behind permanent links, or none to keep them in memory only; if not set, a folder of "
        "your user's data",
        trusted=True,
    ),
    Setting("serve.kept", int, 10_000, "maximum answers kept for permanent links", minimum=0, trusted=True),
    Setting("serve.kept_mb", int, 500, "maximum size of all kept answers, in MB", minimum=0, trusted=True),
    Setting(
        "serve.cache",
        int,
        1000,
        "number of answers that are given again for the same question while the graph is unchanged; 0: none",
        minimum=0,
    ),
    Setting(
        "serve.workers",
        int,
        None,
        "questions answered at the same time; if not set, one per processor, with a language model eight",
        minimum=1,
    ),
    Setting("serve.queue", int, 200, "maximum questions that wait", minimum=0),
    Setting("serve.body_kb", int, 256, "maximum size of a request, in KB", minimum=1),
    Setting(
        "serve.read_seconds", float, 10.0, "maximum seconds until the headers, and then the body, arrive", minimum=0.1
    ),
    Setting("serve.query_seconds", float, 20.0, "time limit of a client's own SPARQL query, in seconds", minimum=0.1),
    Setting("serve.query_rows", int, 1000, "maximum rows of a client's own SPARQL query", minimum=1),
    Setting(
        "serve.shutdown_seconds",
        float,
        30.0,
        "how long questions in flight may take after Ctrl-C or SIGTERM before they are stopped",
        minimum=0,
    ),
    Setting("serve.client_questions", int, 64, "maximum questions of a client at the same time", minimum=1),
    Setting("serve.client_per_minute", int, None, "maximum questions of a client per minute", minimum=1),
    Setting(
        "serve.client_cost", float, None, "maximum cost of a client per day (UTC), in USD", minimum=0, trusted=True
    ),
    Setting(
        "serve.client_tokens",
        int,
        None,
        "maximum tokens of language models of a client per day (UTC)",
        minimum=0,
        trusted=True,
    ),
)
