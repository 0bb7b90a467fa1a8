"""The ONNX graph of BERT: the hidden states are those of torch, and what is not BERT is refused."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa.rank.embedding.bert_graph import bert_model
from tests.rank.embedding.test_torch_encoder import make_model

onnxruntime = pytest.importorskip("onnxruntime")


def test_hidden_states_are_those_of_torch_with_padding_and_at_the_last_position(tmp_path):
    import torch
    from transformers import BertModel

    folder = make_model(tmp_path)
    session = onnxruntime.InferenceSession(bert_model(folder), providers=["CPUExecutionProvider"])
    reference = BertModel.from_pretrained(folder).eval()
    numbers = np.random.default_rng(0)
    for batch, tokens in ((1, 1), (3, 7), (2, 66)):
        ids = numbers.integers(0, reference.config.vocab_size, (batch, tokens))
        mask = np.ones_like(ids)
        mask[-1, (tokens + 1) // 2 :] = 0
        (hidden,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
        with torch.no_grad():
            expected = reference(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask)).last_hidden_state
        assert np.abs(hidden - expected.numpy()).max() < 1e-5
        assert hidden.shape == (batch, tokens, 32)
