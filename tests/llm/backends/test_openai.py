"""The OpenAI-compatible client over real HTTP: requests, retries, faults, keys, closing."""

from __future__ import annotations

import threading
import time
import traceback
from datetime import UTC, datetime, timedelta

import pytest

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.client import Completion, Message, Prompt, Sampling
from kgqa.net.model_server import LARGEST_REPLY
from kgqa.testing import faults
from kgqa.testing.faults import Fault, ModelReply
from kgqa.testing.loopback import LoopbackServer, Response
from kgqa.testing.server import ScriptedServer

KEY = "sk-very-secret-0123456789"
WITHOUT_TEMPERATURE = Sampling(temperature=None)


def ask(text: str = "hello", sampling: Sampling = Sampling()) -> Prompt:
    return Prompt((Message("system", "Be brief."), Message("user", text)), "decide", sampling=sampling)


def echo(messages: list[dict]) -> str:
    return f"re {messages[-1]['content']}"


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def open_client(pauses):
    """Return a function that opens clients which record their pauses; they are closed after the test."""
    clients_opened: list[OpenAIChat] = []

    def open_one(server: ScriptedServer, **options) -> OpenAIChat:
        options = {"model": "m", "key": KEY, "url": server.url, "sleep": pauses.append, "timeout": 10, **options}
        clients_opened.append(OpenAIChat(options.pop("model"), **options))
        return clients_opened[-1]

    yield open_one
    for each in clients_opened:
        each.close()


# ---- requests and replies ----


def test_completion_and_request_body(open_client):
    with ScriptedServer([ModelReply("yes", reasoning="so", prompt_tokens=9, completion_tokens=4)], key=KEY) as server:
        model = open_client(server)
        (completion,) = model.complete([ask()])
        assert 0 < completion.seconds < 10
        assert completion == Completion("yes", "so", prompt_tokens=9, completion_tokens=4, seconds=completion.seconds)
        assert model.name == "m" and model.notes == ()
        assert server.requests[0].body == {
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
            "temperature": 0.0,
        }


def test_concurrency_limit_holds_over_all_threads(open_client):
    with ScriptedServer(echo, latency=0.03) as server:
        model = open_client(server, concurrency=4)
        got: dict[int, list[str]] = {}

        def question(number: int) -> None:
            got[number] = [c.text for c in model.complete([ask(f"{number}.{i}") for i in range(5)])]

        threads = [threading.Thread(target=question, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert server.most_at_once == 4
        assert got == {number: [f"re {number}.{i}" for i in range(5)] for number in range(6)}


# ---- failed replies ----


@pytest.mark.parametrize(
    ("reply", "failure", "text"),
    [
        (faults.refusal("no"), "refused", ""),
        (ModelReply("half", finish_reason="content_filter"), "refused", "half"),
        (faults.empty(), "empty", ""),
        (faults.thinks("", "only"), "empty", ""),
        (ModelReply("half", finish_reason="length", completion_tokens=2), "length", "half"),
        (ModelReply("<think>on and on", finish_reason="length"), "length", ""),
        (faults.thinks("yes", "hm"), "", "yes"),
        (ModelReply("yes", reasoning="hm", reasoning_field="reasoning_content"), "", "yes"),
    ],
)
def test_failed_replies_are_classified(open_client, reply, failure, text):
    with ScriptedServer([reply]) as server:
        (completion,) = open_client(server).complete([ask("x" * 40)])
        assert (completion.failure, completion.text) == (failure, text)
        assert bool(completion.detail) is bool(failure)
        assert completion.prompt_tokens > 0
        assert server.calls == 1


@pytest.mark.parametrize(
    "fault",
    [
        faults.failing(400, f"Your prompt was flagged. Key: {KEY}"),
        faults.failing(413, "Too much.", param="temperature"),
        faults.failing(422, "Cannot be processed."),
        faults.failing(418, "I am a teapot."),
        faults.too_long(),
        Fault(400, b"not even JSON", "text/plain"),
        Fault(400),
    ],
    ids=["400", "413", "422", "418", "too long", "text", "no body"],
)
def test_rejected_prompt_does_not_affect_the_others(open_client, fault, pauses):
    with ScriptedServer(lambda messages: fault if messages[-1]["content"] == "1" else "yes") as server:
        model = open_client(server)
        completions = model.complete([ask(str(i), Sampling(max_tokens=5)) for i in range(3)])
        assert [completion.failure for completion in completions] == ["", "rejected", ""]
        assert completions[1].detail and KEY not in completions[1].detail
        assert server.calls == 3 and pauses == [] and model.notes == ()
        # a batch of rejected prompts does not make the server unavailable
        assert model.complete([ask("1")])[0].failure == "rejected"


# ---- temporary faults ----

TEMPORARY_FAULTS = {
    "429": faults.rate_limited(),
    "500": faults.server_error(),
    "502, a page": Fault(502, b"<html>Bad gateway</html>", "text/html"),
    "hangs": faults.hangs(1),
    "dropped": faults.dropped(),
    "a page": faults.html(),
    "an error with 200": faults.error_with_200(),
    "no choices": faults.no_choices(),
    "null": Fault(body=b"null"),
    "too deep": Fault(body=b"[" * 100_000),
    "no UTF-8": Fault(body=b'{"choices": "\xff\xfe"}'),
    "broken off": ModelReply("half", finish_reason="error"),
}


@pytest.mark.parametrize("fault", TEMPORARY_FAULTS.values(), ids=TEMPORARY_FAULTS)
def test_temporary_fault_is_retried(open_client, fault, pauses):
    timeout = 0.2 if fault == TEMPORARY_FAULTS["hangs"] else 10
    with ScriptedServer([fault, "yes"], key=KEY) as server:
        model = open_client(server, timeout=timeout)
        assert model.complete([ask()])[0].text == "yes"
        assert server.calls == 2 and len(pauses) == 1
        assert model.notes == ()


@pytest.mark.parametrize(
    ("requested", "least", "most"),
    [(7, 7, 7), (0.01, 0.25, 0.5), ("nonsense", 0.25, 0.5), (119, 119, 119),
     (timedelta(seconds=60), 1, 60)],
)  # fmt: skip
def test_retry_after_is_respected(open_client, pauses, requested, least, most):
    requested = datetime.now(UTC) + requested if isinstance(requested, timedelta) else requested
    with ScriptedServer([faults.rate_limited(requested), "yes"]) as server:
        assert open_client(server).complete([ask()])[0].text == "yes"
        assert least <= pauses[0] <= most


# ---- permanent faults ----


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (faults.wrong_key(KEY), "KGQA_LLM_KEY"),
        (faults.failing(403, "Forbidden."), "KGQA_LLM_KEY"),
        (faults.no_such_model(), "/models"),
        (Fault(404, b"Not Found", "text/plain"), "/models"),
        (Fault(405), "/models"),
        (Fault(301), "Check the URL"),
        (faults.failing(402, "Insufficient credits"), "credit"),
        (faults.out_of_quota(), "credit"),
    ],
    ids=["401", "403", "404", "404, no JSON", "405", "301", "402", "quota"],
)
def test_permanent_fault_raises_with_advice(open_client, fault, advice, pauses):
    with ScriptedServer(lambda _: fault) as server:
        with pytest.raises(ModelUnavailable, match=f"The language model m at {server.url} cannot be used") as caught:
            open_client(server).complete([ask()])
        assert advice in str(caught.value)
        assert server.calls == 1 and pauses == []


