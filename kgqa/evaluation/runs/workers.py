"""Asks the questions of a run on a Ray cluster: workers ask, and the process that was started writes."""

from __future__ import annotations

import gc
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kgqa.cluster import LOCAL, RayCluster, node_name, open_cluster
from kgqa.errors import ClusterError, KgqaError, SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.runs.asking import ask_question
from kgqa.evaluation.runs.manifest import (
    PATH_SETTINGS,
    SECRET_SETTINGS,
    SERVICE_SETTINGS,
    digest,
    located,
    path_kinds,
    prompt_digests,
)
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY, RunPlan, Topics
from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.runner import GC_THRESHOLD, Asked
from kgqa.graph.endpoint.options import PASSWORD_VARIABLE
from kgqa.methods.ask import graph_id, open_resources
from kgqa.methods.registry import asked_in_order
from kgqa.methods.resources import Resources
from kgqa.net.servers import KEY_VARIABLE, OPENAI_KEY_VARIABLE
from kgqa.plugins import known_settings
from kgqa.rank.embedding.remote import EMBEDDINGS_KEY_VARIABLE
from kgqa.settings.values import Settings, resolve
from kgqa.text.hints import Option, Place, current_place, shown_at
from kgqa.text.words import counted

NODE_SETTINGS = (*SECRET_SETTINGS, *SERVICE_SETTINGS, "cache.folder", "endpoint.user")
"""Settings that each node reads from its own environment and its own settings file; their values are not sent."""
LOCAL_VARIABLES = (
    *(OPENAI_KEY_VARIABLE, KEY_VARIABLE, EMBEDDINGS_KEY_VARIABLE, PASSWORD_VARIABLE, "SSL_CERT_FILE"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
"""Environment variables that workers on this machine inherit, as the calls of servers need them."""
_opening = threading.Lock()


@dataclass
class AskTask:
    """Asks a question in a worker, which opens graph and models once, with the settings of the run.

    `expected`: what `identity` returns for the resources of the run; `place`: where hints are shown.
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    local: frozenset[str]
    expected: Mapping[str, str]
    topics: Topics
    losses: bool
    place: Place
    opened: Resources | None = field(default=None, init=False)

    def __call__(self, question: GoldQuestion) -> Record:
        with shown_at(self.place):
            with _opening:
                self.opened = self.opened or self._open()
            return ask_question(question, self.opened, topics=self.topics, losses=self.losses)

    def _open(self) -> Resources:
        """Open the resources of this worker.

        Raises:
            ClusterError: they cannot be opened, or are not those of the run; the message names the node.
        """
        where = node_name()
        try:
            resources = open_resources(settings=self._settings())
            resources.open_names(required=self.topics == "linked", note=lambda text: None)
        except KgqaError as error:
            raise ClusterError(f"The node {where} cannot ask questions: {error.message}", *error.hint_parts) from error
        found = identity(resources)
        if differing := [name for name, value in self.expected.items() if found[name] != value]:
            resources.close()
            raise ClusterError(
                f"The node {where} has another {' and another '.join(differing)} than this machine.",
                "Give all nodes the same graph, packages and settings; see docs/scale.md",
            )
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
        return resources

    def _settings(self) -> Settings:
        own = resolve()
        values = {**self.values, **{key: own.values[key] for key in NODE_SETTINGS}}
        return Settings(values, self.origins, self.local, table=known_settings(values)[0])


def identity(resources: Resources) -> dict[str, str]:
    """Return digests of what determines the answers beside the settings, by a name for people."""
    models = resources.models.stage_settings() if resources.models else None
    return {
        "graph": graph_id(resources.graph).fingerprint,
        "embedding model": resources.encoder.name if resources.encoder else "",
        "version of the prompts": digest(prompt_digests(resources.prompts)),
        "language model (llm.model, llm.stages, llm.extra_body)": digest(models),
    }


@dataclass(frozen=True)
class Division:
    """How the questions of a run are divided among the workers of a cluster. `settings`: those of each worker."""

    workers: int
    threads: int
    settings: Settings
    gpus: float
    note: str

    @property
    def in_flight(self) -> int:
        return self.workers * self.threads


@contextmanager
def opened_cluster(plan: RunPlan, resources: Resources) -> Iterator[RayCluster | None]:
    """Open the cluster of a plan; None if the plan names no cluster.

    Raises:
        SettingsError: the questions of the run cannot be asked on this cluster.
        ClusterError: see `open_cluster`.
    """
    if plan.ray is None:
        yield None
        return
    settings = resources.settings
    if asked_in_order(settings):
        raise SettingsError(
            "With these settings, each question depends on those before it, so a cluster cannot help.",
            "Leave out ",
            Option("ray"),
        )
    if settings.llm.replay and settings.llm.replay_only != "on" and plan.ray != LOCAL:
        raise SettingsError(
            f"Replies cannot be recorded in {settings.llm.replay} from several machines.",
            "Record them with ",
            Option("ray", "local"),
            ", or use recorded replies only: ",
            Option("replay-only", True),
        )
    variables = {name: os.environ[name] for name in LOCAL_VARIABLES if name in os.environ}
    given = {
        settings.table[key].variable: settings.values[key]
        for key in SECRET_SETTINGS
        if settings.values[key] is not None
    }
    variables |= {name: json.dumps(value) for name, value in given.items()}
    with open_cluster(plan.ray, variables) as cluster:
        yield cluster


def divided(cluster: RayCluster, plan: RunPlan, questions: int, resources: Resources) -> Division:
    """Divide the questions in flight and the limits of the servers among the workers of a cluster.

    Raises:
        ClusterError: the language model needs a GPU for each worker, and the cluster has none.
    """
    settings, store = resources.settings, resources.graph.store.capabilities
    available, gpus = cluster.workers, 0.0
    if _in_process(settings):
        available, gpus = min(available, cluster.gpus), 1.0
        if not available:
            raise ClusterError(
                "A language model in the process of each worker needs a GPU, and the Ray cluster has none.",
                "Start nodes with GPUs, or run the model as a server: ",
                Option("llm", "URL"),
            )
    in_flight = plan.concurrency or max(DEFAULT_CONCURRENCY, available)
    limits = {"endpoint.concurrency": store.concurrency} if store.remote else {}
    if resources.models is not None and not gpus:
        calls = settings.llm.concurrency
        limits["llm.concurrency"] = calls if settings.origins["llm.concurrency"] != "default" else max(calls, in_flight)
    workers = max(1, min(available, in_flight, questions, *limits.values()))
    threads = max(1, in_flight // workers)
    parts: dict[str, Any] = {key: limit // workers for key, limit in limits.items()}
    shares = [f"{key} {value}" for key, value in parts.items()]
    if store.remote and store.rate:
        parts["endpoint.rate"] = store.rate / workers
        shares.append(f"endpoint.rate {parts['endpoint.rate']:.3g}")
    note = f"Asking on {counted(workers, 'worker')} of the Ray cluster, {counted(threads, 'question')} each at a time."
    if shares and workers > 1:
        note += f" Each worker gets its part of the limits of a server: {', '.join(shares)}."
    if workers < min(available, questions):
        limit = next((key for key, value in limits.items() if value == workers), str(Option("concurrency")))
        note += f" {counted(available, 'processor')} could be used: raise {limit}."
    return Division(workers, threads, replace(settings, values={**settings.values, **parts}), gpus, note)


def ask_on(
    cluster: RayCluster,
    division: Division,
    resources: Resources,
    *,
    topics: Topics,
    losses: bool,
    say: Callable[[str], None],
) -> partial[Asked]:
    """Return a function that asks questions on a cluster; see `kgqa.evaluation.runs.runner`."""
    base, kinds = os.getcwd(), path_kinds()
    settings = division.settings
    values = {key: value for key, value in settings.values.items() if key not in NODE_SETTINGS}
    values |= {key: located(values[key], base, kinds=kinds) for key in PATH_SETTINGS if key in values}
    task = AskTask(values, settings.origins, settings.local, identity(resources), topics, losses, current_place())
    return partial(
        cluster.stream, task, workers=division.workers, threads=division.threads, gpus=division.gpus, say=say
    )


def _in_process(settings: Settings) -> bool:
    """Whether a language model runs in the process that asks."""
    stages = settings.llm.stages or {}
    names = [settings.llm.model, *(table.get("model") for table in stages.values())]
    return any(str(name or "").startswith("vllm:") for name in names) and settings.llm.replay_only != "on"
