"""Rewires a graph so that its facts contradict the real world, and runs the gold queries on the new graph.

Rewiring keeps the schema, types, names, inverse pairs, the number of edges that each node has in each relation, and all
edges of a mediator except one. The new graph shows whether a method reads the graph or answers from a language model's
memory (Tournament on Path, section 6.2.2).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from kgqa.errors import KgqaError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.datasets.registry import dataset_questions
from kgqa.evaluation.fictional.facts import Facts, FictionError, StageProgress, read_facts, write_facts
from kgqa.evaluation.fictional.gold_queries import (
    GoldQuery,
    fictional_row,
    gold_queries_of,
    keys_of,
    run_query,
    true_keys,
    true_names_among,
)
from kgqa.evaluation.fictional.invented_world import world_folder
from kgqa.evaluation.fictional.patterns import Pattern, pattern_of
from kgqa.evaluation.fictional.repair import Repairer
from kgqa.evaluation.fictional.rewiring import NodeKinds, Rewiring
from kgqa.evaluation.fictional.units import split_into_units
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.graph.query.text import render_term
from kgqa.methods.ask import cache_of
from kgqa.schema import BUNDLED
from kgqa.settings.table import WalkRule
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.text.hints import Option

FACTS, QUESTIONS, LEFT_OUT, MANIFEST = "facts.nt.gz", "questions.jsonl", "left_out.jsonl", "fictional.json"

WEIGHTS = {"path": 12, "conjunction": 1}
"""Weight of a question in the repair, by shape; conjunctions weigh less because they restrict the rewiring most."""


@dataclass(frozen=True)
class FictionReport:
    """The result of a rewiring.

    `triples`: number of triples in the graph; `facts`: number of triples that rewiring may change (schema, types, names
    and some edges of mediators are fixed); `rewired`: number of triples that were changed; `questions`: number of given
    questions; `shapes`: for paths and for conjunctions, the number of questions with answers in the true graph
    (`asked`) and the number of questions in the new file (`kept`); a kept question has answers in the new graph, none
    of which is true or has the name of a true answer; `left_out`: number of questions that are not in the new file, by
    reason; `fingerprint`: fingerprint of the new graph.
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
    progress: StageProgress = lambda *_: None,
) -> FictionReport:
    """Rewire a graph and write the new graph to the folder `out`, completely or not at all.

    `out` becomes a graph folder that also contains `facts.nt.gz`, `questions.jsonl`, `left_out.jsonl` and
    `fictional.json`. The same graph, questions and seed give the same facts on any machine.

    Args:
        graph: the true graph; reading it takes about half a gigabyte of memory per million triples.
        questions: questions with gold queries or gold paths.
        progress: called with the progress of each stage.

    Raises:
        FictionError: `out` exists, or the graph is empty or too large.
        StoreError: the true graph cannot be read, or the new graph cannot be written.
    """
    out = Path(out)
    check_free(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    asked = gold_queries_of(questions, graph, progress)
    facts = read_facts(graph, progress)
    world = rewire(facts, graph, asked, seed=seed, progress=progress)
    rewired = world.changed()
    # in the parent folder of `out`, because a folder can be moved atomically only on the same disk
    making = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        write_facts(world.units.lines(), making / FACTS)
        progress("loading", 0, 0)
        _load(graph, making / FACTS, making / "graph")
        with open_graph(making / "graph", cache=cache) as fiction:
            shapes, reasons = _ask_anew(asked, graph, fiction, making, progress)
            found = FictionReport(
                seed=seed,
                triples=facts.triples,
                facts=world.units.movable,
                rewired=rewired,
                questions=len(asked),
                shapes=shapes,
                left_out=reasons,
                fingerprint=fiction.store.fingerprint_of(),
            )
        (making / MANIFEST).write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
        _publish(making, out)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return found


def check_free(out: Path) -> None:
    """Raise FictionError if the folder for the new graph exists and is not empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FictionError(
            f"{out} already exists.", "Choose another folder with ", Option("out"), f", or remove {out} first."
        )


def rewire(
    facts: Facts,
    graph: KnowledgeGraph,
    asked: Sequence[GoldQuery] = (),
    *,
    seed: int = 0,
    progress: StageProgress = lambda *_: None,
) -> Rewiring:
    """Rewire facts at random, then repair the new graph for the questions that have answers in the true graph."""
    patterns: list[tuple[Pattern, frozenset[int], int]] = []
    for each in asked:
        pattern = pattern_of(each.sparql, facts) if each.true else None
        if pattern is not None:
            numbers = {facts.number(render_term(value)) for value in each.true}
            for key in true_keys(each, graph):
                numbers.add(facts.number(f"<{key[1]}>") if key[0] == "id" else None)
            patterns.append((pattern, frozenset(n for n in numbers if n is not None), WEIGHTS[each.shape]))
    watched = list(dict.fromkeys(relation for pattern, *_ in patterns for relation in pattern.relations))
    units = split_into_units(facts, graph, prefer=_exits(patterns))
    world = Rewiring(units, NodeKinds(facts, graph.schema, watched), seed, watched)
    world.shuffle(progress)
    Repairer(world, patterns).run(progress)
    return world


def _exits(patterns: Sequence[tuple[Pattern, frozenset[int], int]]) -> dict[int, float]:
    """Weigh relations for `split_into_units`: those at the answer variable most, then those at a topic."""
    found: Counter[int] = Counter()
    for pattern, *_ in patterns:
        for subject, relation, object_ in pattern.edges:
            if pattern.answer in (subject, object_):
                found[relation] += 10
            elif subject >= 0 or object_ >= 0:
                found[relation] += 3
    return {relation: float(count) for relation, count in found.items()}


def _load(graph: KnowledgeGraph, facts: Path, folder: Path) -> None:
    """Load the rewired facts as a graph with the schema and the settings of the true graph."""
    name = graph.schema.name
    if name not in BUNDLED:
        name = f"schema-{graph.schema.digest}.toml"
        GraphFolder(folder).create()
        (folder / name).write_text(graph.schema.source, encoding="utf-8")
    load_graph(folder, [facts], schema=name, settings={**graph.settings, "walks": graph.paths.walk_rule})


def _ask_anew(
    asked: Sequence[GoldQuery], graph: KnowledgeGraph, fiction: KnowledgeGraph, folder: Path, progress: StageProgress
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


def _judge(each: GoldQuery, graph: KnowledgeGraph, fiction: KnowledgeGraph) -> tuple[str, dict[str, Any]]:
    """Return why a question must be left out (empty if it is kept), and its line in the new question file."""
    try:
        values = run_query(each.sparql, fiction)
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


def _publish(making: Path, out: Path) -> None:
    """Move all files into the graph folder, then move the folder to `out` atomically."""
    folder = making / "graph"
    for name in (FACTS, QUESTIONS, LEFT_OUT, MANIFEST):
        (making / name).rename(folder / name)
    place = GraphFolder(folder)
    files = tuple(structs.replace(file, path=str(out.resolve() / FACTS)) for file in place.meta().files)
    place.update_meta(files=files)
    if out.exists():
        out.rmdir()
    folder.rename(out)


def make_fiction(
    out: str | Path,
    graph: str | Path | None = None,
    *,
    rdf_files: Sequence[str | Path] = (),
    invented: bool = False,
    questions: str | None = None,
    seed: int = 0,
    schema: str | None = None,
    walks: WalkRule | None = None,
    cache: Cache | None = None,
    progress: StageProgress = lambda *_: None,
) -> FictionReport:
    """Rewire a graph given by its folder or address, RDF files, or an invented world; see `fictionalise`.

    Args:
        out: folder for the new graph.
        graph: folder or address of a graph; None for the demo graph.
        rdf_files: RDF files to use instead of `graph`.
        invented: use an invented world and its questions instead of `graph` and `questions`.
        questions: source of questions as for `dataset_questions`. None means the questions of the demo graph or of the
            invented world; for any other graph, None means no questions.
        schema, walks: see `open_graph`.
        cache: cache for tables and invented worlds; None for the user's cache.

    Raises:
        FictionError, StoreError: see `fictionalise`.
        QuestionFileError, SettingsError: see `dataset_questions`.
    """
    out = Path(out)
    check_free(out)
    cache = cache or cache_of(resolve())
    with ExitStack() as stack:
        place = graph
        if invented:
            place = world_folder(cache)
            questions = str(place / QUESTIONS)
        elif rdf_files:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-"))) / "graph"
            load_graph(place, list(rdf_files))
        elif place is None and questions is None:
            questions = "demo"
        rows = dataset_questions(questions) if questions else []
        opened = stack.enter_context(open_graph(place, schema=schema, walks=walks, cache=cache))
        return fictionalise(opened, rows, out, seed=seed, cache=cache, progress=progress)
