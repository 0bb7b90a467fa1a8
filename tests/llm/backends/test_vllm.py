"""The client of vLLM, against a stand-in with the real names of its parameters; the names against a real vLLM."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import os
import sys
import threading
import types
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest
from jinja2 import TemplateError

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.backends.vllm import _ENVIRONMENT, DEFAULT_MAX_TOKENS, VLLMChat
from kgqa.llm.client import Completion, Message, Prompt, Sampling

PASSED = {
    "LLM": {"model", "seed", "runner", "trust_remote_code"},
    "LLM.chat": {"messages", "sampling_params", "use_tqdm", "chat_template_kwargs"},
    "SamplingParams": {
        *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"),
        *("seed", "max_tokens", "structured_outputs"),
    },
    "StructuredOutputsParams": {"choice"},
}
"""What we pass, by name; the stand-in has seen no other, and a real vLLM knows them all."""
CONTEXT = 100
"""Characters that the stand-in takes for a prompt."""


class VLLMClientError(Exception):
    """Of vLLM 0.32 and later: no ValueError."""


class VLLMValidationError(VLLMClientError):
    pass


class ChatTemplateResolutionError(VLLMClientError):
    pass


class EngineDeadError(Exception):
    pass


class StandIn:
    """What the modules `vllm` and `vllm.sampling_params` hold, with the signatures of vLLM 0.33."""

    def __init__(self) -> None:
        stand_in = self
        self.passed: dict[str, set[str]] = defaultdict(set)
        self.engines: list[dict] = []
        self.calls: list[SimpleNamespace] = []
        self.too_long: type[Exception] = VLLMValidationError
        self.load_error: Exception | None = None
        self.error: Exception | None = None
        self.reply = lambda text, params: text.upper()
        self.finish = lambda text, params: "stop"
        self.advised: dict = {}
        self.lost = 0

        class StructuredOutputsParams:
            def __init__(self, json=None, regex=None, choice=None, grammar=None, json_object=None):
                stand_in.passed["StructuredOutputsParams"] |= {"choice"}
                assert choice and (json, regex, grammar, json_object) == (None,) * 4
                self.choice = choice

        class SamplingParams:
            def __init__(self, **given):
                stand_in.passed["SamplingParams"] |= given.keys()
                known = dict.fromkeys(PASSED["SamplingParams"])
                known |= {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
                known |= {"presence_penalty": 0.0, "frequency_penalty": 0.0, "max_tokens": 16}
                assert given.keys() <= known.keys()
                self.__dict__.update(known | given)
                if not 0 <= self.temperature <= 2:
                    raise VLLMValidationError(f"temperature must be in [0, 2], got {self.temperature}.")

        class LLM:
            def __init__(self, model, *, runner="auto", seed=0, trust_remote_code=False, max_model_len=None):
                stand_in.passed["LLM"] |= {"model", "runner", "seed", "trust_remote_code"}
                stand_in.engines.append(
                    {"model": model, "runner": runner, "seed": seed, "max_model_len": max_model_len}
                    | {"thread": threading.current_thread().name, "trust": trust_remote_code}
                )
                if stand_in.load_error is not None:
                    raise stand_in.load_error

            def get_default_sampling_params(self):
                params = SamplingParams()
                params.__dict__.update(stand_in.advised)
                return params

            def chat(
                self,
                messages,
                sampling_params=None,
                use_tqdm=True,
                lora_request=None,
                priority=None,
                chat_template=None,
                chat_template_content_format="auto",
                add_generation_prompt=True,
                continue_final_message=False,
                tools=None,
                chat_template_kwargs=None,
                tokenization_kwargs=None,
                mm_processor_kwargs=None,
            ):
                stand_in.passed["LLM.chat"] |= {"messages", "sampling_params", "use_tqdm", "chat_template_kwargs"}
                assert isinstance(sampling_params, list) and len(sampling_params) == len(messages)
                assert use_tqdm is False
                return stand_in.chat(messages, sampling_params, chat_template_kwargs)

        self.modules = {name: types.ModuleType(name) for name in ("vllm", "vllm.sampling_params")}
        for name, module in self.modules.items():
            module.__spec__ = ModuleSpec(name, None)
        self.modules["vllm"].__dict__.update(LLM=LLM, SamplingParams=SamplingParams)
        self.modules["vllm.sampling_params"].__dict__.update(StructuredOutputsParams=StructuredOutputsParams)

    def chat(self, messages, params, kwargs) -> list[SimpleNamespace]:
        texts = [each[-1]["content"] for each in messages]
        # what was taken before the bad prompt is taken back: nothing is answered
        choices = [param.structured_outputs and param.structured_outputs.choice for param in params]
        self.calls.append(
            SimpleNamespace(texts=texts, messages=messages, params=params, kwargs=kwargs, choices=choices)
        )
        if self.error is not None:
            raise self.error
        for text, param in zip(texts, params):
            text.encode()
            if len(text) > CONTEXT:
                raise self.too_long(f"The decoder prompt (length {len(text)}) is longer than the maximum model length.")
            if param.structured_outputs is not None:
                assert param.structured_outputs.choice, "the parameters were used before, and vLLM wrote into them"
        outputs = [self.output(text, param) for text, param in zip(texts, params)]
        for param in params:
            if param.structured_outputs is not None:
                param.structured_outputs.choice = None  # as xgrammar's backend does
        return outputs[self.lost :]

    def output(self, text: str, param) -> SimpleNamespace:
        said = param.structured_outputs.choice[0] if param.structured_outputs else self.reply(text, param)
        completion = SimpleNamespace(text=said, finish_reason=self.finish(text, param), token_ids=said.split())
        return SimpleNamespace(prompt_token_ids=list(text), outputs=[completion])


@pytest.fixture
def vllm(monkeypatch):
    stand_in = StandIn()
    for name, module in stand_in.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in _ENVIRONMENT:  # they are set for good, by what is tested
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return stand_in


@pytest.fixture
def model(vllm):
    model = VLLMChat("a/model", batch_wait=0.0)
    yield model
    model.close()


def prompt(text: str, *, choices: tuple[str, ...] = (), **sampling) -> Prompt:
    return Prompt((Message("system", "s"), Message("user", text)), "filter", Sampling(**sampling), choices)


def test_a_batch_is_one_call(vllm, model):
    got = model.complete([prompt("a b"), prompt("c")])
    assert [each.text for each in got] == ["A B", "C"]
    assert got[0].seconds > 0
    assert [(each.prompt_tokens, each.completion_tokens) for each in got] == [(3, 2), (1, 1)]
    assert len(vllm.calls) == 1 and vllm.calls[0].kwargs is None
    assert vllm.calls[0].messages[0] == [{"role": "system", "content": "s"}, {"role": "user", "content": "a b"}]
    assert model.notes == () and model.complete([]) == []


def test_it_is_loaded_once_and_only_when_asked(vllm):
    model = VLLMChat("a/model", seed=7, max_model_len=4096)
    assert vllm.engines == []
    with ThreadPoolExecutor(5) as pool:
        got = list(pool.map(lambda n: model.complete([prompt(f"q{n}")])[0].text, range(10)))
    assert got == [f"Q{n}" for n in range(10)]
    assert vllm.engines == [
        {"model": "a/model", "runner": "generate", "seed": 7, "max_model_len": 4096}
        | {"thread": "kgqa-batcher", "trust": False}
    ]
    assert len(vllm.calls) < 10
    model.close()


def test_code_that_comes_with_a_model_is_not_run(vllm):
    with pytest.raises(SettingsError, match="trust_remote_code"):
        VLLMChat("a/model", trust_remote_code=True)


def test_what_vllm_does_on_its_own_is_turned_off(vllm, model, monkeypatch):
    monkeypatch.setenv("VLLM_LOGGING_STREAM", "ext://sys.stdout")  # the user's word goes first
    model.complete([prompt("q")])
    assert {name: os.environ[name] for name in _ENVIRONMENT} == {
        **_ENVIRONMENT,
        "VLLM_LOGGING_STREAM": "ext://sys.stdout",
    }


# ---- sampling ----


def test_sampling_as_it_is_given(vllm, model):
    model.complete([prompt("q", temperature=0.3, top_p=0.8, seed=5, max_tokens=9)])
    (params,) = vllm.calls[0].params
    assert (params.temperature, params.top_p, params.seed, params.max_tokens) == (0.3, 0.8, 5, 9)
    assert params.structured_outputs is None


def test_what_is_left_open_is_as_the_makers_advise(vllm, model):
    vllm.advised = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "repetition_penalty": 1.05, "max_tokens": 5}
    model.complete([prompt("q", temperature=None)])
    (params,) = vllm.calls[0].params
    assert (params.temperature, params.top_p, params.top_k, params.repetition_penalty) == (0.6, 0.95, 20, 1.05)
    assert params.seed is None and params.max_tokens == DEFAULT_MAX_TOKENS


def test_choices_are_held_to(vllm, model):
    vllm.reply = lambda text, params: "A"
    got = model.complete([prompt("q", choices=("yes", "no", "yes")), prompt("free")])
    assert [(each.text, each.constrained) for each in got] == [("yes", True), ("A", False)]
    assert vllm.calls[0].choices == [["yes", "no"], None]
    (got,) = model.complete([prompt("q", choices=(" A", "B"))])
    assert (got.text, got.constrained) == (" A", True)


def test_choices_that_were_not_held_to_are_not_said_to_be(vllm, model):
    vllm.output = lambda text, params: SimpleNamespace(
        prompt_token_ids=None, outputs=[SimpleNamespace(text="maybe", finish_reason="stop", token_ids=[1])]
    )
    (got,) = model.complete([prompt("q", choices=("yes", "no"))])
    assert (got.text, got.constrained, got.failure, got.prompt_tokens) == ("maybe", False, "", 0)


def test_arguments_of_the_chat_template_part_a_batch(vllm, model):
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    on = {"chat_template_kwargs": {"enable_thinking": True}}
    asked = [prompt("a"), prompt("b", extra_body=off), prompt("c"), prompt("d", extra_body=on)]
    asked += [prompt("e", extra_body={"chat_template_kwargs": {"enable_thinking": False}})]
    assert [each.text for each in model.complete(asked)] == list("ABCDE")
    assert [(call.texts, call.kwargs) for call in vllm.calls] == [
        (["a", "c"], None),
        (["b", "e"], {"enable_thinking": False}),
        (["d"], {"enable_thinking": True}),
    ]
    assert model.notes == ()


def test_what_only_a_server_understands_is_noted_once(vllm, model):
    extra = {"reasoning_effort": "low", "chat_template_kwargs": None}
    model.complete([prompt("a", extra_body=extra), prompt("b", extra_body=extra)])
    model.complete([prompt("c", extra_body=extra), prompt("d", extra_body={"chat_template_kwargs": "no table"})])
    assert len(model.notes) == 2
    assert "reasoning_effort" in model.notes[0] and "not a table" in model.notes[1]


# ---- replies ----


def test_reasoning_is_parted_from_the_text(vllm, model):
    vllm.reply = lambda text, params: "<think>\nLet me see.\n</think>\n\nCanberra"
    (got,) = model.complete([prompt("q")])
    assert (got.text, got.reasoning, got.failure) == ("Canberra", "Let me see.", "")


@pytest.mark.parametrize(
    ("said", "finish", "failure"),
    [("half a", "length", "length"), ("<think>so", "length", "length"), ("", "stop", "empty"), ("yes", None, "")],
)
def test_replies_that_cannot_be_used(vllm, model, said, finish, failure):
    vllm.reply, vllm.finish = lambda text, params: said, lambda text, params: finish
    (got,) = model.complete([prompt("q")])
    assert got.failure == failure


def test_a_reply_that_was_broken_off_is_asked_for_once_more(vllm, model):
    reasons = {"a": itertools.repeat("stop"), "b": iter(["error", "stop"]), "c": itertools.repeat("abort")}
    vllm.finish = lambda text, params: next(reasons[text])
    got = model.complete([prompt(text) for text in "abc"])
    assert [(each.text, each.failure) for each in got] == [("A", ""), ("B", ""), ("", "unreachable")]
    assert [call.texts for call in vllm.calls] == [["a", "b", "c"], ["b", "c"]]


# ---- what goes wrong ----


@pytest.mark.parametrize("error", [VLLMValidationError, ValueError, TemplateError], ids=lambda error: error.__name__)
def test_a_prompt_that_is_too_long_fails_alone(vllm, model, error):
    vllm.too_long = error
    asked = [prompt(f"q{n}", choices=("yes", "no") if n % 2 else ()) for n in range(16)]
    asked[5] = prompt("x" * (CONTEXT + 1))
    got = model.complete(asked)
    assert [each.failure for each in got] == ["rejected" if n == 5 else "" for n in range(16)]
    assert "is longer than the maximum model length" in got[5].detail
    assert [each.text for n, each in enumerate(got) if n != 5] == [
        "yes" if n % 2 else f"Q{n}" for n in range(16) if n != 5
    ]
    assert len(vllm.calls) == 9, "halves of halves, not one by one"
    assert model.complete([prompt("next")])[0].text == "NEXT"


def test_sampling_that_vllm_does_not_take_fails_alone(vllm, model):
    got = model.complete([prompt("a"), prompt("b", temperature=3.0)])
    assert [each.failure for each in got] == ["", "rejected"]
    assert "temperature must be in [0, 2]" in got[1].detail


def test_half_a_surrogate_pair_does_no_harm(vllm, model):
    assert model.complete([prompt("a\ud83d")])[0].text == "A?"


@pytest.mark.parametrize(
    "error",
    [
        EngineDeadError("EngineCore encountered an issue."),
        RuntimeError("CUDA out of memory"),
        TypeError("chat() got an unexpected keyword argument"),
        ChatTemplateResolutionError("you must provide a chat template"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_engine_that_fails_is_not_asked_again(vllm, model, error):
    assert model.complete([prompt("a")])[0].text == "A"
    vllm.error = error
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=str(error).rstrip(".").replace("(", ".").replace(")", ".")):
            model.complete([prompt("a"), prompt("b")])
    assert len(vllm.calls) == 2 and len(vllm.engines) == 1


def test_replies_that_belong_to_nobody(vllm, model):
    vllm.lost = 1
    with pytest.raises(ModelUnavailable, match="2 prompts returned 1 replies"):
        model.complete([prompt("a"), prompt("b")])


@pytest.mark.parametrize(
    "error", [RuntimeError("Failed to infer device type"), OSError("a/model is no folder"), ImportError("libcuda.so.1")]
)
def test_a_model_that_cannot_be_loaded(vllm, model, error):
    vllm.load_error = error
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=f"vLLM cannot load a/model: {error}. Check that vLLM supports the model"):
            model.complete([prompt("a")])
    assert len(vllm.engines) == 1, "that would take minutes again"


def test_without_vllm(monkeypatch):
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "vllm" else find(name, *rest))
    model = VLLMChat("a/model")
    with pytest.raises(ModelUnavailable, match=r"pip install 'kgqa\[vllm\]'"):
        model.complete([prompt("a")])
    model.close()


def test_after_close(vllm, model):
    model.complete([prompt("a")])
    model.close()
    model.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        model.complete([prompt("a")])


def test_a_completion_is_what_the_contract_says(vllm, model):
    (got,) = model.complete([prompt("a")])
    assert isinstance(got, Completion) and not got.recorded and got.detail == ""


# ---- the names of parameters ----


def test_no_other_names_are_passed(vllm, model):
    model.complete([prompt("q", choices=("yes",))])
    assert dict(vllm.passed) == PASSED


def test_a_real_vllm_knows_the_names():
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM, which needs a GPU, is not installed: pip install 'kgqa[vllm]'")
    import vllm
    from vllm.sampling_params import StructuredOutputsParams

    real = {
        "LLM": vllm.LLM.__init__,
        "LLM.chat": vllm.LLM.chat,
        "SamplingParams": vllm.SamplingParams,
        "StructuredOutputsParams": StructuredOutputsParams,
    }
    missing = {name: PASSED[name] - inspect.signature(each).parameters.keys() for name, each in real.items()}
    assert missing == {name: set() for name in PASSED}
    assert callable(vllm.LLM.get_default_sampling_params)
    output = inspect.signature(vllm.outputs.CompletionOutput).parameters
    assert {"text", "finish_reason", "token_ids"} <= output.keys()
    assert {"prompt_token_ids", "outputs"} <= inspect.signature(vllm.RequestOutput).parameters.keys()
