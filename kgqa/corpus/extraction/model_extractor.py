"""The extractor that asks a language model about each chunk."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import islice
from queue import SimpleQueue
from typing import Any

from kgqa.corpus.extraction.acceptance import Acceptor, Origin
from kgqa.corpus.extraction.estimates import PromptSizes
from kgqa.corpus.extraction.modes import MODES, STAGE, read_image
from kgqa.corpus.extraction.replies import REPLIES, RawReply
from kgqa.corpus.extraction.requests import ExtractionRequest, has_text
from kgqa.corpus.extraction.results import ChunkResult, failed
from kgqa.corpus.extraction.spending import Spending, Spent
from kgqa.corpus.items import Addition, digest
from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.asking import ask_readings
from kgqa.llm.client import TypedPrompt
from kgqa.llm.models import Models, QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.net.threads import ThreadPool
from kgqa.settings.values import Settings
from kgqa.text.hints import Option
from kgqa.text.words import clean
from kgqa.trace.trace import BudgetExhausted

VERSION = "1"
"""Changes when replies are read or checked in another way, so that chunks are read again."""
MAX_OUTAGES = 20
"""Number of chunks in a row for which the model was unavailable, after which no more are sent."""
_MILLION = 1_000_000


class NoFacts(Exception):
    """A chunk cannot be read; the message says why."""


class ModelExtractor:
    """Asks a language model for the facts of each chunk, several chunks at the same time.

    Args:
        models: The language models, opened with the stage "extract".
        prompts: The prompt files.
        settings: The settings; `corpus.extract` names what is asked for ("auto" means triples).
        max_cost: The most that may be spent, in USD; None for `budget.cost`.

    Attributes:
        name, key, needs_model: See `Extractor`.
    """

    needs_model = True

    def __init__(self, models: Models, prompts: Prompts, settings: Settings, *, max_cost: float | None = None) -> None:
        mode = settings.corpus.extract
        self._mode_name = "triples" if mode == "auto" else mode
        if self._mode_name not in MODES:
            raise SettingsError(f"{mode} needs no language model.", f"Set corpus.extract to {', '.join(MODES)}.")
        if STAGE not in models.by_stage:
            raise SettingsError("The language models were opened without the stages of a corpus.")
        self._mode = MODES[self._mode_name]
        self._models = models
        self._prompts = prompts
        self._limit = settings.corpus.limit
        self._images = settings.corpus.images == "on"
        self._reask = settings.llm.reask
        self._concurrency = settings.llm.concurrency
        max_cost = settings.budget.cost if max_cost is None else max_cost
        if max_cost is not None:
            models.require_prices(Option("max-cost"))
        self._spending = Spending(max_cost)
        self._sizes = PromptSizes(self._mode_name, prompts, self._limit)
        model = models.by_stage[STAGE].name
        self._price = models.prices.get(model)
        self.name = f"{self._mode_name} by {model}"
        hashes = {name: _prompt_hash(prompts, name) for name in (*self._mode.prompts, self._mode.image)}
        self._origin = Origin(model, digest(*(hashes[name] for name in self._mode.prompts)))
        self._image_origin = Origin(model, hashes[self._mode.image])
        sampling = asdict(models.sampling[STAGE])
        parts = (VERSION, self._mode_name, model, *hashes.values(), str(self._limit), str(self._images))
        self.key = digest("model", *parts, repr(sorted(sampling.items())))

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        return self._spending.spent

    def extract(self, requests: Iterable[ExtractionRequest]) -> Iterator[ChunkResult]:
        """Yield the result of each chunk as soon as it is known.

        When the budget is spent or the model is unavailable, the results of all other chunks are "failed".

        Raises:
            ModelUnavailable: The model was available for none of the first chunks.
        """
        waiting = iter(requests)
        window = 2 * self._concurrency
        finished: SimpleQueue[tuple[ExtractionRequest, ChunkResult | BaseException]] = SimpleQueue()
        outage = _Outage()
        workers = ThreadPool(self._concurrency, name="kgqa-extract")
        try:
            running = 0
            while True:
                for request in islice(waiting, window - running):
                    workers.submit(self._work, request, outage, finished)
                    running += 1
                if not running:
                    return
                request, result = finished.get()
                running -= 1
                if isinstance(result, BaseException):
                    raise result
                yield result
        finally:
            workers.close()

    def _work(self, request: ExtractionRequest, outage: _Outage, finished: SimpleQueue[Any]) -> None:
        try:
            finished.put((request, self._result(request, outage)))
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits for the result
            finished.put((request, error))

    def _result(self, request: ExtractionRequest, outage: _Outage) -> ChunkResult:
        chunk = request.chunk.chunk
        if outage.reason:
            return failed(chunk, outage.reason)
        try:
            with self._spending.chunk(self._expected_cost(request)) as trace:
                result = self._read(request, self._models.for_question(trace))
        except BudgetExhausted as error:
            return failed(chunk, error.reason)
        except ModelUnavailable as error:
            outage.failure(error)
            return failed(chunk, clean(error.message))
        outage.success()
        return result

    def _read(self, request: ExtractionRequest, models: QuestionModels) -> ChunkResult:
        """Read the text and the figures of a chunk; if one of them cannot be read, what the others say is kept."""
        rejected: list[str] = []

        def ask(prompt: TypedPrompt[RawReply]) -> RawReply:
            (reading,) = ask_readings(models, self._prompts, [prompt], reask=self._reask, cut_off=True)
            if reading.value is None:
                raise NoFacts(clean(reading.problem)[:300])
            if reading.problem:
                rejected.append(clean(reading.problem)[:300])
            return reading.value

        additions: dict[Addition, None] = {}
        reasons: list[str] = []
        figures = request.images if self._images else ()
        if has_text(request.chunk.text, figures):
            acceptor = Acceptor(request, self._origin, self._limit)
            with _noting(reasons):
                self._mode.read(request, acceptor, self._prompts, self._limit, ask)
            additions |= dict.fromkeys(acceptor.additions)
            rejected += acceptor.rejected
        elif request.images and not figures:
            rejected.append("the image was not sent to the model, because corpus.images is off")
        for number, figure in enumerate(figures, start=1):
            with _noting(reasons, f"figure {number}: "):
                seen = read_image(request, figure, self._image_origin, self._prompts, self._limit, ask, self._mode)
                additions |= dict.fromkeys(seen.additions)
                rejected += seen.rejected
        result = ChunkResult(request.chunk.chunk, tuple(additions), rejected=tuple(rejected))
        return replace(result, status="failed", reason="; ".join(reasons)) if reasons else result

    def _expected_cost(self, request: ExtractionRequest) -> float:
        if self._price is None:
            return 0.0
        sizes, images = self._sizes, len(request.images) if self._images else 0
        (tokens,) = sizes.count([request.chunk.text])
        prompt = sizes.prompt_tokens(tokens) + images * (sizes.image_prompt + tokens)
        reply = sizes.completion_tokens(len(request.chunk.text)) + images * sizes.image_reply
        return (prompt * self._price[0] + reply * self._price[1]) / _MILLION


@contextmanager
def _noting(reasons: list[str], what: str = "") -> Iterator[None]:
    """Add the reason why something could not be read to a list, and go on."""
    try:
        yield
    except (NoFacts, ValueError) as error:
        reasons.append(f"{what}{error}")


class _Outage:
    """Notices when a model stays unavailable. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._row = 0
        self._worked = False
        self.reason = ""

    def success(self) -> None:
        with self._lock:
            self._row, self._worked = 0, True

    def failure(self, error: ModelUnavailable) -> None:
        """Count a failure.

        Raises:
            ModelUnavailable: The model has never worked, and failed several times.
        """
        with self._lock:
            self._row += 1
            if self._row < MAX_OUTAGES:
                return
            if not self._worked:
                raise error
            self.reason = clean(error.message)


def _prompt_hash(prompts: Prompts, name: str) -> str:
    return digest(prompts.get(name).source, repr(REPLIES[name].schema))
