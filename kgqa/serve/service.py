"""The service: one open graph, the methods and models that clients may choose, and the questions in progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kgqa.errors import KgqaError, QuestionError, StoreError
from kgqa.graph.query.tokens import shorten_iris
from kgqa.methods.ask import ask, budget_of, graph_id, open_resources
from kgqa.methods.conversation import TURNS, Resolved, turn_of_object
from kgqa.methods.conversation import resolve as resolve_references
from kgqa.methods.registry import method
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity, Question
from kgqa.search.topics import check_text
from kgqa.serve.examples import demo_examples, example_query, graph_examples
from kgqa.serve.fair_queue import FairQueue
from kgqa.serve.jobs import Asked, Job
from kgqa.serve.kept_answers import AnswerCache, KeptAnswers, answers_folder
from kgqa.serve.limits import BODY_BYTES, QUERY_ROWS, ClientLimits
from kgqa.serve.metrics import Metrics
from kgqa.serve.offers import client_names, offered_methods
from kgqa.settings.values import Settings, resolve
from kgqa.storage.answer_json import answer_object
from kgqa.text.hints import PAGE, shown_at
from kgqa.text.words import clean
from kgqa.trace.trace import BudgetExhausted, Trace
from kgqa.version import __version__

T = TypeVar("T")
CACHED = ("answered", "no_answer", "unsupported")
"""The statuses of answers that are given again for the same question."""
CACHED_BYTES = 64 << 10
"""Maximum size of such an answer as JSON."""
ENDS = "Stopped, because the service ends"
NO_MODEL = "none"
"""What a client sends to use no language model although there is a default."""
HEALTH_SECONDS = 5.0
LOOKUPS = 4
"""How many times more look-ups than questions may wait."""
QUERIES = 2
"""Maximum clients' own queries at the same time."""