def test_permanent_fault_ends_retries_of_other_prompts(open_client):
    tried = threading.Event()

    def reply(messages):
        if messages[-1]["content"] == "good":
            return "yes"
        if messages[-1]["content"] == "fatal":
            tried.wait(5)
            return faults.wrong_key()
        return faults.server_error()

    def sleep(_: float) -> None:
        tried.set()
        time.sleep(0.02)

    with ScriptedServer(reply) as server:
        model = open_client(server, concurrency=2, retries=1000, sleep=sleep)
        with pytest.raises(ModelUnavailable, match="401"):
            model.complete([ask("passing"), ask("fatal"), ask("never begun")])
        assert [completion.text for completion in model.complete([ask("good")] * 4)] == ["yes"] * 4
        calls = server.calls
        time.sleep(0.2)
        assert server.calls == calls


# ---- unsupported parameters ----


@pytest.mark.parametrize("name", ["temperature", "top_p", "seed", "logprobs"])
def test_unsupported_parameter_is_dropped_once(open_client, name, pauses):
    sampling = Sampling(temperature=0.0, top_p=0.9, seed=1, extra_body={"logprobs": True})
    with ScriptedServer(echo, rejects=[name], latency=0.01) as server:
        model = open_client(server, concurrency=4)
        completions = model.complete([ask(str(i), sampling) for i in range(12)])
        assert [completion.text for completion in completions] == [f"re {i}" for i in range(12)]
        with_it = [name in request.body for request in server.requests]
        assert 1 <= sum(with_it) <= 4 and sum(with_it) + 12 == server.calls
        model.complete([ask("again", sampling)])
        assert name not in server.requests[-1].body
        (note,) = model.notes
        assert name in note and "no longer sent" in note
        assert pauses == []


# ---- the key and the environment ----


def leaks(error: BaseException, secret: str) -> bool:
    """Return whether the secret or a chained exception is visible in the error."""
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__dict__)
    return secret in shown or error.__cause__ is not None or error.__context__ is not None


