"""Runs all checks of `kgqa doctor`. If the user interrupts the run, the results so far are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kgqa.doctor import model_checks, settings_checks
from kgqa.doctor.checks import LEFT_OUT, Check, Health, checked, skipped
from kgqa.doctor.graph_examination import OF_GRAPH, GraphExamination
from kgqa.methods.ask import cache_of
from kgqa.settings import Settings

NAMES = (*OF_GRAPH, *model_checks.NAMES, "embeddings", "cache", "settings")
"""The names of all checks, in order."""


class Examination:
    """Examines a graph, a language model and the settings. Nothing is written to the graph.

    Args:
        settings: the settings to check; they also specify the graph and the language model.
        model: whether to check the language model, which costs a few calls.
        watch: function called with the name of each check before the check is run.
        say: function called with a message before slow work that is done only once.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        model: bool = True,
        watch: Callable[[str], None] = lambda name: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._settings = settings
        self._asks_model = model
        self._watch = watch
        self._say = say
        self._checks: dict[str, Check] = {}
        self._started = time.monotonic()
        self._complete = False
        self._cache = cache_of(settings)
        self._graph = GraphExamination(settings, self._cache, make=self._make, skip=self._skip)

    def run(self) -> Health:
        """Make all checks.

        Raises:
            SettingsError: the graph's URL is invalid, or contains a password.
        """
        self._graph.run()
        self._watch("model")
        if self._asks_model or model_checks.no_model_reason(self._settings):
            for check in model_checks.check_model(self._settings):
                self._checks[check.name] = check
        else:
            self._skip(model_checks.NAMES, LEFT_OUT)
        self._make("embeddings", lambda: settings_checks.check_embeddings(self._settings, self._cache, say=self._say))
        self._make("cache", lambda: settings_checks.check_cache(self._cache))
        self._make("settings", self._check_settings, remedy="See kgqa config show.")
        self._complete = True
        return self.health()

    def health(self) -> Health:
        """Return the results so far; checks that were not run get the verdict `skipped`."""
        checks = tuple(self._checks.get(name) or skipped(name, "Stopped before this check.") for name in NAMES)
        return Health(checks, self._graph.id, time.monotonic() - self._started, self._complete)

    def _make(self, name: str, run: Callable[[], Check], remedy: str = "") -> Check:
        self._watch(name)
        self._checks[name] = checked(name, run, remedy=remedy)
        return self._checks[name]

    def _skip(self, names: Sequence[str], why: str) -> None:
        for name in names:
            self._checks.setdefault(name, skipped(name, why))

    def _check_settings(self) -> Check:
        has_encoder = self._checks["embeddings"].verdict == "ok"
        return settings_checks.check_settings(
            self._graph.settings, query_seconds=self._graph.query_seconds, encoder=has_encoder
        )
