"""The commands of a conversation: a line that begins with a slash."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from kgqa.cli.chat.session import Session, in_chat
from kgqa.errors import KgqaError, QuestionError
from kgqa.graph.query.explain import explain
from kgqa.graph.query.tokens import shorten_iris
from kgqa.model import Named
from kgqa.plugins import plugin_names
from kgqa.search.topics import check_topics
from kgqa.text.words import clean, display_name, safe_text

ENDING = ("/quit", "/exit", "/q")
NOTHING = "Nothing was asked yet."


@dataclass(frozen=True)
class Command:
    """A command: its argument and what it does, for /help, and the function that returns what is shown."""

    argument: str
    about: str
    run: Callable[[Session, str], str]


def run_command(line: str, session: Session) -> str:
    """Run a line such as `/topic Tokyo`; return what is shown. Errors become text."""
    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        near = difflib.get_close_matches(name.lower(), COMMANDS, n=1)
        meant = f"Did you mean {near[0]}?" if near else "/help lists the commands."
        return f"There is no command {clean(name)[:40]}. {meant}"
    try:
        return command.run(session, argument.strip())
    except KgqaError as error:
        return in_chat(f"kgqa: {clean(str(error))}")
    except KeyboardInterrupt:
        return "Stopped."


def _trace(session: Session, argument: str) -> str:
    if session.last is None:
        return NOTHING
    events = [(each, each.in_words()) for each in session.last.trace]
    lines = [clean(f"[{event.at:7.3f} s] {event.kind}: {words}") for event, words in events if words]
    return "\n".join([*lines, "", session.answer_shown(session.last, short=False)])


def _sparql(session: Session, argument: str) -> str:
    if session.last is None:
        return NOTHING
    query = session.last.sparql or session.last.evidence_sparql
    return safe_text(shorten_iris(query, dict(session.last.prefixes))) if query else "No query returns the last answer."


def _explain(session: Session, argument: str) -> str:
    query = argument or (session.last.sparql if session.last else "")
    if not query:
        return NOTHING if session.last is None else "No query returns the last answer."
    return safe_text(explain(session.resources.graph, query))


def _topic(session: Session, argument: str) -> str:
    if not argument:
        session.topics = ()
        return "The topics of the next question are found in its text."
    notes: list[str] = []
    graph = session.resources.graph
    (entity,) = check_topics(graph, [argument], session.resources.settings, notes)
    session.topics = (entity.iri,)
    (named,) = graph.named([entity])
    return f"The next question is about {display_name(named)}."


def _topics(session: Session, argument: str) -> str:
    if not session.turns:
        return NOTHING
    lines = []
    for number, turn in enumerate(session.turns, 1):
        lines.append(f"{number}. {clean(turn.question)}")
        lines += [f"   {label}  {_listed(named)}" for label, named in _groups(turn.topics, turn.answers) if named]
    return "\n".join(lines)


def _groups(topics: tuple[Named, ...], answers: tuple[Named, ...]) -> list[tuple[str, tuple[Named, ...]]]:
    return [("about  ", topics), ("answers", answers)]


def _listed(named: tuple[Named, ...]) -> str:
    return ", ".join(map(display_name, named))


def _method(session: Session, argument: str) -> str:
    if not argument:
        return f"The method is {session.method}. Methods: {', '.join(plugin_names('method'))}."
    if argument not in plugin_names("method"):
        raise QuestionError(
            f"There is no method {argument[:40]}.", f"Choose one of {', '.join(plugin_names('method'))}."
        )
    session.use_method(argument)
    return f"The next questions are answered by {session.method}."


def _graph(session: Session, argument: str) -> str:
    if not argument:
        return f"The graph is {session.place}: {session.resources.graph.schema.title}."
    session.use_graph(None if argument == "demo" else argument)
    return f"Opened {session.place}. A new conversation begins."


def _new(session: Session, argument: str) -> str:
    session.forget()
    return "A new conversation begins."


def _help(session: Session, argument: str) -> str:
    width = max(len(f"{name} {command.argument}") for name, command in COMMANDS.items())
    lines = [f"{f'{name} {command.argument}':{width}}  {command.about}" for name, command in COMMANDS.items()]
    return "\n".join(["Ask a question, or:", *lines, "Tab completes names of entities. Ctrl-C stops a question."])


COMMANDS = {
    "/topic": Command("ID|NAME", "the next question is about this entity; without one: find it in the text", _topic),
    "/topics": Command("", "list what was asked about and answered, with ids", _topics),
    "/sparql": Command("", "show the query of the last answer", _sparql),
    "/explain": Command("[QUERY]", "say in words what the query of the last answer asks for, or this query", _explain),
    "/trace": Command("", "show what happened, and all of the last answer", _trace),
    "/method": Command("[NAME]", "show or change the method", _method),
    "/graph": Command("[PLACE]", "show or change the graph: a folder, a URL, or demo", _graph),
    "/new": Command("", "forget the conversation", _new),
    "/help": Command("", "show this list", _help),
    "/quit": Command("", "end the chat; so does Ctrl-D", lambda session, argument: ""),
}
