"""Measures how well the score that kgqa shows for an answer found without a language model agrees with rightness.

    calibration.py --records FILE [--set NAME ...] [--limit N]     # ask the questions (slow), keep features and rightness
    calibration.py --records FILE --fit [--write]                  # fit the coefficients, and check them

Each question is asked three times: with the gold topics, with linked topics, and with the gold topics while the
relations of the first answer are hidden ("hidden"), so that mostly no right answer is left. An answer counts by its
Hit@1, the share of right entities in it. The coefficients are fitted on the even lines of every set and checked on the
odd lines. Each set has the same weight; together, hidden questions have a quarter of the weight, as if one of four
questions had no answer in the graph. --check shows the coefficients that kgqa uses, and --fit --write puts fitted
coefficients into kgqa/rank/confidence.toml. `--basis words` asks without embeddings.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import chosen, loaded, settings_of
from accuracy_sets import SETS
from common import CHECKOUT, data_file, print_table
from off_topic import GRAPHS, QUESTIONS
from worlds import WORLDS, outcome

from kgqa.evaluation.datasets.questions import ANSWERABLE
from kgqa.evaluation.runs.asking import ask_question
from kgqa.methods.ask import ask, open_resources
from kgqa.methods.tournament.ranking import Ranking
from kgqa.model import WEAK, Candidate
from kgqa.rank.confidence import Basis, Calibration, calibration
from kgqa.storage.cache import Cache
from kgqa.trace import Rated as RatedEvent

FILE = CHECKOUT / "kgqa" / "rank" / "confidence.toml"
WAYS = ("linked", "gold", "hidden")
BASES: tuple[Basis, ...] = ("embeddings", "words")
FEATURES = ("score", "margin", "explained", "least", "agrees", "type", "joined", "inexact", "backward", "many")
UNUSED = ("wc_conj",)
"""Sets left out of the fit: all answers of this set join two topics and are right, so joins would seem certain."""
OPEN = ("worlds", "off_topic")
"""Sets of questions some or all of which have no answer in the graph."""
HIDDEN = 0.25
"""Share of the weight of questions whose relations are hidden."""
BINS = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.01)
MODEL = "all-minilm-l6-v2"


@dataclass(frozen=True)
class Rated:
    """An answer: its features, and the share of right entities in it."""

    set: str
    topics: str  # gold, linked, hidden
    basis: Basis
    id: str
    first_half: bool
    right: float
    features: dict[str, float]


def rated_answers(name: str, basis: Basis, limit: int | None, work: Path) -> Iterator[Rated]:
    """Ask the questions of a set; questions without an answer are left out."""
    which = SETS[name]
    options = {"support": list(ANSWERABLE), "half": "all", "limit": limit}
    given = ["ask.on_exhausted=best", "rank.embeddings=" + ("auto" if basis == "embeddings" else "off")]
    settings = settings_of(which.options | {"settings": [*which.options.get("settings", ()), *given]})
    with closing(open_resources(loaded(which.kg_files(), work), settings=settings)) as resources:
        for question in chosen(which.question_file(), options):
            steps: list[dict[str, str]] = []
            for topics in WAYS:
                hidden = {step["relation"] for step in steps} if topics == "hidden" else set()
                if topics == "hidden" and not hidden:
                    continue
                hidden |= {inverse for each in hidden if (inverse := resources.graph.tables.inverses.get(each))}
                with without_relations(hidden):
                    record = ask_question(question, resources, topics="linked" if topics == "linked" else "gold")
                rated = next((each for each in record.answer["trace"] if each["kind"] == "rated"), None)
                if rated is not None and record.status == "answered" and record.scores:
                    half = question.number % 2 == 0
                    yield Rated(name, topics, basis, question.id, half, record.scores["hit@1"], rated["features"])
                    steps = record.answer["paths"][0]["steps"]


def open_questions(name: str) -> Iterator[tuple[list[Path], list[dict[str, Any]]]]:
    """Yield the files of each graph of `worlds.py` or `off_topic.py`, and its questions; the latter have no answers."""
    if name == "worlds":
        for world in WORLDS:
            lines = data_file("worlds", f"{world}.jsonl").read_text(encoding="utf-8").splitlines()
            yield [data_file("worlds", f"{world}.ttl")], list(map(json.loads, lines))
    else:
        questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
        for graph, files in GRAPHS.items():
            yield files(), [each | {"answers": []} for each in questions if each["graph"] == graph]


def rated_openly(name: str, basis: Basis, limit: int | None, work: Path) -> Iterator[Rated]:
    """Ask questions, also those without an answer in the graph, with linked topics."""
    settings = settings_of({"settings": ["rank.embeddings=" + ("auto" if basis == "embeddings" else "off")]})
    for files, questions in open_questions(name):
        with closing(open_resources(loaded(files, work), settings=settings)) as resources:
            for number, question in enumerate(questions[:limit]):
                answer = ask(question["question"], resources=resources)
                rated = next((each for each in answer.trace if isinstance(each, RatedEvent)), None)
                if rated is not None and answer.answers:
                    right = float(outcome(answer, question["answers"]).startswith("right"))
                    yield Rated(name, "linked", basis, question["id"], number % 2 == 0, right, dict(rated.features))


@contextmanager
def without_relations(hidden: set[str]) -> Iterator[None]:
    """Hide relations from the ranking until the context ends."""
    whole = Ranking.prefilter

    def prefilter(self: Ranking, pool: Sequence[Candidate]) -> list[Candidate]:
        return whole(self, [c for c in pool if not any(step.relation in hidden for step in c.path.steps)])

    Ranking.prefilter = prefilter  # type: ignore[method-assign]
    try:
        yield
    finally:
        Ranking.prefilter = whole  # type: ignore[method-assign]


def fitted(answers: Sequence[Rated], *, ridge: float = 1.0) -> Calibration:
    """Fit a logistic regression by Newton's method; the weights of all sets are equal."""
    data = np.array([[1.0, *(each.features[name] for name in FEATURES)] for each in answers])
    right = np.array([each.right for each in answers])
    groups = [(each.set, each.topics == "hidden") for each in answers]
    sizes = Counter(groups)
    weight = np.array([(HIDDEN if group[1] else 1 - HIDDEN) / sizes[group] for group in groups])
    weight *= len(answers) / weight.sum()
    penalty = ridge * np.diag([0.0, *[1.0] * len(FEATURES)])
    found = np.zeros(len(FEATURES) + 1)
    for _ in range(50):
        share = 1 / (1 + np.exp(-data @ found))
        slope = data.T @ (weight * (share - right)) + penalty @ found
        found -= np.linalg.solve((data * (weight * share * (1 - share))[:, None]).T @ data + penalty, slope)
    return Calibration(float(found[0]), dict(zip(FEATURES, map(float, found[1:]))))


