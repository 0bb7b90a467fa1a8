"""The ONNX graph of a BERT encoder, built from the weights of its model folder without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

OPSET = 17
IR_VERSION = 8
"""Format of the file, that of opset 17; the newest one is refused by an older onnxruntime."""
_MASKED = -10_000.0
"""Added to the attention scores of padding: their share is zero in single precision."""


def bert_model(folder: Path) -> bytes:
    """Return the encoder of a model folder as an ONNX model.

    Its inputs are `input_ids` and `attention_mask`, int64 of shape (batch, tokens); its output is `hidden`, float32 of
    shape (batch, tokens, size). All tokens are of segment 0.

    Args:
        folder: A folder with `config.json` and `model.safetensors` of a BERT model with absolute positions and GELU.
    """
    import onnx
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    graph = _Encoder(load_file(folder / "model.safetensors"), config).graph()
    built = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return bytes(built.SerializeToString())


class _Encoder:
    """Adds the nodes of a graph one by one; every method returns the name of its result."""

    def __init__(self, weights: dict[str, np.ndarray], config: dict[str, Any]) -> None:
        self._weights = weights
        self._config = config
        self._nodes: list[Any] = []
        self._constants: dict[str, np.ndarray] = {}

    def graph(self) -> Any:
        """Return the whole encoder, embeddings first."""
        from onnx import TensorProto, helper, numpy_helper

        mask = self._add("Cast", "attention_mask", to=TensorProto.FLOAT)
        mask = self._add("Unsqueeze", mask, self._constant("axes", np.array([1, 2])))
        self._padding = self._add(
            "Mul", self._add("Sub", self._constant("one", 1.0), mask), self._constant("masked", _MASKED)
        )
        hidden = self._embeddings()
        for number in range(self._config["num_hidden_layers"]):
            hidden = self._layer(hidden, f"encoder.layer.{number}")
        self._nodes.append(helper.make_node("Identity", [hidden], ["hidden"]))
        axes = ["batch", "tokens"]
        inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, axes) for n in ("input_ids", "attention_mask")]
        size = self._config["hidden_size"]
        output = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [*axes, size])
        tensors = [
            numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in self._constants.items()
        ]
        return helper.make_graph(self._nodes, "bert", inputs, [output], tensors)

    def _embeddings(self) -> str:
        words = self._add("Gather", self._constant("embeddings.word_embeddings.weight"), "input_ids")
        length = self._add("Shape", "input_ids", start=1, end=2)
        # the segment of all tokens is 0, so its vector is part of each position
        places = self._weights["embeddings.position_embeddings.weight"]
        places = places + self._weights["embeddings.token_type_embeddings.weight"][0]
        zero = self._constant("zero", np.array([0]))
        positions = self._add("Slice", self._constant("positions", places), zero, length, zero)
        return self._normalised(self._add("Add", words, positions), "embeddings.LayerNorm")

    def _layer(self, hidden: str, name: str) -> str:
        attended = self._dense(self._attention(hidden, f"{name}.attention.self"), f"{name}.attention.output.dense")
        hidden = self._normalised(self._add("Add", attended, hidden), f"{name}.attention.output.LayerNorm")
        inner = self._gelu(self._dense(hidden, f"{name}.intermediate.dense"))
        outer = self._dense(inner, f"{name}.output.dense")
        return self._normalised(self._add("Add", outer, hidden), f"{name}.output.LayerNorm")

    def _attention(self, hidden: str, name: str) -> str:
        heads, size = self._config["num_attention_heads"], self._config["hidden_size"]
        split = self._constant("split", np.array([0, 0, heads, size // heads]))
        query, key, value = (
            self._add("Reshape", self._dense(hidden, f"{name}.{part}"), split) for part in ("query", "key", "value")
        )
        query = self._add("Transpose", query, perm=[0, 2, 1, 3])
        key = self._add("Transpose", key, perm=[0, 2, 3, 1])
        value = self._add("Transpose", value, perm=[0, 2, 1, 3])
        scores = self._add("Div", self._add("MatMul", query, key), self._constant("scale", (size // heads) ** 0.5))
        shares = self._add("Softmax", self._add("Add", scores, self._padding), axis=-1)
        joined = self._add("Transpose", self._add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self._add("Reshape", joined, self._constant("join", np.array([0, 0, size])))

    def _dense(self, hidden: str, name: str) -> str:
        matrix = self._constant(f"{name}.weight", self._weights[f"{name}.weight"].T)
        return self._add("Add", self._add("MatMul", hidden, matrix), self._constant(f"{name}.bias"))

    def _gelu(self, hidden: str) -> str:
        """Return x / 2 (1 + erf(x / sqrt 2)), in the form that onnxruntime replaces by one operation."""
        error = self._add("Erf", self._add("Div", hidden, self._constant("root", 2**0.5)))
        scaled = self._add("Mul", hidden, self._add("Add", error, self._constant("one", 1.0)))
        return self._add("Mul", scaled, self._constant("half", 0.5))

    def _normalised(self, hidden: str, name: str) -> str:
        scale, bias = self._constant(f"{name}.weight"), self._constant(f"{name}.bias")
        return self._add("LayerNormalization", hidden, scale, bias, axis=-1, epsilon=self._config["layer_norm_eps"])

    def _add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        output = f"{operation}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, list(inputs), [output], name=output, **attributes))
        return output

    def _constant(self, name: str, value: np.ndarray | float | None = None) -> str:
        """Add an array, a number in single precision or, without a value, the weights of this name."""
        array = self._weights[name] if value is None else value
        self._constants[name] = np.array(array, dtype=np.float32) if isinstance(array, float) else array
        return name