class Service:
    """Answers the questions of many clients over one graph. Thread-safe.

    Args:
        given: Settings by key, as for `resolve`: the method and the model among them are the defaults of clients.
        writable: Whether proposed edits of a corpus may be accepted.
        say: Called with messages for the person who starts the service.

    Raises:
        KgqaError: see `open_resources`.
    """

    def __init__(
        self, given: Mapping[str, Any], *, writable: bool = False, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self._given = dict(given)
        self.settings = resolve(self._given)
        self.writable = writable
        self._say = say
        self._lock = threading.RLock()
        self._made_examples: list[str] | None = None
        self.default_method: str = self.settings.ask.method
        listed = [name.strip() for name in (self.settings.serve.models or "").split(",") if name.strip()]
        default = (self.settings.llm.model or "none").strip()
        self.models = client_names([*([] if default == "none" else [default]), *listed], self.settings)
        """The models that clients may choose, by the names that clients see."""
        self.default_model = next(iter(self.models), "") if default != "none" else ""
        self._opened: dict[tuple[str, str], Resources] = {}
        self._base = self._open_base()
        self.graph, self.corpus = self._base.graph, self._base.corpus
        try:
            self._base.graph.tables.prepare()
            self._base.open_names(required=False, note=say)
            if self.corpus is not None:
                self.corpus.index  # noqa: B018  # is brought up to date before the first request
            self.methods = offered_methods(
                lambda name: self._settings_for(name, self.default_model),
                models=bool(self.models),
                corpus=self.corpus is not None,
            )
            self.limits = ClientLimits(self.settings)
            self._require_prices(self._base)
            self.kept = KeptAnswers(answers_folder(self.settings.serve.folder))
        except BaseException:
            self._base.close()
            raise
        self.metrics = Metrics()
        self._cache = AnswerCache(self.settings.serve.cache)
        cores = os.cpu_count() or 1
        workers = self.settings.serve.workers or (max(8, cores) if self.models else cores)
        limit = self.settings.serve.queue
        self.questions = FairQueue(workers, limit=limit, name="kgqa-ask")
        self.lookups = FairQueue(cores, limit=LOOKUPS * limit, name="kgqa-lookup")
        # apart, and fewer than the workers of a store: queries of clients can be slow, and other look-ups pass them
        self.queries = FairQueue(QUERIES if cores > QUERIES else 1, limit=limit, name="kgqa-query")
        self.jobs: dict[str, Job] = {}
        self.closing: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """Called when the server of the service accepts nothing more."""

    # --- questions

    def submit(self, asked: Asked) -> Job:
        """Queue a question. Its answer is that of an equal question before, if this is still known.

        Raises:
            QuestionError: the question is empty or too long, or the method or model is not offered.
            LimitReached: the client may not ask now.
            QueueFull: too many questions wait.
        """
        check_text(asked.question)
        asked = replace(asked, model=self._model_of(asked.method, asked.model))
        job = Job(asked)
        key = self._cache_key(asked)
        if key is not None and (known_answer := self._cache.get(key)) is not None:
            job.finish({**known_answer, "asked": asked.question, "cached": True})
            return job
        self.limits.begin(asked.client)
        self.jobs[job.id] = job
        try:
            future = self.questions.submit(asked.client, lambda: shown_at(asked.place)(self._answer)(job, key))
        except BaseException:
            self._end(job, None)
            raise
        future.add_done_callback(lambda ended: self._cancelled(job) if ended.cancelled() else None)
        job.future = future
        return job

    def stop(self, id: str) -> bool:
        """Stop a question in progress; return whether there is one with this id."""
        job = self.jobs.get(id)
        if job is None:
            return False
        job.stop()
        if job.future is not None:
            job.future.cancel()  # only a question that still waits
        return True

    def stop_all(self) -> None:
        """Stop all questions, because the service ends."""
        for job in list(self.jobs.values()):
            job.stop(ENDS)
            if job.future is not None:
                job.future.cancel()

    def position(self, job: Job) -> int:
        """Return how many questions come before a job."""
        return 0 if job.future is None else self.questions.position(job.asked.client, job.future)

    def look_up(self, client: str, function: Callable[[], T], *, query: bool = False) -> Future[T]:
        """Call a function that only reads the graph, when it is the client's turn. Raises QueueFull.

        Args:
            query: whether it runs or explains a query of the client.
        """
        return (self.queries if query else self.lookups).submit(client, shown_at(PAGE)(function))

    def resources_for(self, name: str, model: str = "") -> Resources:
        """Return the resources of a method and a model, opened at their first use. Raises the errors of opening."""
        settings = self._settings_for(name, model)
        key = (name, settings.llm.model or "none")
        with self._lock:
            if key not in self._opened:
                # what `say` gets is for the person who started the service, not for the client who asks
                opened = Context().run(
                    partial(open_resources, self.graph, settings=settings, corpus=self.corpus, say=self._say)
                )
                self._require_prices(opened)
                self._opened[key] = opened
            return self._opened[key]

    def refresh(self) -> None:
        """Read the edits that another opening of the graph has published, such as that of an accepted edit."""
        refresh = getattr(self.graph.store, "refresh", None)
        if refresh is not None:
            refresh()

    def close(self) -> None:
        """Stop all questions, and close the graph and the models."""
        self.questions.close()
        self.lookups.close()
        self.queries.close()
        self.stop_all()
        with self._lock:
            for resources in self._opened.values():
                if resources is not self._base and resources.models is not None:
                    resources.models.close()
            self._base.close()

    # --- one question, in a thread of the queue

    def _answer(self, job: Job, key: tuple[Any, ...] | None) -> None:
        asked = job.asked
        usage = None
        try:
            resources = self.resources_for(asked.method, asked.model)
            trace = job.start(budget_of(resources.settings), self.limits)
            resolved = self._resolved(job, resources, trace)
            topics = [each.value for each in resolved.topics if isinstance(each.value, Entity)]
            answer = ask(
                Question(resolved.question, id=job.id),
                topics=topics or list(asked.topics),
                resources=resources,
                trace=trace,
            )
            answer = replace(answer, notes=(*resolved.notes, *answer.notes))
            usage = answer.usage
        except BudgetExhausted as error:  # before the question was asked
            answer = replace(_failed(job, error.reason), status="budget_exhausted")
        except KgqaError as error:
            answer = _failed(job, str(error))
        except Exception as error:  # noqa: BLE001  one question must not end the thread of the queue
            answer = _failed(job, f"internal error: {type(error).__name__}: {error}. This is a defect of kgqa.")
        found = self._object(job, answer)
        size = self.kept.put(job.id, found)
        if key is not None and answer.status in CACHED and size <= CACHED_BYTES and not job.stopped:
            self._cache.put(key, found)
        tokens = usage.prompt_tokens + usage.completion_tokens if usage else 0
        self.metrics.question(asked.method, answer.status, tokens, (usage.cost if usage else None) or 0.0)
        self._end(job, found)

    def _resolved(self, job: Job, resources: Resources, trace: Trace) -> Resolved:
        """Return the question with names in place of words that refer to the answers before it."""
        question, history = job.asked.question, job.asked.history
        if not history or job.asked.topics:
            return Resolved(question)
        turns = [turn_of_object(found) for id in history[-TURNS:] if (found := self.kept.get(id)) is not None]
        resolved = resolve_references(question, turns, resources, trace=trace)
        if resolved.by:
            words = f"understood as: {clean(resolved.question)}"
            detail = {"question": resolved.question, "by": resolved.by}
            job.add_step({"kind": "resolved", "at": round(trace.elapsed(), 4), "words": words, "detail": detail})
        return resolved

    def _cancelled(self, job: Job) -> None:
        """Answer a question that was stopped, or left over at the end of the service, before it began."""
        reason = f"{job.stopped or ENDS}."
        answer = Answer(Question(job.asked.question, id=job.id), "budget_exhausted", reason=reason)
        self._end(job, self._object(job, answer))

    def _object(self, job: Job, answer: Answer) -> dict[str, Any]:
        steps = [{name: step[name] for name in ("kind", "at", "words")} for step in job.steps if step["words"]]
        return {
            **answer_object(answer),
            "id": job.id,
            "asked": job.asked.question,
            "model": job.asked.model,
            "short_sparql": shorten_iris(answer.sparql, dict(answer.prefixes)),
            "short_evidence_sparql": shorten_iris(answer.evidence_sparql, dict(answer.prefixes)),
            "steps": steps,
        }

    def _end(self, job: Job, found: dict[str, Any] | None) -> None:
        self.jobs.pop(job.id, None)
        self.limits.end(job.asked.client)
        if found is not None:
            job.finish(found)

    def _cache_key(self, asked: Asked) -> tuple[Any, ...] | None:
        if not self.settings.serve.cache or asked.history:
            return None
        with suppress(StoreError):
            view = tuple(entity.iri for entity in self.graph.view)
            version = self.graph.store.version_of(view)
            return (
                " ".join(asked.question.split()),
                asked.topics,
                asked.method,
                asked.model,
                asked.place.name,
                version,
            )
        return None

    # --- methods and models

    def _require_prices(self, resources: Resources) -> None:
        """Raise SettingsError if the cost per client is limited and the price of a model is not known."""
        if self.settings.serve.client_cost is not None and resources.models is not None:
            resources.models.require_prices("serve.client_cost")

    def _model_of(self, name: str, model: str) -> str:
        """Return the model that a question to a method uses; "" for none.

        Raises:
            QuestionError: the method or the model is not offered.
        """
        if name not in self.methods:
            raise QuestionError(
                f"The method {name[:80]!r} is not offered here.", f"Choose one of: {', '.join(self.methods)}."
            )
        needed = self.methods[name]["model"]
        if model == NO_MODEL and not needed:
            return ""
        model = model or self.default_model or (next(iter(self.models)) if needed else "")
        if model and model not in self.models:
            known = f"Choose one of: {', '.join(self.models)}." if self.models else "No language model is offered."
            raise QuestionError(f"The model {model[:80]!r} is not offered here.", known)
        return model

    def _settings_for(self, name: str, model: str) -> Settings:
        chosen = self.models[model] if model else "none"
        return resolve({**self._given, "ask.method": name, "llm.model": chosen})

    def _open_base(self) -> Resources:
        """Open the graph, with the default method if that uses embeddings, which a corpus shares."""
        if method(self.default_method).embeddings or self.settings.rank.chooser == "llm":
            base = open_resources(settings=self.settings, say=self._say)
            self._opened[(self.default_method, self.settings.llm.model or "none")] = base
            return base
        return open_resources(settings=resolve({**self._given, "ask.method": "top"}), say=self._say)

    def about(self) -> dict[str, Any]:
        """Return what clients are told about the service."""
        graph = graph_id(self.graph)
        place = self.settings.graph.path
        return {
            "graph": {
                "name": "demo graph" if place is None else clean(str(place).rstrip("/").rpartition("/")[2]),
                "place": clean(graph.place),
                "triples": graph.triples,
                "schema": graph.schema,
            },
            "methods": list(self.methods.values()),
            "models": list(self.models),
            "method": self.default_method,
            "model": self.default_model,
            "corpus": self.corpus is not None,
            "examples": self._examples(),
            "query": example_query(self.graph),
            "writable": self.writable,
            "limits": {
                "body_kb": BODY_BYTES >> 10,
                "seconds": self.settings.budget.seconds,
                "query_rows": QUERY_ROWS,
                "per_minute": self.settings.serve.client_per_minute,
                "cost_per_day": self.settings.serve.client_cost,
                "tokens_per_day": self.settings.serve.client_tokens,
            },
            "version": __version__,
        }

    def store_answers(self) -> bool:
        """Return whether the graph answers a query within `HEALTH_SECONDS`."""
        with suppress(StoreError):
            return self.graph.store.ask("ASK {}", timeout=HEALTH_SECONDS, fresh=True)
        return False

    def metrics_text(self) -> str:
        """Return the metrics for Prometheus."""
        return self.metrics.text(
            {
                "kgqa_questions_running": ("Questions in progress.", self.questions.running),
                "kgqa_questions_waiting": ("Questions that wait.", self.questions.waiting),
            }
        )

    def _examples(self) -> list[str]:
        """Return example questions; those about a graph of the user are made once."""
        if self.settings.graph.path is None:
            return demo_examples()
        with self._lock:
            if self._made_examples is None:
                self._made_examples = graph_examples(self.graph)
            return self._made_examples


def _failed(job: Job, reason: str) -> Answer:
    return Answer(Question(job.asked.question, id=job.id), "failed", reason=reason, method=job.asked.method)
