"""Rewires a graph so that its facts contradict the world, and asks its gold queries anew.

What stays: the schema, types, names, the degree of every node under every relation, inverse pairs, mediators with all
they say but one side. The thesis calls for such a graph to tell reading from remembering (Tournament on Path, section
6.2.2).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgqa.cache import Cache
from kgqa.errors import KgqaError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.fictional.facts import Facts, FictionError, Progress, read_facts, write_facts
from kgqa.evaluation.fictional.golds import Asked, asked_of, fictional_row, keys_of, run, true_keys, true_names_among
from kgqa.evaluation.fictional.mending import Mender
from kgqa.evaluation.fictional.patterns import Pattern, pattern_of
from kgqa.evaluation.fictional.rewiring import Kinds, Rewiring
from kgqa.evaluation.fictional.units import take_apart
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph, make_folder
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.graph.query.templates import render_term
from kgqa.schema import BUNDLED

FACTS, QUESTIONS, LEFT_OUT, MANIFEST = "facts.nt.gz", "questions.jsonl", "left_out.jsonl", "fictional.json"

WEIGHTS = {"path": 12, "conjunction": 1}
"""What a question counts for where not all can be had: who plays for Spain and for Barcelona has an answer only if
Barcelona stays among the clubs of players from Spain."""


@dataclass(frozen=True)
class Fiction:
    """What became of a graph and its questions.

    `triples` of the graph; `facts` of them, which are neither schema, types nor names nor what stays with a mediator;
    `rewired` of these, which are not what they were; `shapes`: for paths and conjunctions
    how many questions the true graph can answer (`asked`) and how many of these have answers in the new one, none of
    them true or called as a true one is (`kept`); `left_out`: how many questions are not in the new file, by reason; `fingerprint`: of the new
    graph.
    """

    seed: int
    triples: int
    facts: int
    rewired: int
    questions: int
    shapes: dict[str, dict[str, int]]
    left_out: dict[str, int]
    fingerprint: str


def fictionalise(
    graph: KnowledgeGraph,
    questions: Sequence[GoldQuestion],
    out: Path,
    *,
    seed: int = 0,
    cache: Cache | None = None,
    progress: Progress = lambda *_: None,
) -> Fiction:
    """Rewire a graph into the folder `out`, which is a graph's folder with `facts.nt.gz`, `questions.jsonl`,
    `left_out.jsonl` and `fictional.json` in it besides. The same graph, questions and seed give the same facts
    anywhere. A folder that is cut short leaves nothing behind.

    Args:
        graph: in memory while this runs: about half a gigabyte for a million triples.
        progress: told of the stages.

    Raises:
        FictionError: `out` is there already, or the graph is empty or too large. StoreError: a graph fails.
    """
    out = Path(out)
    check_free(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    asked = asked_of(questions, graph, progress)
    facts = read_facts(graph, progress)
    world = rewire(facts, graph, asked, seed=seed, progress=progress)
    rewired = world.changed()
    # in the same folder as the result, so that moving it is one step
    making = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        write_facts(world.units.lines(), making / FACTS)
        progress("loading", 0, 0)
        _load(graph, making / FACTS, making / "graph")
        with open_graph(making / "graph", cache=cache) as fiction:
            shapes, reasons = _ask_anew(asked, graph, fiction, making, progress)
            found = Fiction(
                seed=seed,
                triples=facts.triples,
                facts=world.units.movable,
                rewired=rewired,
                questions=len(asked),
                shapes=shapes,
                left_out=reasons,
                fingerprint=fiction.store.fingerprint,
            )
        (making / MANIFEST).write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
        _settle(making, out)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return found


def check_free(out: Path) -> None:
    """Raises FictionError where something is in the way."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FictionError(f"{out} is there already: give another folder with --out, or remove it first.")


