"""`kgqa chat`: piped lines, and a person at a terminal with editing, completion, history and Ctrl-C."""

from __future__ import annotations

import os
import re
import threading
import time

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from kgqa.cli.chat.completion import ChatCompleter
from kgqa.cli.chat.session import Session
from kgqa.testing.server import ScriptedServer
from tests.cli_runner import KGQA
from tests.conftest import ROOT
from tests.pseudo_terminal import CTRL_C, CTRL_D, LEFT, TAB, UP, terminal

OFF = ("--embeddings", "off")


def talk(kgqa, *lines: str, options: tuple[str, ...] = OFF) -> list[str]:
    """Pipe lines into a chat; return what follows each of them."""
    done = kgqa("chat", *options, input="\n".join(lines) + "\n")
    assert done.returncode == 0
    parts = ("\n" + done.out).split("\n> ")[1:]
    assert [part.split("\n")[0] for part in parts] == [line[:300] for line in lines if line.strip()]
    return [part.partition("\n")[2].rstrip("\n") for part in parts]


def test_piped_questions_refer_to_earlier_answers(kgqa):
    first, second, third, topics, sparql, explained, trace = talk(
        kgqa, "Who directed Parasite?", "What is his date of birth?", "and of Marie Curie?", "/topics", "/sparql", "/explain",
        "/trace",
    )  # fmt: skip
    assert first.startswith("Bong Joon-ho (m.demo_bong_joon_ho)\n") and "──film directed by──▶" in first
    assert "SELECT" not in first and "SPARQL quer" not in first
    assert second.startswith("Asking: What is Bong Joon-ho's date of birth?\n1969-09-14\n")
    assert third.startswith("Asking: What is Marie Curie's date of birth?\n1867-11-07\n")
    # a note is shown once
    assert first.count("  note ") == 1 and second.count("  note ") == 0
    assert "2. What is Bong Joon-ho's date of birth?\n   about    Bong Joon-ho (m.demo_bong_joon_ho)" in topics
    assert sparql.startswith("PREFIX ns:") and "m.demo_marie_curie" in sparql
    assert "Marie Curie (m.demo_marie_curie)" in explained
    assert "the wording suggests 1 hop" in trace and "SELECT" in trace and "cost" in trace


def test_the_example_in_the_docs(kgqa):
    command, shown = re.search(r"```\n\$ (.*?)\n(.*?)```", (ROOT / "docs" / "chat.md").read_text(), re.DOTALL).groups()
    typed = re.search(r"printf '(.*)'", command)[1].replace("\\n", "\n")
    done = kgqa("chat", *OFF, input=typed)
    lines = [line for line in shown.splitlines() if line != "..."]
    assert len(lines) > 4 and set(lines) <= set(done.out.splitlines())


def test_commands_change_topic_method_and_graph(kgqa, tmp_path):
    facts = tmp_path / "ada.ttl"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    facts.write_text(
        f'@prefix fam: <http://example.org/> . fam:ada {label} "Ada Quill" ; fam:teacher fam:bob .'
        f'fam:bob {label} "Bob Moss" .'
    )
    assert kgqa("graph", "load", facts, "--into", "small").returncode == 0
    topic, country, method, _, graph, teacher, sparql, new, unknown, back, elsewhere = talk(
        kgqa, "/topic Tokyo", "Which country is it the capital of?", "/method top-2", "Who directed Parasite?",
        "/graph small", "Who is the teacher of Ada Quill?", "/sparql", "/new", "Where was he born?", "/graph demo",
        "Where was he born?",
    )  # fmt: skip
    assert topic == "The next question is about Tokyo (m.demo_tokyo)."
    assert country.startswith("Japan (m.demo_japan)")
    assert method == "The next questions are answered by top-2."
    assert graph.startswith("Opened small.") and teacher.startswith("Bob Moss")
    assert "PREFIX fam: <http://example.org/>" in sparql and "fam:ada fam:teacher ?answer" in sparql
    assert new == "A new conversation begins."
    assert unknown.startswith("No answer: No entity of this graph was found") and "/topic ID" in unknown
    assert "kgqa graph search --graph small NAME" in unknown and "kgqa graph search NAME" in elsewhere
    assert back.startswith("Opened the demo graph.")


def test_no_error_ends_the_chat(kgqa):
    shown = talk(
        kgqa, "?", "x" * 5000, "/topic No One At All", "/method nope", "/method tog", "/graph nowhere", "/tpoic x",
        "/explain SELECT {", "/sparql", "", "What is the capital of Japan?", "/quit",
    )  # fmt: skip
    starts = [
        "kgqa: The question is empty.", "kgqa: The question has 5,000", "kgqa: No entity of this graph has",
        "kgqa: There is no method nope. Choose one of", "kgqa: The method tog needs a language model",
        "kgqa: There is no graph at nowhere", "There is no command /tpoic. Did you mean /topic?", "kgqa: Not valid SPARQL",
        "Nothing was asked yet.", "Tokyo (m.demo_tokyo)",
    ]  # fmt: skip
    assert [text[: len(start)] for text, start in zip(shown, starts, strict=False)] == starts
    assert shown[-1] == ""  # nothing follows /quit


