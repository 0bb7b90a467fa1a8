"""Measures the accuracy of `kgqa ask` by data set and hops, with 95% intervals, and the causes of losses.

    accuracy.py --kg FILE... --questions FILE [--method ...] [--losses] [--json]
    accuracy.py --table | --ablation [--set NAME ...] [--column NAME ...]

The entities of an answer have no order, so Hit@1 is the share of right entities among them; a question without an
answer scores 0. Options that are not given have kgqa's defaults. Each graph is loaded once, into a folder below --work
whose name is a hash of the graph's files.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from accuracy_sets import ABLATION, COLUMNS, SETS, TABLE, QuestionSet
from common import machine, print_json, print_table
from oracle import RunningOracle, running_oracle

from kgqa.errors import KgqaError, SettingsError
from kgqa.evaluation.analysis.aggregate import summary_of
from kgqa.evaluation.analysis.losses import LOSSES
from kgqa.evaluation.datasets.questions import (
    ANSWERABLE,
    GoldQuestion,
    read_questions,
    spread,
)
from kgqa.evaluation.runs.asking import ask_question
from kgqa.evaluation.runs.records import Record
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.rdf.files import file_job
from kgqa.methods.ask import open_resources
from kgqa.settings.values import Settings, resolve
from kgqa.storage.cache import Cache

METRICS = ("hit@1", "precision", "recall", "f1", "em")
KEYS = {
    "method": "ask.method",
    "preset": "ask.preset",
    "prefilter": "rank.prefilter",
    "tournament": "rank.tournament",
    "depth": "explore.depth",
    "walks": "graph.walks",
    "combine": "explore.combine",
    "mediator_hop": "explore.mediator_hop",
}
"""Map from each option of this script to the kgqa setting that it sets."""


def settings_of(options: dict[str, Any]) -> Settings:
    """Return the settings given by the options; `chooser` is `offline`, `random`, `trained:FILE` or `oracle:P`.

    Raises:
        SettingsError: unknown setting or invalid value.
    """
    given = {KEYS[name]: value for name, value in options.items() if name in KEYS and value is not None}
    chooser, _, ranker = (options.get("chooser") or "").partition(":")
    if chooser == "oracle":
        given |= {"llm.model": options.get("server") or "http://127.0.0.1:1/v1#oracle", "rank.chooser": "auto"}
    elif chooser:
        given["rank.chooser"] = chooser
    if ranker and chooser == "trained":
        given["rank.ranker"] = str(Path(ranker).resolve())
    for text in options.get("settings") or ():
        key, _, value = text.partition("=")
        given[key] = next((kind for kind in (_as(int, value), _as(float, value)) if kind is not None), value)
    return resolve(variants=given)


def _as(kind: type, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        return None


def loaded(files: Sequence[Path], work: Path) -> Path:
    """Return the graph folder with the content of these files; load the files if the folder does not exist."""
    hashes = sorted(file_job(file).sha256 for file in files)
    folder = GraphFolder(work / "graphs" / hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:16])
    if not folder.exists():
        print(f"Loading {len(files)} files into {folder.path} (once) ...", file=sys.stderr)
        folder.path.mkdir(parents=True, exist_ok=True)
        load_graph(folder.path, files, restart=True)
    return folder.path


def measure(
    graph: Path, questions: Sequence[GoldQuestion], options: dict[str, Any], settings: Settings
) -> list[Record]:
    """Ask all questions of one graph; optionally print a line per question to stderr."""
    records = []
    with closing(open_resources(graph, settings=settings)) as resources:
        oracle = options.get("oracle")
        for question in oracle.told(questions, resources) if oracle else questions:
            record = ask_question(question, resources, topics=options["topics"], losses=options["losses"])
            if oracle:
                oracle.heard(record)
            records.append(record)
            if options["verbose"]:
                paths = record.answer.get("paths")
                path = paths[0]["words"] if paths else record.answer.get("reason")
                marks = f"{record.scores['hit@1']:.2f} {record.scores['f1']:.2f} {record.loss or record.status}"
                print(f"{record.id}\t{marks}\t{record.text}\t{path}", file=sys.stderr)
    return records


def chosen(file: Path | str, options: dict[str, Any]) -> list[GoldQuestion]:
    """Return the questions in one half of a file that the graph can answer, at most a given number."""
    questions = [q for q in read_questions(Path(file)) if q.answerable(options["support"])]
    half = options["half"]
    chosen = [q for q in questions if half == "all" or q.number % 2 == (half == "second")]
    found = spread(chosen, options["limit"])
    if not found:
        support = ", ".join(options["support"])
        sys.exit(f"{file} contains no question with answers in the graph (support: {support}).")
    return found


def report(records: Sequence[Record]) -> dict[str, Any]:
    """Return the mean scores over all questions, and for each data set and number of hops."""
    return {**summary(records), "by": {name: summary(part) for name, part in by_hops(records).items()}}


def by_hops(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Group records by data set and number of hops: `webqsp_test, 2 hops`, or the data set if hops are unknown."""
    found: dict[str, list[Record]] = {}
    for record in records:
        hops = "" if record.hops is None else f", {record.hops} hop{'s' if record.hops > 1 else ''}"
        found.setdefault(record.dataset + hops, []).append(record)
    return dict(sorted(found.items()))


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """Return the number of questions, mean scores with intervals, and counts."""
    found = summary_of(records)
    means = {name: found["scores"][name] for name in METRICS}
    return {
        "n": found["n"],
        **{name: mean["value"] for name, mean in means.items()},
        "intervals": {name: [mean["low"], mean["high"]] for name, mean in means.items()},
        "reproduced": found["reproduced"]["exact"],
        "statuses": found["statuses"],
        "seconds": found["usage"]["seconds"]["mean"],
        **({"losses": found["losses"]} if found["losses"] else {}),
    }


