"""`kgqa ask`: answers one question, or the question in each line of standard input."""

from __future__ import annotations

import difflib
import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kgqa.cli.options import (
    JSON,
    GroupedCommand,
    asking_options,
    check_usage,
    graph_options,
    note_printer,
    say,
    setting_option,
    settings_from,
    verbosity,
    verbosity_options,
)
from kgqa.model import Answer, Question
from kgqa.storage.answer_json import answer_object, json_text
from kgqa.text.words import clean, counted, safe_text
from kgqa.trace import Event
from kgqa.trace.trace import Trace

if TYPE_CHECKING:
    from kgqa.evaluation.datasets.questions import GoldQuestion
    from kgqa.methods.resources import Resources

EXIT_NOT_ANSWERED = 3
MAX_GOLD = 10
METRICS = ("hit@1", "f1", "em")
_JSON = re.compile(r"""[{\[]\s*(["'{}\[\]]|$|\w+\s*:)|[}\]],?$|"[^"]*"\s*:|.*"\s*\},?$""")
"""A line that looks like JSON: an object, a list, or a part of an object that stands on several lines."""
_ONE_LINE = 'Write each object on one line: {"question": "...", "topics": ["..."], "id": "..."}'


@dataclass(frozen=True)
class Asked:
    """A question from the command line or standard input."""

    text: str
    topics: tuple[str, ...] = ()
    id: str = ""
    images: tuple[str, ...] = ()
    error: str = ""
    """Why the input line is invalid; "" for a valid line."""


@click.command("ask", cls=GroupedCommand, heading="Question")
@click.argument("question", nargs=-1)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="ID|NAME",
    help="Topic entity: an id (m.0abc, Q42, an IRI) or a name; repeat for several.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="FILE",
    help="Image that the question is about (PNG, JPEG, WebP, GIF); repeat for several. For --method evograph.",
)
@click.option(
    "--dataset", metavar="[NAME:]FILE", help="Take the question from a data set (docs/datasets.md); needs --id."
)
@click.option(
    "--id", "ident", metavar="ID", help="Id of the question in --dataset. The gold answer and the scores are shown too."
)
@graph_options
@JSON
@click.option("--trace", "show_trace", is_flag=True, help="Print each event of the search when it happens.")
@click.option("--show-sparql", is_flag=True, help="Print only the SPARQL query.")
@click.option("--iris", is_flag=True, help="Print full IRIs.")
@asking_options
@setting_option("llm.concurrency")
@verbosity_options
def command(
    question: tuple[str, ...],
    topics: tuple[str, ...],
    images: tuple[str, ...],
    dataset: str | None,
    ident: str | None,
    graph_path: str | None,
    as_json: bool,
    show_trace: bool,
    show_sparql: bool,
    iris: bool,
    **options: Any,
) -> int:
    """Answer QUESTION from the graph, and show the evidence.

    Without QUESTION, or with "-", questions are read from standard input, one per line, and with --json each answer
    is printed on one line. A line can be a JSON object with "question" and optionally "topics" (a list of ids or names)
    and "id".

    \b
    Examples:
      kgqa ask "Who directed the film Parasite?"
      kgqa ask "where was she born?" --topic "Marie Curie"
      kgqa ask --graph mygraph/ --json < questions.txt > answers.jsonl
      kgqa ask "Who directed Parasite?" --show-sparql
      kgqa ask --dataset webqsp:WebQSP.test.json --id WebQTest-1424 --graph mygraph/

    \b
    Exit codes: 0 answered, 1 failed, 3 not answered. For several questions: 1 if any failed, else 3 if any was not
    answered, else 0.
    """
    from kgqa.methods.ask import open_resources
    from kgqa.methods.tournament.path_answers import with_all_names

    check_usage(
        (
            (dataset is None) != (ident is None) or (dataset and question),
            "Use --dataset and --id together, and without QUESTION.",
        ),
        (as_json and show_sparql, 'Use --json or --show-sparql: the JSON object has the query as "sparql".'),
        (images and dataset is None and (not question or question == ("-",)), "Use --image with QUESTION."),
    )
    gold = gold_question(dataset, ident) if dataset and ident is not None else None
    batch = gold is None and (not question or question == ("-",))
    if batch and sys.stdin.isatty():
        say("Enter one question per line; end with Ctrl-D.")
    if gold:
        one = Asked(gold.text, topics or gold.topics, gold.id, images)
    else:
        one = Asked(" ".join(question), topics, images=images)
    asked: Iterator[Asked] = _read_lines(topics) if batch else iter([one])
    worst = count = shown_notes = 0
    with open_resources(settings=settings_from(options, graph_path), say=say) as resources:
        if notice := resources.graph.store.notice():
            say(f"kgqa: {notice}")
        if batch:
            resources.open_names(required=False, note=note_printer())
        try:
            for each in asked:
                answer = _ask(each, resources, show_trace and not as_json)
                if as_json:
                    answer = with_all_names(resources.graph, answer)
                count += 1  # counted before printing, because Ctrl-C may follow immediately
                beside = gold_object(answer, gold) if gold and as_json else {}
                _show(answer, as_json, show_trace, show_sparql, iris, batch, first=count == 1, beside=beside)
                if gold and not as_json and not show_sparql:
                    print(gold_text(answer, gold))
                new = resources.models.notes[shown_notes:] if resources.models else ()
                for note in new:
                    say(f"kgqa: {clean(note)}")
                shown_notes += len(new)
                worst = max(worst, {"answered": 0, "failed": 9}.get(answer.status, EXIT_NOT_ANSWERED))
        except KeyboardInterrupt:
            if not batch:
                raise
            say(f"kgqa: Stopped after {counted(count, 'question')}; all answers found are printed above.")
            raise KeyboardInterrupt("reported") from None
    if count == 0:
        say('kgqa: No question given. Example: kgqa ask "What is the capital of Japan?"')
        return 2
    return 1 if worst == 9 else worst


