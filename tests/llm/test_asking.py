"""Prompts that are asked again after an unusable reply, and the reasons of those without a usable one."""

from __future__ import annotations

from kgqa.llm.asking import ask as ask_all
from kgqa.llm.asking import ask_readings
from kgqa.llm.client import CORPUS_STAGES, Message, TypedPrompt
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.reply import Reply
from kgqa.settings.values import resolve
from kgqa.testing import faults
from kgqa.testing.faults import ModelReply
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import Trace

MESSAGES = (Message("user", "A number?"),)


def number(text: str) -> Reading[int]:
    return Reading(int(text)) if text.isdigit() else Reading(None, problem="It is no number.")


def ask(*replies, stage="extract", **options):
    """Return the readings of one prompt, and the usage of its stage."""
    trace = Trace()
    with ScriptedServer(replies) as server:
        settings = resolve({"llm.model": f"{server.url}#m", "llm.retries": 0}, environment={})
        models = open_models(settings, stages=CORPUS_STAGES)
        asked = [TypedPrompt(MESSAGES, stage, reply=Reply(number))]
        readings = ask_readings(models.for_question(trace), Prompts(), asked, **options)
        models.close()
    (usage,) = trace.usage().stages
    return readings[0], usage


def test_a_reading_or_the_reason_why_there_is_none():
    assert ask("7")[0] == Reading(7)
    reading, usage = ask("none", "8")
    assert reading.value == 8 and usage.reasked == 1 and not usage.unparsed
    reading, usage = ask("none", "no")
    assert reading == Reading(None, problem="It is no number.") and usage.unparsed == 1
    assert ask("none", reask=0)[0].problem == "It is no number."
    assert "declined" in ask(faults.refusal(), reask=0)[0].problem
    assert "does not accept the prompt" in ask(faults.too_long(), reask=1)[0].problem


def test_a_reply_that_was_cut_off_is_read_only_if_asked_for():
    cut = ModelReply("12", finish_reason="length")
    assert ask(cut, reask=0)[0].value is None
    reading, usage = ask(cut, cut_off=True)
    assert reading.value == 12 and "cut off" in reading.problem and usage.repaired == 1


def test_values_only():
    with ScriptedServer(["1", "x", "x"]) as server:
        models = open_models(resolve({"llm.model": f"{server.url}#m", "llm.concurrency": 1}, environment={}))
        asked = [TypedPrompt(MESSAGES, "decide", reply=Reply(number))] * 2
        assert ask_all(models.for_question(Trace()), Prompts(), asked) == [1, None]
        models.close()