def percent(found: dict[str, Any], metric: str) -> str:
    """Return a mean with its interval in percent; the interval of one question is left out."""
    low, high = found["intervals"][metric]
    return f"{100 * found[metric]:.1f}" + ("" if low is None else f" ({100 * low:.0f}-{100 * high:.0f})")


def print_report(records: Sequence[Record]) -> None:
    """Print a line per data set and number of hops, then a line for all questions, the statuses and the losses."""
    groups = by_hops(records)
    rows = []
    for name, part in [*groups.items(), ("all", list(records))]:
        found = summary(part)
        marks = [percent(found, metric) for metric in ("hit@1", "f1", "em")]
        reproduced = None if found["reproduced"] is None else 100 * found["reproduced"]
        rows.append([name, str(found["n"]), *marks, reproduced, found["seconds"]])
    print_table(["questions", "n", "hit@1 (95%)", "f1", "em", "reproduced", "s each"], rows)
    whole = summary(records)
    print("\n" + ", ".join(f"{count} {status}" for status, count in whole["statuses"].items()))
    if losses := whole.get("losses"):
        print()
        names = [loss for loss in LOSSES if loss in losses]
        lines = [[loss, *(_losses(part, loss) for part in groups.values()), losses[loss]] for loss in names]
        print_table(["lost at", *groups, "all"], lines)


def _losses(records: Sequence[Record], loss: str) -> int:
    return sum(record.loss == loss for record in records)


def run_table(options: dict[str, Any], work: Path) -> list[dict[str, Any]]:
    """Run every set with the options of every column; a column with invalid settings is skipped with a message."""
    columns: dict[str, dict[str, Any]] = {}
    given = {name: value for name, value in options.items() if value is not None}
    for name in options["column"] or (ABLATION if options["ablation"] else TABLE):
        try:
            settings_of(given | COLUMNS[name])
            columns[name] = COLUMNS[name]
        except SettingsError as error:
            print(f"No column {name}: {error}", file=sys.stderr)
    if not columns:
        sys.exit("No column is left.")
    lines = []
    for name in options["set"] or SETS:
        which: QuestionSet = SETS[name]
        graph = loaded(which.kg_files(), work)
        questions = chosen(which.question_file(), options)
        line: dict[str, Any] = {"set": name, "n": len(questions), "columns": {}}
        for column, extra in columns.items():
            both = [*(given.get("settings") or ()), *extra.get("settings", ())]
            settings = settings_of(which.options | given | extra | {"settings": both})
            records = measure(graph, questions, options, settings)
            line["columns"][column] = report(records)
            print(f"{name}, {column}: hit@1 {percent(summary(records), 'hit@1')}", file=sys.stderr)
        lines.append(line)
    return lines