def _ask(asked: Asked, resources: Resources, live: bool) -> Answer:
    from kgqa.cli.bars import StatusLine
    from kgqa.methods.ask import ask, budget_of

    if asked.error:
        return Answer(Question(asked.text, id=asked.id), "failed", reason=asked.error)
    with StatusLine(shown=not live) as status:
        trace = Trace(budget_of(resources.settings), listener=_print_event if live else status.listener)
        about = Question(asked.text, id=asked.id, images=asked.images)
        return ask(about, topics=asked.topics, resources=resources, trace=trace)


def _show(
    answer: Answer,
    as_json: bool,
    trace: bool,
    only_sparql: bool,
    iris: bool,
    batch: bool,
    first: bool,
    beside: dict[str, Any],
) -> None:
    from kgqa.graph.query.tokens import shorten_iris
    from kgqa.report.answer import answer_text
    from kgqa.report.path_text import signs_for

    if only_sparql:
        if answer.sparql:
            query = answer.sparql if iris else shorten_iris(answer.sparql, dict(answer.prefixes))
            print(safe_text(query), flush=True)
        else:
            more = " --json shows the query of its evidence." if answer.evidence_sparql else ""
            print(f"kgqa: {clean(answer.reason) or f'No query returns this answer.{more}'}", file=sys.stderr)
    elif as_json:
        print(json_text(answer_object(answer, trace=trace) | beside, indent=None if batch else 2), flush=True)
    else:
        if batch:
            print(("" if first else "\n") + f"Q: {clean(answer.question.text)[:300]}")
        text = answer_text(
            answer,
            iris=iris,
            notes=verbosity() >= 0,
            graph=verbosity() > 0,
            width=shutil.get_terminal_size((120, 0)).columns,
            signs=signs_for(sys.stdout.encoding),
        )
        print(text, flush=True)


def _print_event(event: Event) -> None:
    from kgqa.trace import ActingEvent, TextEvent

    # the words of a search leave out candidates and scores
    words = event.in_words() if isinstance(event, (ActingEvent, TextEvent)) else ""
    detail = words or "  ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in event.detail.items()
    )
    print(clean(f"[{event.at:7.3f} s] {event.kind}: {detail}"), file=sys.stderr, flush=True)


def _read_lines(topics: tuple[str, ...]) -> Iterator[Asked]:
    """Read questions from standard input. Invalid UTF-8 is replaced, empty lines are skipped."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin:
        if text := line.strip().lstrip("\ufeff"):
            yield _from_line(text, topics)


def _from_line(line: str, topics: tuple[str, ...]) -> Asked:
    """Parse a line of input: either the text of a question, or a JSON object with a question."""
    if not _JSON.match(line):
        return Asked(line, topics)
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Asked(line, error=f"This line looks like JSON but is not valid JSON: {error}. {_ONE_LINE}")
    if not isinstance(data, dict):
        return Asked(line, error=f"This line is JSON but not an object. {_ONE_LINE}")
    ident = str("" if data.get("id") is None else data["id"])
    given = data.get("topics") or []
    given = [given] if isinstance(given, str) else given
    if not isinstance(data.get("question"), str):
        return Asked("", id=ident, error='The JSON object needs a "question" that is a string.')
    if not isinstance(given, list) or not all(isinstance(topic, str) for topic in given):
        return Asked(data["question"], id=ident, error='"topics" must be a list of ids or names of entities.')
    return Asked(data["question"], tuple(given) or topics, ident)


def gold_question(source: str, ident: str) -> GoldQuestion:
    """Find the question with this id in a data set; raise UsageError if the data set has no such question."""
    from kgqa.evaluation.runs.plan import RunPlan, select_questions

    questions = {question.id: question for question in select_questions(RunPlan(source)).questions}
    if ident in questions:
        return questions[ident]
    near = difflib.get_close_matches(ident, list(questions)[:100_000], n=3) or list(questions)[:3]
    raise click.UsageError(
        f"{source} has no question with the id {ident!r}. Similar ids in it: {clean(', '.join(near))}"
    )


def gold_object(answer: Answer, question: GoldQuestion) -> dict[str, Any]:
    """Return the entries for gold answers and scores in the JSON object of an answer."""
    from kgqa.evaluation.metrics.scores import score_record

    gold = [[{"id": each.id or None, "name": each.name} for each in reading] for reading in question.readings]
    return {"gold": gold, "scores": score_record(answer_object(answer), question.readings)}


def gold_text(answer: Answer, question: GoldQuestion) -> str:
    """Format gold answers and scores as text."""
    found = gold_object(answer, question)
    lines = []
    for reading in found["gold"]:
        names = [clean(f"{e['name']} ({e['id']})" if e["id"] and e["name"] else e["name"] or e["id"]) for e in reading]
        more = f" and {len(names) - MAX_GOLD:,} more" if len(names) > MAX_GOLD else ""
        lines.append(f"  gold   {', '.join(names[:MAX_GOLD]) or 'no answer'}{more}")
    scores = ", ".join(f"{name} {100 * found['scores'][name]:.0f}" for name in METRICS if name in found["scores"])
    return "\n".join([*lines, f"  score  {scores or 'none (no gold answer)'}"])
