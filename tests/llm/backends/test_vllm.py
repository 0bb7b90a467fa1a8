"""The vLLM client, against a stand-in with the signatures of vLLM and, where installed, a real vLLM."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import threading
import types
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest
from jinja2 import TemplateError

from kgqa.errors import ModelUnavailable
from kgqa.llm.backends.vllm import _ENVIRONMENT, DEFAULT_MAX_TOKENS, VLLMChat
from kgqa.llm.client import Message, Prompt, Sampling

PASSED_NAMES = {
    "LLM": {"model", "seed", "runner", "trust_remote_code"},
    "LLM.chat": {"messages", "sampling_params", "use_tqdm", "chat_template_kwargs"},
    "SamplingParams": {
        *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"),
        *("seed", "max_tokens", "structured_outputs"),
    },
    "StructuredOutputsParams": {"choice", "json"},
}
"""The parameter names that the client passes; the stand-in accepts no other, and a real vLLM knows them all."""
MAX_PROMPT_CHARS = 100
"""The longest prompt of the stand-in, in characters."""


class VLLMClientError(Exception):
    """The client error of vLLM 0.32 and later, which is not a ValueError."""


class VLLMValidationError(VLLMClientError):
    pass


class ChatTemplateResolutionError(VLLMClientError):
    pass


class EngineDeadError(Exception):
    pass


class VLLMStandIn:
    """A stand-in for the modules `vllm` and `vllm.sampling_params`, with the signatures of vLLM 0.33."""

    def __init__(self) -> None:
        stand_in = self
        self.passed_names: dict[str, set[str]] = defaultdict(set)
        self.engines: list[dict] = []
        self.calls: list[SimpleNamespace] = []
        self.too_long: type[Exception] = VLLMValidationError
        self.load_error: Exception | None = None
        self.error: Exception | None = None
        self.reply = lambda text, params: text.upper()
        self.default_sampling: dict = {}

        class StructuredOutputsParams:
            def __init__(self, json=None, regex=None, choice=None, grammar=None, json_object=None):
                stand_in.passed_names["StructuredOutputsParams"] |= {"choice"} if choice else {"json"}
                assert (choice or json) and (regex, grammar, json_object) == (None,) * 3 and not (choice and json)
                self.choice, self.json = choice, json

        class SamplingParams:
            def __init__(self, **given):
                stand_in.passed_names["SamplingParams"] |= given.keys()
                known = dict.fromkeys(PASSED_NAMES["SamplingParams"])
                known |= {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
                known |= {"presence_penalty": 0.0, "frequency_penalty": 0.0, "max_tokens": 16}
                assert given.keys() <= known.keys()
                self.__dict__.update(known | given)
                if not 0 <= self.temperature <= 2:
                    raise VLLMValidationError(f"temperature must be in [0, 2], got {self.temperature}.")

        class LLM:
            def __init__(self, model, *, runner="auto", seed=0, trust_remote_code=False, max_model_len=None):
                stand_in.passed_names["LLM"] |= {"model", "runner", "seed", "trust_remote_code"}
                stand_in.engines.append(
                    {"model": model, "runner": runner, "seed": seed, "max_model_len": max_model_len}
                    | {"thread": threading.current_thread().name, "trust": trust_remote_code}
                )
                if stand_in.load_error is not None:
                    raise stand_in.load_error

            def get_default_sampling_params(self):
                params = SamplingParams()
                params.__dict__.update(stand_in.default_sampling)
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
                stand_in.passed_names["LLM.chat"] |= {"messages", "sampling_params", "use_tqdm", "chat_template_kwargs"}
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
        texts = [text if isinstance(text, str) else text[-1]["text"] for text in texts]
        # a prompt that is too long fails the whole call, as in vLLM
        choices = [param.structured_outputs and param.structured_outputs.choice for param in params]
        self.calls.append(
            SimpleNamespace(texts=texts, messages=messages, params=params, kwargs=kwargs, choices=choices)
        )
        if self.error is not None:
            raise self.error
        for text, param in zip(texts, params):
            text.encode()
            if len(text) > MAX_PROMPT_CHARS:
                raise self.too_long(f"The decoder prompt (length {len(text)}) is longer than the maximum model length.")
            if param.structured_outputs is not None:
                held = param.structured_outputs.choice or param.structured_outputs.json
                if held == {"unsupported": True}:
                    raise ValueError("The provided JSON schema contains features not supported by xgrammar.")
                assert held, "the parameters were used before, and vLLM wrote into them"
        outputs = [self.output(text, param) for text, param in zip(texts, params)]
        for param in params:
            if param.structured_outputs is not None:
                param.structured_outputs.choice = param.structured_outputs.json = None  # as the xgrammar backend does
        return outputs

    def output(self, text: str, param) -> SimpleNamespace:
        held = param.structured_outputs
        reply_text = held.choice[0] if held and held.choice else self.reply(text, param)
        completion = SimpleNamespace(text=reply_text, finish_reason="stop", token_ids=reply_text.split())
        return SimpleNamespace(prompt_token_ids=list(text), outputs=[completion])


@pytest.fixture
def vllm(monkeypatch):
    stand_in = VLLMStandIn()
    for name, module in stand_in.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in _ENVIRONMENT:  # the client sets them for the rest of the process
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


def test_batch_is_one_call(vllm, model):
    got = model.complete([prompt("a b"), prompt("c")])
    assert [each.text for each in got] == ["A B", "C"]
    assert got[0].seconds > 0
    assert [(each.prompt_tokens, each.completion_tokens) for each in got] == [(3, 2), (1, 1)]
    assert len(vllm.calls) == 1 and vllm.calls[0].kwargs is None
    assert vllm.calls[0].messages[0] == [{"role": "system", "content": "s"}, {"role": "user", "content": "a b"}]
    assert model.notes == () and model.complete([]) == []


def test_model_is_loaded_once_at_the_first_prompt(vllm):
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


# ---- sampling ----


def test_missing_sampling_uses_the_model_defaults(vllm, model):
    vllm.default_sampling = {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "repetition_penalty": 1.05,
        "max_tokens": 5,
    }
    model.complete([prompt("q", temperature=None)])
    (params,) = vllm.calls[0].params
    assert (params.temperature, params.top_p, params.top_k, params.repetition_penalty) == (0.6, 0.95, 20, 1.05)
    assert params.seed is None and params.max_tokens == DEFAULT_MAX_TOKENS


def test_choices_constrain_the_reply(vllm, model):
    vllm.reply = lambda text, params: "A"
    got = model.complete([prompt("q", choices=("yes", "no", "yes")), prompt("free")])
    assert [(each.text, each.constrained) for each in got] == [("yes", True), ("A", False)]
    assert vllm.calls[0].choices == [["yes", "no"], None]
    (got,) = model.complete([prompt("q", choices=(" A", "B"))])
    assert (got.text, got.constrained) == (" A", True)


def schema_prompt(text: str, schema=None) -> Prompt:
    return replace(prompt(text), schema=schema or {"type": "object", "required": ["a"]})


def test_schema_constrains_the_reply(vllm, model):
    vllm.reply = lambda text, params: '{"a": 1}' if text == "q" else "no"
    got = model.complete([schema_prompt("q"), schema_prompt("other"), prompt("q")])
    assert [(each.text, each.constrained) for each in got] == [('{"a": 1}', True), ("no", False), ('{"a": 1}', False)]


def test_unsupported_schema_is_left_out(vllm, model):
    vllm.reply = lambda text, params: text.upper()
    got = model.complete([prompt("a"), schema_prompt("b", {"unsupported": True}), prompt("c")])
    assert [(each.text, each.constrained, each.failure) for each in got] == [(t, False, "") for t in "ABC"]
    assert len(model.notes) == 1 and "schema" in model.notes[0]


def test_chat_template_arguments_split_a_batch(vllm, model):
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    on = {"chat_template_kwargs": {"enable_thinking": True}}
    batch = [prompt("a"), prompt("b", extra_body=off), prompt("c"), prompt("d", extra_body=on)]
    batch += [prompt("e", extra_body={"chat_template_kwargs": {"enable_thinking": False}})]
    assert [each.text for each in model.complete(batch)] == list("ABCDE")
    assert [(call.texts, call.kwargs) for call in vllm.calls] == [
        (["a", "c"], None),
        (["b", "e"], {"enable_thinking": False}),
        (["d"], {"enable_thinking": True}),
    ]
    assert model.notes == ()


def test_unsupported_extra_body_is_noted_once(vllm, model):
    extra = {"reasoning_effort": "low", "chat_template_kwargs": ["no table"]}
    model.complete([prompt("a", extra_body=extra), prompt("b", extra_body=extra)])
    assert [name in note for name, note in zip(sorted(extra), sorted(model.notes), strict=True)] == [True, True]
    assert vllm.calls[0].kwargs is None


# ---- replies ----


@pytest.mark.parametrize("error", [VLLMValidationError, ValueError, TemplateError], ids=lambda error: error.__name__)
def test_too_long_prompt_fails_alone(vllm, model, error):
    vllm.too_long = error
    batch = [prompt(f"q{n}", choices=("yes", "no") if n % 2 else ()) for n in range(16)]
    batch[5] = prompt("x" * (MAX_PROMPT_CHARS + 1))
    got = model.complete(batch)
    assert [each.failure for each in got] == ["rejected" if n == 5 else "" for n in range(16)]
    assert "is longer than the maximum model length" in got[5].detail
    assert [each.text for n, each in enumerate(got) if n != 5] == [
        "yes" if n % 2 else f"Q{n}" for n in range(16) if n != 5
    ]
    assert len(vllm.calls) == 9, "halves of halves, not one by one"
    assert model.complete([prompt("next")])[0].text == "NEXT"


def test_aborted_reply_is_asked_for_once_more(vllm, model):
    def output(text, param):
        found = VLLMStandIn.output(vllm, text, param)
        aborted = text == "never" or (text == "later" and len(vllm.calls) == 1)
        found.outputs[0].finish_reason = "abort" if aborted else "stop"
        return found

    vllm.output = output
    got = model.complete([prompt("a"), prompt("later"), prompt("never")])
    assert [(each.text, each.failure) for each in got] == [("A", ""), ("LATER", ""), ("", "unreachable")]
    assert [call.texts for call in vllm.calls] == [["a", "later", "never"], ["later", "never"]]


def test_missing_replies_are_a_failure_of_the_engine(vllm, model, monkeypatch):
    monkeypatch.setattr(vllm, "chat", lambda *_: [])
    with pytest.raises(ModelUnavailable, match="1 prompts returned 0 replies"):
        model.complete([prompt("a")])


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
def test_failed_engine_is_not_used_again(vllm, model, error):
    assert model.complete([prompt("a")])[0].text == "A"
    vllm.error = error
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=str(error).rstrip(".").replace("(", ".").replace(")", ".")):
            model.complete([prompt("a"), prompt("b")])
    assert len(vllm.calls) == 2 and len(vllm.engines) == 1


@pytest.mark.parametrize(
    "error", [RuntimeError("Failed to infer device type"), OSError("a/model is no folder"), ImportError("libcuda.so.1")]
)
def test_failed_load_is_not_repeated(vllm, model, error):
    vllm.load_error = error
    for _ in range(2):
        with pytest.raises(
            ModelUnavailable, match=f"vLLM cannot load a/model: {error}. Check that vLLM supports the model"
        ):
            model.complete([prompt("a")])
    assert len(vllm.engines) == 1, "that would take minutes again"


# ---- the names of parameters ----


def test_passed_parameter_names(vllm, model):
    model.complete([prompt("q", choices=("yes",)), schema_prompt("q")])
    assert dict(vllm.passed_names) == PASSED_NAMES


def test_real_vllm_accepts_the_names():
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
    missing = {name: PASSED_NAMES[name] - inspect.signature(each).parameters.keys() for name, each in real.items()}
    assert missing == {name: set() for name in PASSED_NAMES}
    assert callable(vllm.LLM.get_default_sampling_params)
    output = inspect.signature(vllm.outputs.CompletionOutput).parameters
    assert {"text", "finish_reason", "token_ids"} <= output.keys()
    assert {"prompt_token_ids", "outputs"} <= inspect.signature(vllm.RequestOutput).parameters.keys()