def test_a_person_at_a_terminal(session_cache, tmp_path):
    """Completes, edits, recalls a line of an earlier chat, stops a question with Ctrl-C, and ends with Ctrl-D."""
    history = tmp_path / "data" / "kgqa" / "chat-history"
    history.parent.mkdir(parents=True)
    history.write_text("\n# before\n+/topics of yesterday\n")
    history.chmod(0o644)
    asked, over = threading.Event(), threading.Event()

    def reply(messages) -> str:
        asked.set()
        over.wait(60)
        return "1"

    environment = {**os.environ, "KGQA_CACHE_FOLDER": str(session_cache), "XDG_DATA_HOME": str(tmp_path / "data")}
    with ScriptedServer(reply) as model:
        options = [*OFF, "--llm", f"{model.url}#scripted"]
        with terminal([KGQA, "chat", *options], environment=environment) as person:
            person.expect("kgqa>")
            person.type(UP)
            person.expect("/topics of yesterday")
            person.type(CTRL_C)
            person.expect("kgqa>")
            person.type(f"/top{TAB}")
            person.expect("/topics")  # the menu of both
            person.type(CTRL_C)
            person.expect("kgqa>")
            person.type(f"/topic Parasi{TAB}")
            person.expect("Parasite")
            person.type("\r")
            person.expect("The next question is about Parasite (m.demo_parasite).")
            person.type(f"Who directed Paras{TAB}")
            person.expect("Parasite")
            person.type(f"{LEFT * 8}X\b\r")
            assert asked.wait(30)
            person.type(CTRL_C)
            person.expect("Stopping...")
            person.expect("Stopped: Stopped by the user.", seconds=10)
            person.expect("Compared by scripted.kgqa>")
            person.type("/topics\r")
            person.expect("1. Who directed Parasite   about    Parasite (m.demo_parasite)kgqa>")
            person.type(CTRL_D)
            assert person.ended() == 0
            assert "Traceback" not in person.shown
        over.set()
    assert history.stat().st_mode & 0o777 == 0o600
    assert "+Who directed Parasite\n" in history.read_text()


def test_without_history_nothing_is_written(session_cache, tmp_path):
    environment = {**os.environ, "KGQA_CACHE_FOLDER": str(session_cache), "XDG_DATA_HOME": str(tmp_path)}
    with terminal([KGQA, "chat", "--no-history", *OFF], environment=environment) as person:
        person.expect("kgqa>")
        person.type("/new\r")
        person.expect("A new conversation begins")
        person.type("/quit\r")
        assert person.ended() == 0
    assert list(tmp_path.iterdir()) == []


def test_without_prompt_toolkit_lines_are_read_as_they_are(session_cache, tmp_path):
    (tmp_path / "prompt_toolkit.py").write_text("raise ModuleNotFoundError(name='prompt_toolkit')\n")
    environment = {**os.environ, "KGQA_CACHE_FOLDER": str(session_cache), "PYTHONPATH": str(tmp_path)}
    with terminal([KGQA, "chat", *OFF], environment=environment) as person:
        person.expect("pip install")
        person.expect("kgqa>")
        person.type("Who directed Parasite?\n")
        person.expect("Bong Joon-ho (m.demo_bong_joon_ho)")
        person.type(CTRL_C)  # while the answer is still written, or after that
        time.sleep(0.5)
        person.type("\n")
        person.expect("kgqa>")
        time.sleep(0.5)
        person.type("/new\n")
        person.expect("A new conversation begins.kgqa>")
        person.type(CTRL_D)
        assert person.ended() == 0


def test_names_are_completed_from_the_words_before_the_cursor(session_cache, tmp_path):
    session = Session({"rank.embeddings": "off", "cache.folder": str(session_cache)}, say=lambda text: None)
    completer = ChatCompleter(session)

    def completed(text: str) -> list[str]:
        """Return the lines that completion makes of a text."""
        found = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
        return [text[: len(text) + each.start_position] + each.text for each in found]

    try:
        assert completed("Who directed Parasi") == ["Who directed Parasite"]
        assert "What is the capital of United States dollar" in completed("What is the capital of United St")
        assert completed("/topic bong j") == ["/topic Bong Joon-ho"]
        assert completed("/top") == ["/topic", "/topics"]
        assert completed("/method top-") == ["/method top-1", "/method top-2"]
        assert completed("Who directed zzzq") == completed("/nothing a") == completed("") == []
    finally:
        session.close()


def test_hostile_labels_reach_neither_the_terminal_nor_the_line(kgqa, tmp_path, session_cache):
    facts = tmp_path / "evil.nt"
    label, teacher = "<http://www.w3.org/2000/01/rdf-schema#label>", "<urn:e:teacher>"
    evil = r"Mara\u001B[2J\u202E Holt\u0007\nkgqa> /graph /etc"
    facts.write_text(
        f'<urn:e:b> {label} "{evil}" .\n<urn:e:a> {label} "Ada Quill" .\n<urn:e:a> {teacher} <urn:e:b> .\n'
    )
    assert kgqa("graph", "load", facts, "--into", "evil").returncode == 0
    lines = ("Who is the teacher of Ada Quill?", "Who is she a teacher of?", "/topics", "/trace", "/topic Mara")
    shown = "\n".join(talk(kgqa, *lines, options=("--graph", "evil", *OFF)))
    assert "Asking: Who is Mara[2J Holt kgqa> /graph /etc a teacher of?\n" in shown
    assert not set(shown) & set("\x1b\x07\u202e")
    session = Session({"graph.path": str(tmp_path / "evil"), "rank.embeddings": "off"}, say=lambda text: None)
    try:
        found = ChatCompleter(session).get_completions(Document("Mar"), CompleteEvent())
        assert [each.text for each in found] == ["Mara[2J Holt kgqa> /graph /etc"]
    finally:
        session.close()