def print_lines(lines: Sequence[dict[str, Any]]) -> None:
    """Print a row per set and, for every column, Hit@1, EM and the share of reproduced answers."""
    columns = list(dict.fromkeys(column for line in lines for column in line["columns"]))
    head = ["set", "n"]
    for column in columns:
        head += [f"{column} hit@1", "+-", "em", "repr."]
    rows = []
    for line in lines:
        row: list[Any] = [line["set"], str(line["n"])]
        for column in columns:
            cell = line["columns"][column]
            low, high = cell["intervals"]["hit@1"]
            width = None if low is None else 50 * (high - low)
            reproduced = None if cell["reproduced"] is None else 100 * cell["reproduced"]
            row += [100 * cell["hit@1"], width, 100 * cell["em"], reproduced]
        rows.append(row)
    print_table(head, rows)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--kg", nargs="+", type=Path, metavar="FILE", help="RDF files of the graph")
    made.add_argument("--graph", type=Path, metavar="FOLDER", help="an existing graph folder, instead of --kg")
    made.add_argument("--questions", metavar="FILE|NAME", help="a file, or a data set of an installed package")
    made.add_argument("--table", action="store_true", help="several columns over several sets of the data folder")
    made.add_argument("--set", action="append", choices=SETS, help="with --table: a set; repeat for several [all]")
    made.add_argument("--column", action="append", choices=COLUMNS, help="with --table: a column [of the table]")
    made.add_argument("--ablation", action="store_true", help="as --table, each column without one rule")
    made.add_argument("--method", help="top-1, top-2, top, tog, io or cot")
    made.add_argument("--preset", help="as-published or economy")
    made.add_argument("--chooser", metavar="offline|random|trained:FILE|oracle:P")
    made.add_argument("--prefilter", help="bm25, sbert, rrf, random, none or trained")
    made.add_argument("--tournament")
    made.add_argument("--combine", choices=("intersect", "separate"))
    made.add_argument("--depth", type=int)
    made.add_argument("--walks")
    made.add_argument("--mediator-hop", choices=("edge", "free"))
    made.add_argument("--settings", action="append", metavar="KEY=VALUE", help="any other setting; repeat for several")
    made.add_argument("--topics", choices=("gold", "linked"), default="gold")
    made.add_argument(
        "--support", nargs="+", default=list(ANSWERABLE), help="accepted values of `support` or `path_check`"
    )
    made.add_argument("--half", choices=("first", "second", "all"), default="all", help="even or odd lines of the file")
    made.add_argument("--limit", type=int, metavar="N", help="maximum number of questions, spread over the file")
    made.add_argument("--losses", action="store_true", help="print where right answers were lost")
    made.add_argument("--work", type=Path, metavar="DIR", help="where graphs are loaded [the user's cache]")
    made.add_argument("--verbose", action="store_true", help="print a line per question to stderr")
    made.add_argument("--json", action="store_true")
    return made


def main() -> None:
    arguments = parser()
    options = vars(arguments.parse_args())
    if options["ablation"]:
        options["table"] = True
    if options["limit"] is not None and options["limit"] < 1:
        arguments.error("--limit is 1 at least")
    work = options["work"] or Cache.default().folder / "benchmarks"
    with oracle_of(options) as oracle:
        options |= {"oracle": oracle, "server": oracle.url if oracle else None}
        run(arguments, options, work)


@contextmanager
def oracle_of(options: dict[str, Any]) -> Iterator[RunningOracle | None]:
    """Start a server with an oracle if the chooser is an oracle."""
    chooser, _, chance = (options["chooser"] or "").partition(":")
    if chooser != "oracle":
        yield None
        return
    with running_oracle(float(chance or 1)) as oracle:
        yield oracle


def run(arguments: argparse.ArgumentParser, options: dict[str, Any], work: Path) -> None:
    try:
        if options["table"]:
            lines = run_table(options, work)
            print_json({"machine": machine(), "lines": lines}) if options["json"] else print_lines(lines)
            return
        if not options["questions"] or bool(options["kg"]) == bool(options["graph"]):
            arguments.error("give --questions and one of --kg and --graph, or --table")
        settings = settings_of(options)
        questions = chosen(options["questions"], options)
        graph = options["graph"] or loaded(options["kg"], work)
        records = measure(graph, questions, options, settings)
        oracle = options["oracle"]
        found = report(records) | (oracle.report() if oracle else {})
        print_json({"machine": machine(), **found}) if options["json"] else print_report(records)
        if oracle and not options["json"]:
            print("\n" + oracle.text(options["verbose"]))
    except KgqaError as error:
        sys.exit(f"accuracy.py: {error}")


if __name__ == "__main__":
    main()