@pytest.mark.parametrize(
    "fault",
    [
        faults.wrong_key(KEY),
        faults.failing(500, KEY),
        faults.error_with_200(KEY),
        faults.failing(404, KEY),
        Fault(503, KEY.encode()),
    ],
    ids=["401", "500", "200", "404", "no JSON"],
)
def test_key_is_in_no_error(open_client, fault):
    with ScriptedServer(lambda _: fault) as server:
        model = open_client(server, retries=0)
        with pytest.raises(ModelUnavailable) as caught:
            model.complete([ask()])
        assert "***" in str(caught.value)
        assert not leaks(caught.value, KEY)
        assert KEY not in model.name and KEY not in model.url


def test_key_is_in_no_note_or_detail(open_client):
    reply_text = faults.failing(400, f"seed is not supported for {KEY}", param="seed")
    with ScriptedServer([reply_text, faults.failing(400, KEY), "yes", faults.failing(500, KEY)]) as server:
        model = open_client(server, concurrency=1, retries=0)
        completions = model.complete([ask(sampling=Sampling(seed=1)), ask(), ask()])
        assert [completion.failure for completion in completions] == ["rejected", "", "unreachable"]
        assert KEY not in repr(completions) and KEY not in repr(model.notes)
        assert "***" in model.notes[0] and "***" in completions[0].detail


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_refused_and_not_followed(open_client, status, pauses):
    got = []
    other = LoopbackServer(lambda *request: got.append(request) or Response(404))
    target = f"http://127.0.0.1:{other.port}/v1/chat/completions"
    with ScriptedServer(lambda _: faults.redirected(f"{target}?key=secret", status)) as server:
        message = rf"{status}: the server redirects to {target}, .* llm=.*llm\.model"
        with pytest.raises(ModelUnavailable, match=message) as caught:
            open_client(server).complete([ask()])
        assert server.calls == 1 and pauses == [] and "secret" not in str(caught.value)
    other.close()
    assert got == []


# ---- sizes ----


@pytest.mark.parametrize(("size", "failure"), [(LARGEST_REPLY - 1000, ""), (LARGEST_REPLY + 1, "unreachable")])
def test_reply_size_is_limited(open_client, size, failure):
    with ScriptedServer(lambda messages: "x" * (size if messages[-1]["content"] == "long" else 1)) as server:
        completion, other = open_client(server, retries=0).complete([ask("long"), ask()])
        assert (completion.failure, len(completion.text)) == (failure, 0 if failure else size) and other.text == "x"
        assert not failure or "larger than 8 MB" in completion.detail


def test_openai_needs_a_key_and_a_model():
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        OpenAIChat("gpt", key=" ")
    with pytest.raises(SettingsError, match="Name one"):
        OpenAIChat(None, key=KEY)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        OpenAIChat("gpt", key="two words")


# ---- models of a server ----


def test_first_listed_model_is_used(open_client, pauses):
    with ScriptedServer(echo, models=["first", "second"], key=KEY) as server:
        model = open_client(server, model=None)
        assert model.name == "first"
        model.complete([ask(), ask()])
        assert {request.body["model"] for request in server.requests} == {"first"}
        assert server.listings == 1 and pauses == []


# ---- closing ----


def test_close_raises_in_waiting_calls(open_client):
    with ScriptedServer(lambda _: faults.hangs(60)) as server:
        model = open_client(server, concurrency=1, timeout=0.5, retries=0)
        caught: list[BaseException] = []

        def question() -> None:
            try:
                model.complete([ask(), ask()])
            except RuntimeError as error:
                caught.append(error)

        thread = threading.Thread(target=question)
        thread.start()
        while not server.calls:
            time.sleep(0.01)
        model.close()
        thread.join(5)
        assert "closed" in str(caught[0])


def test_refused_prompt_of_an_abandoned_batch_is_not_sent_again(open_client):
    with ScriptedServer(echo, rejects=["temperature"], latency=0.2) as server:
        model = open_client(server, concurrency=1)
        with pytest.raises(TimeoutError):
            model.complete([ask()], deadline=time.monotonic() + 0.1)
        assert model.complete([ask("next", WITHOUT_TEMPERATURE)])[0].text == "re next"
        assert server.calls == 2


def test_missing_library_is_an_error(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match=r"\[openai\]"):
        OpenAIChat("m", url="http://localhost")


def test_deadline_abandons_sent_prompts_and_drops_the_rest(open_client):
    def slow(messages):
        time.sleep(0.5 if "slow" in messages[-1]["content"] else 0)
        return "yes"

    with ScriptedServer(slow) as server:
        model = open_client(server, concurrency=2)
        received = {}
        with pytest.raises(TimeoutError):
            model.complete(
                [ask("fast"), *(ask(f"slow {n}") for n in range(8))],
                deadline=time.monotonic() + 0.25,
                on_completion=received.__setitem__,
            )
        assert received[0].text == "yes" and len(received) == 1
        assert model.complete([ask("the next question")])[0].text == "yes"
        assert server.calls == 4  # the fast one, two already sent, and the next question