def print_tables(answers: Sequence[Rated], used: Calibration) -> None:
    """Print score against rightness, for all answers and for each set, and which answers are called weak."""
    scores = np.array([used.confidence(each.features) for each in answers])
    right = np.array([each.right for each in answers])
    rows: list[list[Any]] = []
    for low, high in pairwise(BINS):
        here = (scores >= low) & (scores < high)
        if here.any():
            rows.append([f"{low:.0%} to {min(high, 1):.0%}", *_line(scores[here], right[here])])
    print_table(["score", "n", "mean score", "right"], rows)
    print()
    rows = []
    for name in dict.fromkeys(each.set for each in answers):
        for topics in WAYS:
            here = np.array([each.set == name and each.topics == topics for each in answers])
            if here.any():
                rows.append([name, topics, *_line(scores[here], right[here]), *_weak(scores[here], right[here])])
    rows.append(["all", "", *_line(scores, right), *_weak(scores, right)])
    print_table(["set", "topics", "n", "mean score", "right", "weak of right %", "weak of wrong %"], rows)


def _line(scores: np.ndarray, right: np.ndarray) -> list[Any]:
    return [str(len(scores)), 100 * float(scores.mean()), 100 * float(right.mean())]


def _weak(scores: np.ndarray, right: np.ndarray) -> list[float]:
    weak = scores < WEAK
    return [100 * float(weak[part].mean()) if part.any() else float("nan") for part in (right >= 0.5, right < 0.5)]


def written(found: dict[Basis, Calibration]) -> str:
    """Return the text of confidence.toml."""
    lines = ["# Written by benchmarks/calibration.py --fit --write.", f'model = "{MODEL}"']
    for basis, used in found.items():
        lines += ["", f"[{basis}]", f"intercept = {used.intercept:.3f}", "", f"[{basis}.weights]"]
        lines += [f"{name} = {weight:.3f}" for name, weight in used.weights.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, required=True, help="JSON lines; written without --fit and --check")
    parser.add_argument("--set", action="append", choices=(*SETS, *OPEN), help="repeat for several [all]")
    parser.add_argument("--basis", choices=BASES, default="embeddings")
    parser.add_argument("--limit", type=int, metavar="N", help="maximum number of questions per set")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where graphs are loaded [the user's cache]")
    parser.add_argument("--check", action="store_true", help="print the tables of the coefficients that kgqa uses")
    parser.add_argument("--fit", action="store_true", help="fit new coefficients to the records, and print the tables")
    parser.add_argument("--write", action="store_true", help="with --fit: put them into confidence.toml")
    options = parser.parse_args()
    if not (options.fit or options.check):
        with options.records.open("a", encoding="utf-8") as out:
            work = options.work or _work()
            for name in options.set or (*SETS, *OPEN):
                for each in (rated_openly if name in OPEN else rated_answers)(name, options.basis, options.limit, work):
                    print(json.dumps(asdict(each)), file=out, flush=True)
                print(f"{name}: done", file=sys.stderr)
        return
    answers = [Rated(**json.loads(line)) for line in options.records.read_text(encoding="utf-8").splitlines()]
    found = {}
    for basis in BASES:
        here = [each for each in answers if each.basis == basis]
        first, second = ([each for each in here if each.first_half == half] for half in (True, False))
        if first and second:
            found[basis] = (
                fitted([each for each in first if each.set not in UNUSED]) if options.fit else calibration(basis)
            )
            print(f"\n{basis}: {found[basis]}\n\nOn the odd lines, which were not used for the fit:\n")
            print_tables(second, found[basis])
    if options.write:
        # a basis without records keeps its coefficients
        FILE.write_text(written({basis: found.get(basis) or calibration(basis) for basis in BASES}), encoding="utf-8")


def _work() -> Path:
    return Cache.default().folder / "benchmarks"


if __name__ == "__main__":
    main()
