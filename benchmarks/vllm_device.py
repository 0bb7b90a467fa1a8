"""Checks vLLM on a GPU with a tiny, randomly initialised model: `vllm:FOLDER`, its throughput, and training.

    pip install 'kgqa[vllm]' 'trl>=1.16' datasets
    python -m benchmarks.vllm_device --export trl/ --corpus corpus/

The model knows nothing, so only the wiring is checked: replies that are limited to choices are one of them, replies
with a JSON schema fit it, 256 prompts take at most LIMIT times as long as vLLM itself takes for them, and 100 steps of
GRPO (`benchmarks/train_tiny.py`) give finite losses without a gradient at results. Without --export and --corpus,
nothing is trained. Prints one JSON object; exit code 1 if a check failed, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROMPTS = 256
TOKENS = 64
LIMIT = 1.25
"""How much longer kgqa may take for all prompts than vLLM itself."""
CHOICES = ("yes", "no", "none of these")
SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer", "minimum": 0, "maximum": 9}, "sure": {"type": "boolean"}},
    "required": ["number", "sure"],
    "additionalProperties": False,
}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_model(folder: Path) -> None:
    """Write a tiny model whose tokens are bytes, so that every text can be generated."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=64,
            max_position_embeddings=2048,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    ).save_pretrained(folder)


def check_model(folder: Path) -> dict[str, Any]:
    """Ask the model for choices, JSON, and many replies at once."""
    from kgqa.llm.backends.constraints import is_of_schema
    from kgqa.llm.backends.vllm import VLLMChat
    from kgqa.llm.client import Message, Prompt, Sampling

    sampling = Sampling(temperature=1.0, seed=1, max_tokens=TOKENS)

    def asked(number: int, **more: Any) -> Prompt:
        message = Message("user", f"Question {number}: which of these is right?")
        return Prompt((message,), "decide", sampling, **more)

    with closing(VLLMChat(str(folder), gpu_memory_utilization=0.3, max_model_len=1024)) as model:
        chosen = model.complete([asked(number, choices=CHOICES) for number in range(32)])
        formed = model.complete([asked(number, schema=SCHEMA) for number in range(32)])
        many = [asked(number) for number in range(PROMPTS)]
        model.complete(many[:8])  # the first batch compiles kernels
        started = time.perf_counter()
        replies = model.complete(many)
        ours = time.perf_counter() - started
    whole = [reply for reply in formed if not reply.failure]
    return {
        "choices": sum(reply.text in CHOICES for reply in chosen),
        "of": len(chosen),
        "json": sum(is_of_schema(reply.text, SCHEMA) for reply in whole),
        "json_cut_off": len(formed) - len(whole),
        "seconds": round(ours, 3),
        "tokens_per_second": round(sum(reply.completion_tokens for reply in replies) / ours),
    }


def time_engine(folder: Path) -> float:
    """Return the seconds that vLLM itself takes for the same prompts."""
    from vllm import LLM, SamplingParams

    engine = LLM(str(folder), gpu_memory_utilization=0.3, max_model_len=1024, runner="generate", seed=0)
    chats = [[{"role": "user", "content": f"Question {number}: which of these is right?"}] for number in range(PROMPTS)]
    parameters = SamplingParams(temperature=1.0, seed=1, max_tokens=TOKENS)
    engine.chat(chats[:8], sampling_params=parameters, use_tqdm=False)
    started = time.perf_counter()
    engine.chat(chats, sampling_params=parameters, use_tqdm=False)
    return time.perf_counter() - started


def part(name: str, *arguments: object) -> dict[str, Any]:
    """Run a part of this script in a process of its own, which frees the GPU at its end; return what it prints."""
    command = [sys.executable, "-m", name, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    try:
        found: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        return {"exit_code": done.returncode, "failed": True}
    return {**found, "exit_code": done.returncode}


def main() -> int:
    """Run all checks, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export", type=Path, help="folder of `kgqa trajectories export --format trl`")
    parser.add_argument("--corpus", type=Path, help="folder of the corpus that the environments search")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--part", choices=["model", "engine"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        found = check_model(given.folder) if given.part == "model" else {"seconds": time_engine(given.folder)}
        print(json.dumps(found))
        return 0
    import torch

    if not torch.cuda.is_available():
        print("There is no GPU here.", file=sys.stderr)
        return 2
    with TemporaryDirectory() as folder:
        write_model(Path(folder))
        model = part("benchmarks.vllm_device", "--part", "model", "--folder", folder)
        engine = part("benchmarks.vllm_device", "--part", "engine", "--folder", folder)
    trained = None
    if given.export and given.corpus:
        trained = part("benchmarks.train_tiny", given.export, given.corpus, "--steps", given.steps, "--vllm")
    ratio = model.get("seconds", 0) / engine["seconds"] if engine.get("seconds") else None
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "model": model, "engine": engine, "ratio": ratio,
                      "training": trained}))  # fmt: skip
    good = model.get("choices") == model.get("of") and ratio is not None and ratio <= LIMIT
    good = good and model.get("json", 0) + model.get("json_cut_off", 0) == model.get("of")
    return 0 if good and (trained is None or trained["exit_code"] == 0) else 1


if __name__ == "__main__":
    sys.exit(main())
