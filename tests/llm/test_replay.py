"""Replay files: lookup, keys, damaged files, threads, processes and kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.client import Completion, Image, Message, Prompt, Sampling
from kgqa.llm.replay import Replay, reply_key

TIMEOUT = 20.0
"""Seconds a test waits before it fails."""


def prompt(text: str, **options) -> Prompt:
    return Prompt((Message("system", "Answer."), Message("user", text)), "filter", **options)


class NumberingModel:
    """A model that numbers its replies, so that no two are equal; while `gate` is closed, calls block."""

    def __init__(self, name: str = "a model", fail: dict[str, str] | None = None) -> None:
        self.name = name
        self.notes = ("a parameter was dropped",)
        self.fail = fail or {}
        self.calls: list[list[str]] = []
        self.closed = 0
        self.started = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None

    def complete(self, prompts, *, deadline=None, on_completion=None, stop=None) -> list[Completion]:
        texts = [each.messages[-1].content for each in prompts]
        self.calls.append(texts)
        self.started.release()
        assert self.gate.wait(TIMEOUT)
        if self.error is not None:
            raise self.error
        return [self._reply(text, n) for n, text in enumerate(texts)]

    def _reply(self, text: str, n: int) -> Completion:
        reply_texts = f"{text} {len(self.calls)}.{n} {os.getpid()}"
        return Completion(
            text=reply_texts,
            reasoning="because",
            failure=self.fail.get(text, ""),  # type: ignore[arg-type]
            detail="as asked" if text in self.fail else "",
            prompt_tokens=11,
            completion_tokens=7,
            seconds=0.1 + 0.2,
            constrained=True,
        )

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "replies.jsonl"


@pytest.fixture
def open_replay():
    """Return a function that opens replays; they are closed after the test."""
    replays: list[Replay] = []

    def open_one(*args, **options) -> Replay:
        replays.append(Replay(*args, **options))
        return replays[-1]

    yield open_one
    for each in replays:
        each.close()


# ---- recorded and missing replies ----


def test_second_run_repeats_the_replies_without_calls(file):
    prompts = [prompt(f"q{n}") for n in range(1200)]  # more than go into one query
    first = NumberingModel()
    replay = Replay(file, model=first)
    asked = replay.complete(prompts)
    replay.close()
    assert [len(call) for call in first.calls] == [1200] and first.closed == 1
    second = NumberingModel()
    replay = Replay(file, model=second)
    assert replay.name == "a model" and replay.notes == ("a parameter was dropped",)
    again = replay.complete(prompts)
    replay.close()
    assert second.calls == []
    assert again == asked
    alone = Replay(file, model=None)
    assert alone.name == "a model" and alone.notes == ()
    assert alone.complete(prompts) == again
    alone.close()


def test_only_missing_prompts_are_asked_and_each_once(file, open_replay):
    model = NumberingModel()
    replay = open_replay(file, model=model)
    (known,) = replay.complete([prompt("b")])
    got = replay.complete([prompt(text) for text in "abcaba"])
    assert model.calls == [["b"], ["a", "c"]]
    assert [each.text[0] for each in got] == list("abcaba")
    assert got[1] == got[4] == known
    assert got[0].text == got[3].text == got[5].text
    assert replay.complete([]) == []


def test_temporary_failures_are_asked_again_and_others_are_kept(file, open_replay):
    failures = ["refused", "empty", "length", "rejected", "unreachable"]
    model = NumberingModel(fail={failure: failure for failure in failures})
    replay = open_replay(file, model=model)
    prompts = [prompt(failure) for failure in failures]
    first, second = replay.complete(prompts), replay.complete([*prompts, prompts[4]])
    assert model.calls == [failures, failures[4:]]
    assert [each.failure for each in second] == [*failures, failures[4]]
    assert second[:4] == first[:4]


class StreamingModel(NumberingModel):
    """A model that reports each completion as it arrives, and raises `error` after the last one."""

    def complete(self, prompts, *, deadline=None, on_completion=None, stop=None) -> list[Completion]:
        self.calls.append([each.messages[-1].content for each in prompts])
        found = [self._reply(text, n) for n, text in enumerate(self.calls[-1])]
        for index, completion in enumerate(found):
            on_completion(index, completion)
        if self.error is not None:
            raise self.error
        return found


def test_interrupted_batch_keeps_what_arrived_except_temporary_failures(file, open_replay):
    model = StreamingModel(fail={"b": "unreachable"})
    model.error = ModelUnavailable("no server")
    replay = open_replay(file, model=model)
    with pytest.raises(ModelUnavailable, match="no server"):
        replay.complete([prompt("a"), prompt("b")])
    model.error, model.fail = None, {}
    replay.complete([prompt("a"), prompt("b")])
    assert model.calls == [["a", "b"], ["b"]]


def test_surrogates_and_control_characters_are_stored(file, open_replay):
    class UnencodableModel(NumberingModel):
        def _reply(self, text: str, n: int) -> Completion:
            return Completion(text="half \ud83d \x00 \u2028 国", detail="\udcff")

    odd = open_replay(file, model=UnencodableModel())
    (first,) = odd.complete([prompt("half a pair \ud83d")])
    (second,) = open_replay(file, model=None).complete([prompt("half a pair \ud83d")])
    assert second == first


# ---- keys ----

PNG, OTHER_PNG = Image(b"one", "image/png"), Image(b"two", "image/png")
JPEG = Image(b"one", "image/jpeg")
BASE_PROMPT = prompt(
    "q",
    sampling=Sampling(temperature=0.5, top_p=0.9, seed=1, max_tokens=10, extra_body={"a": {"b": 1, "c": [2]}}),
    choices=("yes", "no"),
)
DIFFERENT_PROMPTS = {
    "temperature": replace(BASE_PROMPT, sampling=replace(BASE_PROMPT.sampling, temperature=0.6)),
    "seed": replace(BASE_PROMPT, sampling=replace(BASE_PROMPT.sampling, seed=None)),
    "extra_body": replace(BASE_PROMPT, sampling=replace(BASE_PROMPT.sampling, extra_body={"a": {"b": 1, "c": [3]}})),
    "text": replace(BASE_PROMPT, messages=(BASE_PROMPT.messages[0], Message("user", "q "))),
    "role": replace(BASE_PROMPT, messages=(BASE_PROMPT.messages[0], Message("assistant", "q"))),
    "choices": replace(BASE_PROMPT, choices=("yes",)),
    "schema": replace(BASE_PROMPT, schema={"type": "object"}),
    "text in parts": replace(BASE_PROMPT, messages=(BASE_PROMPT.messages[0], Message("user", ("q",)))),
    "image": replace(BASE_PROMPT, messages=(BASE_PROMPT.messages[0], Message("user", ("q", PNG)))),
    "other image": replace(BASE_PROMPT, messages=(BASE_PROMPT.messages[0], Message("user", ("q", OTHER_PNG)))),
}
EQUIVALENT_PROMPTS = {
    "stage": replace(BASE_PROMPT, stage="judge"),
    "order in extra_body": replace(
        BASE_PROMPT, sampling=replace(BASE_PROMPT.sampling, extra_body={"a": {"c": [2], "b": 1}})
    ),
    "frozen extra_body": replace(
        BASE_PROMPT,
        sampling=replace(
            BASE_PROMPT.sampling, extra_body=MappingProxyType({"a": MappingProxyType({"b": 1, "c": [2]})})
        ),
    ),
}


def test_key_covers_prompt_sampling_choices_and_model():
    keys = [reply_key("m", each) for each in (BASE_PROMPT, *DIFFERENT_PROMPTS.values())] + [reply_key("n", BASE_PROMPT)]
    assert len(set(keys)) == len(keys)
    assert {name: reply_key("m", each) for name, each in EQUIVALENT_PROMPTS.items()} == dict.fromkeys(
        EQUIVALENT_PROMPTS, reply_key("m", BASE_PROMPT)
    )


def test_key_is_stable_across_versions():
    """Files recorded today must stay readable in later versions."""
    assert reply_key("m", BASE_PROMPT) == "9795013e41e6aa8a34e3fe2eb5e4c4ebce3136c3c9ba61a29fd59aff3201e625"
    zero = [prompt("q", sampling=Sampling(temperature=value)) for value in (0, 0.0)]
    assert reply_key("m", zero[0]) == reply_key("m", zero[1])


# ---- replay only ----


def test_unrecorded_prompt_is_an_error_in_replay_only_mode(file, open_replay):
    open_replay(file, model=NumberingModel()).complete([prompt("known")])
    replay = open_replay(file, model=None)
    with pytest.raises(ModelUnavailable) as caught:
        replay.complete([prompt("known"), prompt("new\x1b[31m\nline"), prompt("newer")])
    message = str(caught.value)
    assert str(file) in message and "and to 1 more" in message and "llm=" in message and "new[31m line" in message
    assert "replies of:" not in message
    stranger = open_replay(file, model=None, name="gpt")
    with pytest.raises(ModelUnavailable, match="no reply of gpt .* The file has replies of: a model"):
        stranger.complete([prompt("known")])


def test_model_name_is_taken_from_the_file_if_unique(file, open_replay):
    with pytest.raises(ModelUnavailable, match="There is no replay file"):
        Replay(file, model=None)
    assert not file.exists()
    open_replay(file, model=NumberingModel("two"))
    with pytest.raises(ModelUnavailable, match="contains no replies"):
        Replay(file, model=None)
    open_replay(file, model=NumberingModel("two")).complete([prompt("q")])
    assert open_replay(file, model=None).name == "two"
    open_replay(file, model=NumberingModel("one")).complete([prompt("q")])
    with pytest.raises(ModelUnavailable, match="several models: one, two"):
        Replay(file, model=None)
    replay = open_replay(file, model=None, name="one")
    assert replay.name == "one" and replay.complete([prompt("q")])[0].text.startswith("q")
    # the file's name for a model that the server names differently
    served = NumberingModel("served-as-x")
    open_replay(file, model=served, name="one").complete([prompt("q")])
    assert served.calls == []


# ---- files of another kind ----


GOOD = {"key": "k", "model": "m", "reply": {"text": "t", "prompt_tokens": 1}}
DAMAGED = [
    "question,answer\n" * 100,
    "{",
    json.dumps(GOOD | {"reply": {"text": "t", "prompt_tokens": -1}}),
    json.dumps(GOOD | {"reply": {"text": "t", "seconds": 1e9}}),
    json.dumps(GOOD | {"reply": {"text": "t", "failure": "tired"}}),
    "[" * 10_000,
]


@pytest.mark.parametrize("text", DAMAGED, ids=lambda text: text[:20])
@pytest.mark.parametrize("write", [True, False])
def test_files_of_another_kind_are_refused_and_unchanged(file, text, write):
    content = f"{json.dumps(GOOD)}\n{text}\n"
    file.write_text(content)
    with pytest.raises(SettingsError, match=f"^{file} is not a replay file: ") as caught:
        Replay(file, model=NumberingModel() if write else None)
    assert str(caught.value).count(str(file)) == 1
    assert file.read_text() == content


def test_replies_after_one_that_is_too_large_are_kept(file, monkeypatch):
    content = "".join(json.dumps(GOOD | {"reply": {"text": "t" * length}}) + "\n" for length in (1, 200, 1))
    file.write_text(content)
    monkeypatch.setattr("kgqa.llm.replay._LARGEST_LINE", 100)
    with pytest.raises(SettingsError, match="too large"):
        Replay(file, model=NumberingModel())
    assert file.read_text() == content


def test_folders_and_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(SettingsError, match="cannot be read: it is not an ordinary file"):
            Replay(tmp_path / name, model=None)


# ---- threads ----


def test_close_raises_in_waiting_calls(file):
    model = NumberingModel()
    replay = Replay(file, model=model)
    model.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(replay.complete, [prompt("q")])
        assert model.started.acquire(timeout=TIMEOUT)
        replay.close()
        replay.close()
        model.gate.set()
        with pytest.raises(ModelUnavailable, match="was closed"):
            future.result(TIMEOUT)
    with pytest.raises(ModelUnavailable, match="was closed"):
        replay.complete([prompt("q")])


# ---- processes ----


def test_first_stored_reply_wins(file, open_replay):
    """Two replays stand in for two processes: neither sees the other's call."""
    slow, fast = NumberingModel(), NumberingModel()
    replays = [open_replay(file, model=model) for model in (slow, fast)]
    fast.calls.append([])  # its replies have other numbers
    slow.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(replays[0].complete, [prompt("q"), prompt("own")])
        assert slow.started.acquire(timeout=TIMEOUT)
        (first,) = replays[1].complete([prompt("q")])
        slow.gate.set()
        got = late.result(TIMEOUT)
    assert got[0] == first and got[0].text.startswith("q 2.") and got[1].text.startswith("own 1.")


WRITER = """
import sys
from kgqa.llm.replay import Replay
from tests.llm.test_replay import NumberingModel, prompt

replay = Replay(sys.argv[1], model=NumberingModel())
for n in range(100_000):
    for each in replay.complete([prompt(f"{n}.{i}") for i in range(3)]):
        sys.stdout.write(each.text + "\\n")
    sys.stdout.flush()
"""


def start_writer(file: Path) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen([sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, text=True, cwd=root)


@pytest.mark.slow
def test_killed_writer_loses_no_returned_reply(file):
    writer = start_writer(file)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(60)]
    writer.send_signal(signal.SIGKILL)
    lines += writer.stdout.read().splitlines(keepends=True)
    writer.wait(TIMEOUT)
    reply_texts = [line.rstrip("\n") for line in lines if line.endswith("\n")]
    assert len(reply_texts) >= 60
    texts = [text.split()[0] for text in reply_texts]
    alone = Replay(file, model=None)
    assert [each.text for each in alone.complete([prompt(text) for text in texts])] == reply_texts
    alone.close()
    # the file can be extended
    model = NumberingModel()
    replay = Replay(file, model=model)
    replay.complete([prompt(text) for text in (*texts, "more")])
    assert model.calls == [["more"]]
    replay.close()
