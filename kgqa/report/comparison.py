"""Compares runs in tables: one row per metric with its 95% interval, one column per run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.evaluation.analysis.aggregate import summary_of
from kgqa.evaluation.analysis.comparison import compare_runs, scores_by_question
from kgqa.evaluation.metrics.measures import mean
from kgqa.evaluation.metrics.retrieval import CUTS
from kgqa.evaluation.runs.run_files import METRICS, PREDICTIONS, Run
from kgqa.report.lenient_json import count_of, number_of, object_of, text_of
from kgqa.report.titles import model_names, run_titles
from kgqa.text.display import html_of
from kgqa.text.words import clean

LABELS = {
    "hit@1": "Hit@1",
    "hit@any": "Hit@any",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "em": "EM of sets",
    "mrr": "MRR",
    "tog_em": "ToG's EM",
    "tog_em_suspect": "ToG's EM, suspect matches",
    "tog_em_sound": "ToG's EM without these",
    "substring_em": "Substring EM",
    "sub_em": "SubEM",
    "sub_em_raw": "SubEM of characters",
    "token_em": "Token EM",
    "token_precision": "Token precision",
    "token_recall": "Token recall",
    "token_f1": "Token F1",
    "rouge_l": "Rouge-L",
    "rouge_l_recall": "Rouge-L recall",
    "queries that give exactly the answer": "queries that return exactly the answers",
    "the same, with chosen entities": "queries restricted to chosen entities",
    "queries that give more": "queries that return further results",
    "model calls a question": "model calls per question",
    "tokens a question": "tokens per question",
    "USD a question": "USD per question",
    "USD in all": "USD in total",
    "SPARQL queries a question": "SPARQL queries per question",
    "seconds a question (mean)": "seconds per question (mean)",
    "seconds a question (p50)": "seconds per question (p50)",
    "seconds a question (p95)": "seconds per question (p95)",
    "On the questions that all have": "On the questions of all runs",
}
"""Labels for people, by the name in JSON and CSV. These names must not change, because scripts rely on them."""
MAIN = "hit@1"
"""The metric that represents a run's accuracy in plots and groups."""
COMPARED = ("hit@1", "f1", "em")
COMPARED_TEXTS = ("token_em", "token_f1", "substring_em")
"""Further metrics in which runs are compared if one of them has answers that quote a text."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its 95% interval (None if unknown) and the number of questions `n` that it is computed from.

    `share`: the number is between 0 and 1 and is shown in percent. `p`: for a difference (between -1 and 1), the
    two-sided p-value of the hypothesis that there is no difference; otherwise None.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    share: bool = True
    p: float | None = None


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric with one figure per run, None for a run without it. `name` is for scripts, `label` for people."""

    name: str
    label: str
    figures: tuple[Figure | None, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The tables of a comparison.

    `columns`: labels of the runs. `facts`: properties of each run (data set, topics, graph). `rows`: the metrics.
    `groups`: further tables (Hit@1 by type and by hop, differences) by name; `LABELS` gives names for people.
    """

    columns: tuple[str, ...]
    facts: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[MetricRow, ...]
    groups: tuple[tuple[str, tuple[MetricRow, ...]], ...] = ()

    def row(self, name: str) -> MetricRow | None:
        """Return the row of a metric, or None if the comparison has no such row."""
        return next((row for row in self.rows if row.name == name), None)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the tables."""
        return html_of(self)


IN_ORDER = "in order, on one graph that they change"
"""How the questions of a run were asked if each depends on those before it."""


def compare(runs: Sequence[Run]) -> Comparison:
    """Compare runs by their metrics.json. If that file is missing or outdated, the metrics are computed.

    Raises:
        RunError: a run cannot be read.
    """
    metrics = [metrics_of(run) for run in runs]
    grouped = [groups_of(each) for each in metrics]
    labels = run_titles(runs)
    groups = []
    for title in dict.fromkeys(title for each in grouped for title in each):
        rows = _rows([each.get(title, {}) for each in grouped], label=clean)
        if len(rows) > 1:
            groups.append((f"Hit@1 by {title}", rows))
    if len(runs) > 1:
        quoted = any(count_of(object_of(each.get("quotes")).get("count")) for each in metrics)
        names = (*COMPARED, *(COMPARED_TEXTS if quoted else ()))
        scores = [_compared(run, names) for run in runs]
        shared = set(scores[0]).intersection(*scores[1:])
        if shared and any(len(each) > len(shared) for each in scores):
            # a fictional graph has fewer questions, so scores are comparable only on shared questions
            groups.append(("On the questions that all have", _on_shared(scores, shared)))
        groups.append((f"Difference from {labels[0]}", _differences(scores, [0] * len(runs))))
        if quoted and (wins := _wins(scores)):
            groups.append((f"Questions won and lost against {labels[0]}", wins))
        if (twins := _twins(runs)) != [0] * len(runs):
            groups.append(("Difference from the same method on another graph: memory", _differences(scores, twins)))
    return Comparison(
        columns=labels,
        facts=_facts(runs, metrics),
        rows=_rows([figures_of(each) for each in metrics], label=label_of),
        groups=tuple((title, rows) for title, rows in groups if rows),
    )


def metrics_of(run: Run) -> dict[str, Any]:
    """Read metrics.json, or compute the metrics if it is missing or older than the predictions.

    Raises:
        RunError: a run cannot be read.
    """
    try:
        fresh = (run.folder / METRICS).stat().st_mtime >= (run.folder / PREDICTIONS).stat().st_mtime
    except OSError:
        fresh = False
    if fresh and (found := run.metrics()):
        return found
    return summary_of(run.records())


def label_of(name: str) -> str:
    """Return the label of a metric."""
    return LABELS.get(name) or clean(name).replace("_", " ")


def _rows(columns: Sequence[Mapping[str, Figure]], label: Any) -> tuple[MetricRow, ...]:
    names = dict.fromkeys(name for column in columns for name in column)
    return tuple(MetricRow(name, label(name), tuple(column.get(name) for column in columns)) for name in names)


def _facts(runs: Sequence[Run], metrics: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Collect the properties that must match before runs can be compared. Rows without any value are omitted."""
    rows = {
        "data set": [text_of(object_of(run.manifest.get("dataset")).get("source")) for run in runs],
        "topics": [_topics(run, each) for run, each in zip(runs, metrics)],
        "graph": [text_of(object_of(run.manifest.get("graph")).get("fingerprint")) for run in runs],
        "model": [model_names(run.manifest.get("models")) for run in runs],
        "seed": [text_of(run.manifest.get("seed")) for run in runs],
        "asked": [IN_ORDER if run.manifest.get("in_order") is True else "" for run in runs],
        "questions": [text_of(object_of(run.manifest.get("dataset")).get("questions")) for run in runs],
    }
    return tuple((name, tuple(map(clean, values))) for name, values in rows.items() if any(values))


def _topics(run: Run, metrics: Mapping[str, Any]) -> str:
    """Say where the topic entities of a run's questions came from: the data set (gold), linking, or both."""
    counts = {name: count_of(number) or 0 for name, number in object_of(metrics.get("topics")).items()}
    total = sum(counts.values())
    used = {name: number for name in ("gold", "linked", "none") if (number := counts.get(name, 0))}
    if not used or not run.manifest.get("topics"):
        return text_of(run.manifest.get("topics"))
    if len(used) == 1:
        return next(iter(used))
    return ", ".join(f"{name} for {number:,}" for name, number in used.items()) + f" of {total:,} questions"


Scores = Mapping[str, Mapping[str, float]]


def _compared(run: Run, names: Sequence[str]) -> Scores:
    """Return the compared metrics of each question. The key of a question is the same in all runs."""
    return {
        key: kept
        for key, scores in scores_by_question(run.records()).items()
        if (kept := {name: scores[name] for name in names if name in scores})
    }


def _on_shared(scores: Sequence[Scores], shared: Collection[str]) -> tuple[MetricRow, ...]:
    """Compute the compared metrics over the questions that all runs contain, one row per metric."""
    columns: list[dict[str, Figure]] = []
    for each in scores:
        columns.append({})
        for name in (*COMPARED, *COMPARED_TEXTS):
            found = mean([each[key][name] for key in sorted(shared) if name in each[key]])
            if found.n:
                columns[-1][name] = Figure(found.value, number_of(found.low), number_of(found.high), found.n)
    return _rows(columns, label=label_of)


def _twins(runs: Sequence[Run]) -> list[int]:
    """Return for each run the index of the first run of the same method on a different graph, or else its own index.

    For a run on a fictional graph this is the run on the real graph.
    """
    graphs = [object_of(run.manifest.get("graph")).get("fingerprint") for run in runs]
    found = []
    for place, run in enumerate(runs):
        first = next(other for other, each in enumerate(runs) if each.name == run.name)
        found.append(first if graphs[first] != graphs[place] else place)
    return found


def _differences(scores: Sequence[Scores], bases: Sequence[int]) -> tuple[MetricRow, ...]:
    """Compute the difference of each run from its base run on the questions of both runs, one row per metric.

    Args:
        bases: index of the base run of each run; no difference is computed for a run that is its own base.
    """
    columns: list[dict[str, Figure]] = []
    for place, (each, base) in enumerate(zip(scores, bases, strict=True)):
        columns.append({})
        for compared in [] if base == place else compare_runs(scores[base], each):
            d = compared.difference
            p = compared.mcnemar.p if compared.mcnemar else number_of(d.p)
            columns[-1][compared.metric] = Figure(number_of(d.value), number_of(d.low), number_of(d.high), d.n, p=p)
    return _rows(columns, label=label_of)


def _wins(scores: Sequence[Scores]) -> tuple[MetricRow, ...]:
    """Count the questions on which each run has a higher, a lower and the same token F1 as the first run.

    Nothing is returned if the runs share no question with gold answers.
    """
    columns: list[dict[str, Figure]] = [{}]
    for each in scores[1:]:
        shared = [key for key in scores[0] if "token_f1" in scores[0][key] and "token_f1" in each.get(key, {})]
        signs = [each[key]["token_f1"] - scores[0][key]["token_f1"] for key in shared]
        if not shared:
            columns.append({})
            continue
        counts = {"won": sum(d > 0 for d in signs), "lost": sum(d < 0 for d in signs), "equal": signs.count(0)}
        columns.append({name: Figure(float(count), n=len(shared), share=False) for name, count in counts.items()})
    return _rows(columns, label=lambda name: f"{LABELS['token_f1']}: {name}")


# ---- reading metrics.json (kgqa.evaluation.analysis.aggregate.summary_of defines its shape) ----


def figures_of(metrics: Mapping[str, Any]) -> dict[str, Figure]:
    """Return the figures of a run: scores, grounding, costs."""
    found = {name: _score(value) for name, value in object_of(metrics.get("scores")).items()}
    failed, of = count_of(metrics.get("failed")), count_of(metrics.get("n"))
    if failed and (kept := object_of(metrics.get("scores_without_failed")).get(MAIN)):
        found[f"{LABELS[MAIN]} without failed questions"] = _score(kept)
    found["failed questions"] = Figure(failed / of if failed is not None and of else None, n=of)
    grounding, reproduced = object_of(metrics.get("grounding")), object_of(metrics.get("reproduced"))
    for part, names in ((grounding, _GROUNDS), (reproduced, _CLASSES)):
        for key, name in names.items():
            if key == "text" and not part.get(key):  # only few methods answer from texts
                continue
            found[name] = Figure(number_of(part.get(key)), n=count_of(part.get("n")))
    found |= _retrieval_figures(object_of(metrics.get("retrieval")))
    found |= _turn_figures(object_of(metrics.get("turns")))
    quotes = object_of(metrics.get("quotes"))
    if count_of(quotes.get("count")):
        found["answers with a verified quote"] = Figure(number_of(quotes.get("answers")), n=count_of(quotes.get("n")))
        found["quotes that are verified"] = Figure(number_of(quotes.get("verified")), n=count_of(quotes.get("count")))
    found["questions with a masked name shown"] = Figure(number_of(object_of(metrics.get("leaks")).get("share")), n=of)
    unparsed = object_of(metrics.get("unparsed"))
    if count_of(unparsed.get("calls")):
        found["replies that could not be parsed"] = Figure(number_of(unparsed.get("rate")), n=of)
    if lost := count_of(unparsed.get("questions")):
        found["questions without a usable reply of the model"] = Figure(lost / of if of else None, n=of)
    usage = object_of(metrics.get("usage"))
    asked = bool(number_of(object_of(usage.get("calls")).get("total")))
    for cost, name in _COSTS.items():
        spread = object_of(usage.get(cost))
        if cost == "cost" and not (asked and count_of(spread.get("n"))):
            continue
        for key in ("mean", "p50", "p95") if cost == "seconds" else ("mean",):
            row = f"{name} ({key})" if cost == "seconds" else name
            found[row] = Figure(number_of(spread.get(key)), n=count_of(spread.get("n")), share=False)
        if cost == "cost":
            found["USD in all"] = Figure(number_of(spread.get("total")), n=count_of(spread.get("n")), share=False)
    return {name: figure for name, figure in found.items() if figure.value is not None}


def _retrieval_figures(retrieval: Mapping[str, Any]) -> dict[str, Figure]:
    """Return the recall of supporting passages: in the first k pieces, in all, in those of the prompts, by step."""
    found = {}
    for name, label in _RETRIEVAL.items():
        for k in (*(f"@{k}" for k in CUTS), ""):
            if part := object_of(retrieval.get(f"{name}{k}")):
                found[f"{label}{k and f' {k}'}"] = _score(part)
    steps = retrieval.get("by_step")
    for step in steps[:MAX_SHOWN_STEPS] if isinstance(steps, list) and len(steps) > 1 else ():
        part = object_of(step)
        number, n = count_of(part.get("step")), count_of(part.get("n"))
        found[f"recall of passages after step {number}"] = Figure(number_of(part.get("recall")), n=n)
    return found


def _turn_figures(turns: Mapping[str, Any]) -> dict[str, Figure]:
    """Return what a language model did in turns: means per question, and numbers of edits."""
    n, edits = count_of(turns.get("n")), object_of(turns.get("edits"))
    found = {label: Figure(number_of(turns.get(name)), n=n, share=False) for name, label in _TURNS.items()}
    found["calls that failed"] = Figure(number_of(turns.get("failed_calls")), n=n)
    found["replies without an action"] = Figure(number_of(turns.get("unread")), n=count_of(turns.get("replies")))
    return found | {f"edits {name}": Figure(number_of(edits.get(name)), n=n, share=False) for name in _EDITS}


MAX_SHOWN_STEPS = 8
_TURNS = {
    "trials": "trials per question",
    "turns": "turns per question",
    "calls": "calls of functions and tools per question",
}
_EDITS = ("proposed", "accepted", "rejected")
_RETRIEVAL = {
    "recall": "recall of passages",
    "full_chain": "full chain of passages",
    "kept_recall": "recall of passages in prompts",
    "kept_full_chain": "full chain of passages in prompts",
}
_GROUNDS = {
    "graph": "answers grounded in the graph",
    "text": "answers quoted from a text",
    "model": "answers from the model's memory",
}
_CLASSES = {
    "exact": "queries that give exactly the answer",
    "restricted": "the same, with chosen entities",
    "superset": "queries that give more",
    "none": "answers without a query",
}
_COSTS = {
    "calls": "model calls a question",
    "tokens": "tokens a question",
    "cost": "USD a question",
    "queries": "SPARQL queries a question",
    "seconds": "seconds a question",
}


def groups_of(metrics: Mapping[str, Any]) -> dict[str, dict[str, Figure]]:
    """Return Hit@1 for parts of a run's questions, by property (`hops`, `kind`, ...) and value of the property."""
    found: dict[str, dict[str, Figure]] = {}
    for title, parts in object_of(metrics.get("groups")).items():
        rows = {text_of(name): _score(object_of(part).get(MAIN)) for name, part in object_of(parts).items()}
        rows = {name: figure for name, figure in rows.items() if figure.value is not None}
        if rows:
            found[_GROUPINGS.get(title, clean(title))] = rows
    return found


_GROUPINGS = {"dataset": "data set", "kind": "type", "topics": "number of topics"}


def _score(value: Any) -> Figure:
    part = object_of(value)
    value, low, high = (number_of(part.get(name)) for name in ("value", "low", "high"))
    return Figure(value, low, high, count_of(part.get("n")))
