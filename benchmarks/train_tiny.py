"""Trains a tiny, randomly initialised language model with TRL's GRPOTrainer on exported questions: wiring alone.

    pip install 'trl>=1.16' datasets
    kgqa trajectories export RUN --format trl --out trl/
    python -m benchmarks.train_tiny trl/ corpus/ --steps 100

The model has a dozen tokens, each of which is a whole block: a thought with a call, a thought with an answer, a word.
It can therefore learn the format of a turn within a hundred steps, on a CPU too. The benchmark fails if a loss is not
finite, if a token that a tool returned has part in the loss, or if the format does not improve.
"""

from __future__ import annotations

import argparse
import json
import math
import runpy
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SEARCH = {"name": "graph_search", "arguments": {"query": "lighthouse"}}
WORDS = ("lighthouse", "again")
UNWRITTEN = (0, 1, 2)
"""Ids of tokens that the model never writes: unknown words, padding and the start of a message."""
PROMPTS, ROLLOUTS = 1, 16
"""Questions per step, and rollouts per question."""
GAIN = 0.2
"""By how much the mean reward of the last tenth of the steps must exceed that of the first tenth."""


def tiny_tokenizer(answer: str) -> Any:
    """Return a tokenizer whose tokens are whole blocks; everything else is unknown to it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_chat_template

    special = ("<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    call = f"<think>\nI look.\n</think>\n\n<tool_call>\n{json.dumps(SEARCH)}\n</tool_call>"
    blocks = [call, *(f"<think>\nI know.\n</think>\n\n<answer>{text}</answer>" for text in (answer, "nobody")), *WORDS]
    core = Tokenizer(models.WordLevel({text: number for number, text in enumerate(special)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", pad_token="<|endoftext|>", eos_token="<|im_end|>", padding_side="left"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.add_tokens(blocks)
    tokenizer.chat_template = qwen3_chat_template
    return tokenizer


def tiny_model(vocabulary: int) -> Any:
    """Return a randomly initialised model of about 50,000 parameters."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=vocabulary,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=4096,
        )
    )


def train(export: Path, corpus: Path, steps: int, *, vllm: bool = False, environments: Any = None) -> dict[str, Any]:
    """Train for some steps; return the losses, the mean format of each step, and what the checks found."""
    import torch
    from datasets import load_dataset
    from trl import GRPOConfig, GRPOTrainer

    script = runpy.run_path(str(export / "training.py"))
    dataset = load_dataset("json", data_files=str(export / "questions.jsonl"), split="train")
    tokenizer = tiny_tokenizer(dataset[0]["gold"][0])
    dataset = dataset.select([number % len(dataset) for number in range(max(PROMPTS, len(dataset)))])
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is so small that threads cost more than they save
    rewards: list[float] = []

    def scored(completions: Sequence[Any], gold: Sequence[Any], **more: Any) -> list[float]:
        found: list[float] = script["reward"](completions=completions, gold=gold)
        rewards.append(statistics.mean(found))
        return found

    class Checked(GRPOTrainer):  # type: ignore[misc]
        """Checks in every step that the loss has no gradient at tokens that a tool or the chat template wrote."""

        def _get_per_token_logps_and_entropies(
            self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *more: Any, **options: Any
        ) -> Any:
            found = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, *more, **options
            )
            if found[0].requires_grad:
                foreign = torch.isin(input_ids[:, -logits_to_keep:], torch.tensor(UNWRITTEN, device=input_ids.device))
                found[0].register_hook(lambda gradient: checked(gradient, foreign))
            return found

    def checked(gradient: Any, foreign: Any) -> None:
        seen["results"] += int(foreign.sum())
        seen["leaks"] += int((gradient[foreign] != 0).sum())
        seen["own"] += int((gradient[~foreign] != 0).sum())

    seen = {"results": 0, "leaks": 0, "own": 0}
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder, "model"))
        tiny_model(len(tokenizer)).save_pretrained(place)
        tokenizer.save_pretrained(place)
        settings = GRPOConfig(
            output_dir=folder,
            max_steps=steps,
            learning_rate=3e-3,
            lr_scheduler_type="constant",
            per_device_train_batch_size=PROMPTS * ROLLOUTS,
            num_generations=ROLLOUTS,
            max_completion_length=256,
            max_tool_calling_iterations=2,
            beta=0.001,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=not torch.cuda.is_available(),
            bf16=False,
            use_vllm=vllm,
            disable_tqdm=True,
            # unsupported by vLLM: it has no list of tokens that are never written
            generation_kwargs=None if vllm else {"suppress_tokens": list(UNWRITTEN)},
        )
        trainer = Checked(
            model=place,
            reward_funcs=scored,
            args=settings,
            train_dataset=dataset,
            processing_class=tokenizer,
            environment_factory=environments or script["environments"](corpus, results=2),
        )
        started = time.monotonic()
        trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    tenth = max(1, len(rewards) // 10)
    return {
        "steps": len(losses),
        "seconds": round(time.monotonic() - started, 1),
        "finite": all(map(math.isfinite, losses)),
        "result_tokens": seen["results"],
        "result_tokens_in_loss": seen["leaks"],
        "own_tokens_in_loss": seen["own"],
        "first": round(statistics.mean(rewards[:tenth]), 3),
        "last": round(statistics.mean(rewards[-tenth:]), 3),
        "cuda": torch.cuda.is_available(),
    }


def main() -> int:
    """Train, print the figures, and return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--vllm", action="store_true", help="generate with vLLM; needs a GPU")
    given = parser.parse_args()
    found = train(given.export, given.corpus, given.steps, vllm=given.vllm)
    print(json.dumps(found))
    good = found["finite"] and found["result_tokens"] and not found["result_tokens_in_loss"]
    return 0 if good and found["last"] - found["first"] >= GAIN else 1


if __name__ == "__main__":
    sys.exit(main())
