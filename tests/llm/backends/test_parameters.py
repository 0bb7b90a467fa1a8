"""Finding the parameter that an error refuses, in the messages of many servers, and dropping it."""

from __future__ import annotations

import pytest

from kgqa.llm.backends.parameters import refused_parameter, sampling_fields
from kgqa.llm.client import Sampling

SENT = [
    "temperature",
    "top_p",
    "seed",
    "max_tokens",
    "response_format",
    "structured_outputs",
    "logprobs",
    "enable_thinking",
]


def extra_forbidden(*loc: str) -> dict:
    return {"type": "extra_forbidden", "loc": list(loc), "msg": "Extra inputs are not permitted", "input": "seed"}


@pytest.mark.parametrize(
    ("error", "name"),
    [
        # named in a field
        ({"message": "Unsupported value.", "param": "temperature", "code": "unsupported_value"}, "temperature"),
        ({"message": "Invalid value.", "param": "response_format.json_schema"}, "response_format"),
        ({"object": "error", "message": {"detail": [extra_forbidden("body", "top_p")]}}, "top_p"),
        ({"message": [extra_forbidden("body", "structured_outputs", "choice")]}, "structured_outputs"),
        # named in the message
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        (
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) is.",
            "temperature",
        ),
        ('Invalid JSON payload received. Unknown name "seed": Cannot find field.', "seed"),
        ("property 'logprobs' is unsupported, did you mean 'log'?", "logprobs"),
        ("Input validation error: `temperature` must be strictly positive", "temperature"),
        ("`temperature` and `top_p` cannot both be specified for this model.", "temperature"),
        ("This response_format type is unavailable now: response_format is not available", "response_format"),
        ("'response_format.type' must be 'json_schema'", "response_format"),
        (
            "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 1}]",
            "seed",
        ),
        ('{"detail":[{"type":"extra_forbidden","loc":["body","top_p"],"msg":"no","input":0}]}', "top_p"),
        ("unknown field enable_thinking; temperature is not supported", "enable_thinking"),
        # not about a sent parameter
        ({"message": "Invalid type for 'messages[0].content'.", "param": "messages[0].content"}, None),
        (
            {"message": "'max_tokens' is too large: 5000. The maximum context length is 4096.", "param": "max_tokens"},
            None,
        ),
        ("max_tokens must be at most 4096", None),
        ("The prompt was flagged by the content filter: what is the temperature of the sun?", None),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'user'), 'msg': 'no', 'input': \"'seed'\"}]", None),
        ("Unsupported parameter: 'logit_bias'", None),
    ],
)
def test_refused_parameter(error, name):
    assert refused_parameter(error, SENT) == name


def test_parameter_that_was_not_sent_is_not_refused():
    assert refused_parameter({"message": "no", "param": "seed"}, ["temperature"]) is None


SAMPLING = Sampling(temperature=0.0, top_p=0.9, seed=3, max_tokens=10, extra_body={"min_p": 0.1})


@pytest.mark.parametrize(
    ("sampling", "refused", "fields"),
    [
        (SAMPLING, (), {"temperature": 0.0, "top_p": 0.9, "seed": 3, "max_tokens": 15, "min_p": 0.1}),
        (Sampling(temperature=None), (), {}),
        (Sampling(extra_body={"temperature": 1}), (), {"temperature": 1}),
        (SAMPLING, ("seed", "min_p"), {"temperature": 0.0, "top_p": 0.9, "max_tokens": 15}),
        (Sampling(max_tokens=10), ("max_tokens",), {"temperature": 0.0, "max_completion_tokens": 15}),
        (Sampling(max_tokens=10), ("max_tokens", "max_completion_tokens"), {"temperature": 0.0}),
    ],
)
def test_fields_of_a_request(sampling, refused, fields):
    assert sampling_fields(sampling, refused, more_tokens=5) == fields