def rewire(
    facts: Facts,
    graph: KnowledgeGraph,
    asked: Sequence[Asked] = (),
    *,
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> Rewiring:
    """Rewire facts: at random, then mended for the questions that the true graph can answer."""
    patterns: list[tuple[Pattern, frozenset[int], int]] = []
    for each in asked:
        pattern = pattern_of(each.sparql, facts) if each.true else None
        if pattern is not None:
            numbers = {facts.number(render_term(value)) for value in each.true}
            for key in true_keys(each, graph):
                numbers.add(facts.number(f"<{key[1]}>") if key[0] == "id" else None)
            patterns.append((pattern, frozenset(n for n in numbers if n is not None), WEIGHTS[each.shape]))
    watched = list(dict.fromkeys(relation for pattern, *_ in patterns for relation in pattern.relations))
    units = take_apart(facts, graph, prefer=_exits(patterns))
    world = Rewiring(units, Kinds(facts, graph.schema, watched), seed, watched)
    world.shuffle(progress)
    Mender(world, patterns).run(progress)
    return world


def _exits(patterns: Sequence[tuple[Pattern, frozenset[int], int]]) -> dict[int, float]:
    """How much questions want mediators moved by a relation: they ask for what it leads to, or begin there; they do not
    only test it.
    """
    found: Counter[int] = Counter()
    for pattern, *_ in patterns:
        for subject, relation, object_ in pattern.edges:
            if pattern.answer in (subject, object_):
                found[relation] += 10
            elif subject >= 0 or object_ >= 0:
                found[relation] += 3
    return {relation: float(count) for relation, count in found.items()}


def _load(graph: KnowledgeGraph, facts: Path, folder: Path) -> None:
    """Load the rewired facts as a graph with the schema and settings of the true one."""
    name = graph.schema.name
    if name not in BUNDLED:
        name = f"schema-{graph.schema.digest}.toml"
        (make_folder(folder).path / name).write_text(graph.schema.source, encoding="utf-8")
    load_graph(folder, [facts], schema=name, settings={**graph.settings, "walks": graph.walks})


def _ask_anew(
    asked: Sequence[Asked], graph: KnowledgeGraph, fiction: KnowledgeGraph, folder: Path, progress: Progress
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    shapes: dict[str, Counter[str]] = {"path": Counter(asked=0, kept=0), "conjunction": Counter(asked=0, kept=0)}
    reasons: Counter[str] = Counter()
    with (
        open(folder / QUESTIONS, "w", encoding="utf-8") as kept,
        open(folder / LEFT_OUT, "w", encoding="utf-8") as left,
    ):
        for done, each in enumerate(asked):
            progress("asking the fictional graph", done, len(asked))
            shapes[each.shape]["asked"] += bool(each.true)
            reason, row = (each.problem, {}) if each.problem else _judge(each, graph, fiction)
            if reason:
                reasons[reason.split(":")[0]] += 1
                row = {"id": each.question.id, "question": each.question.text, "shape": each.shape, "reason": reason}
                left.write(json.dumps(row, ensure_ascii=False) + "\n")
            else:
                shapes[each.shape]["kept"] += 1
                kept.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {shape: dict(counts) for shape, counts in shapes.items()}, dict(reasons.most_common())


def _judge(each: Asked, graph: KnowledgeGraph, fiction: KnowledgeGraph) -> tuple[str, dict[str, Any]]:
    """Why a question is left out, else its line in the new file."""
    try:
        values = run(each.sparql, fiction)
    except KgqaError as error:
        return f"the gold query failed: {error}", {}
    if not values:
        return "no answer in the fictional graph", {}
    if still := keys_of(values) & true_keys(each, graph):
        return f"an answer is still true: {len(still)} of {len(values)}", {}
    row = fictional_row(each, values, fiction)
    if called := true_names_among(row, each.question):
        return f"an answer has the name of a true one: {len(called)} of {len(values)}", {}
    return "", row


def _settle(making: Path, out: Path) -> None:
    """Put the files beside the graph's own, and everything where it belongs, in one step."""
    folder = making / "graph"
    for name in (FACTS, QUESTIONS, LEFT_OUT, MANIFEST):
        (making / name).rename(folder / name)
    place = GraphFolder(folder)
    files = tuple({**file, "path": str(out.resolve() / FACTS)} for file in place.meta().files)
    place.update_meta(files=files)
    if out.exists():
        out.rmdir()
    folder.rename(out)
