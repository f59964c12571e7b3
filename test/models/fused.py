# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MiniLM and SmolLM2 out of the operators of com.microsoft, as ONNX Runtime's optimizer and exporters for it write them. They compute what the
models of minilm.py and smollm.py do. SmolLM2's positions follow from its cache."""

import numpy as np
import smollm
from decoder import Builder
from minilm import EPSILON, HEADS, LAYERS
from onnx import TensorProto, helper
from weights import Gguf, safetensors

MICROSOFT = "com.microsoft"


class Fused(Builder):
    def fused(self, kind, *operands, **attributes):
        return self.op(kind, *operands, domain=MICROSOFT, **attributes)

    def model(self, name, inputs, outputs):
        made = super().model(name, inputs, outputs)
        made.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
        return made


def minilm(path):
    """The model of the weights in `path`."""
    weights = safetensors(path)
    b = Fused()

    def matrix(name):
        return b.weight(f"{name}.weight", weights[f"{name}.weight"].T)

    def vector(name):
        return b.weight(name, weights[name])

    words, segments, mask = (b.op("Cast", name, to=TensorProto.INT32) for name in ("input_ids", "token_type_ids", "attention_mask"))
    tables = [vector(f"embeddings.{kind}_embeddings.weight") for kind in ("word", "position", "token_type")]
    norm = [vector(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    x = b.fused("EmbedLayerNormalization", words, segments, *tables, *norm, epsilon=EPSILON)
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        parts = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
        merged = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
        bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
        seen = b.fused("Attention", x, b.weight(f"{prefix}.qkv", merged), b.weight(f"{prefix}.qkv.bias", bias), mask, num_heads=HEADS)

        def added(y, name):
            """Behind a product: its bias, what went past it, and a norm."""
            norm = [vector(f"{prefix}.{name}.LayerNorm.{part}") for part in ("weight", "bias")]
            return b.fused("SkipLayerNormalization", y, x, *norm, vector(f"{prefix}.{name}.dense.bias"), epsilon=EPSILON)

        x = added(b.op("MatMul", seen, matrix(f"{prefix}.attention.output.dense")), "attention.output")
        h = b.op("MatMul", x, matrix(f"{prefix}.intermediate.dense"))
        h = b.fused("BiasGelu", h, vector(f"{prefix}.intermediate.dense.bias"))
        x = added(b.op("MatMul", h, matrix(f"{prefix}.output.dense")), "output")
    b.op("Identity", x, outputs=["last_hidden_state"])
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "seq", weights["embeddings.LayerNorm.bias"].size])]
    return b.model("minilm_l6", inputs, outputs)


def smollm2(path):
    """The model of the weights in `path`. Takes what smollm.build's takes, but no positions."""
    gguf = Gguf(path)
    epsilon = gguf.metadata["llama.attention.layer_norm_rms_epsilon"]
    b = Fused()

    def linear(x, name, arranged=lambda matrix: matrix):
        return b.op("MatMul", x, b.weight(name, arranged(gguf.tensor(f"{name}.weight")).T))

    def vector(name):
        return b.weight(name, gguf.tensor(f"{name}.weight"))

    def added(x, y, name):
        """Their sum's norm, and the sum."""
        outputs = [f"{name}.norm", "", "", f"{name}.sum"]
        b.fused("SkipSimplifiedLayerNormalization", x, y, vector(name), outputs=outputs, epsilon=epsilon)
        return outputs[0], outputs[3]

    embedding = b.weight("token_embd", gguf.tensor("token_embd.weight"))
    x = b.op("Gather", embedding, "input_ids")
    tables = [b.weight(name, table[:, : smollm.SIZE // 2])
              for name, table in zip(("cosines", "sines"), smollm.rotary(gguf.metadata["llama.rope.freq_base"]))]
    total = b.op("Cast", b.op("Add", b.dim("past_k.0", 2), b.dim("input_ids", 1)), to=TensorProto.INT32)
    lengths = b.op("Unsqueeze", b.op("Sub", total, np.int32(1)), np.array([0]))
    h = b.op("SimplifiedLayerNormalization", x, vector("blk.0.attn_norm"), axis=-1, epsilon=epsilon)
    for layer in range(smollm.LAYERS):
        prefix = f"blk.{layer}"
        q, k = (linear(h, f"{prefix}.attn_{part}", smollm.halves) for part in "qk")
        caches = [f"past_{part}.{layer}" for part in "kv"]
        outputs = [f"{prefix}.attention", *(f"present_{part}.{layer}" for part in "kv")]
        seen = b.fused("GroupQueryAttention", q, k, linear(h, f"{prefix}.attn_v"), *caches, lengths, total, *tables, outputs=outputs,
                       num_heads=smollm.HEADS, kv_num_heads=smollm.KV_HEADS, do_rotary=1)
        h, x = added(x, linear(seen, f"{prefix}.attn_output"), f"{prefix}.ffn_norm")
        gate = b.op("Mul", b.fused("QuickGelu", linear(h, f"{prefix}.ffn_gate"), alpha=1.0), linear(h, f"{prefix}.ffn_up"))
        following = f"blk.{layer + 1}.attn_norm" if layer + 1 < smollm.LAYERS else "output_norm"
        h, x = added(x, linear(gate, f"{prefix}.ffn_down"), following)
    flat = b.op("Reshape", h, np.array([-1, smollm.WIDTH]))
    b.op("Reshape", b.op("Gemm", flat, embedding, transB=1), np.array([1, -1, smollm.WORDS]), outputs=["logits"])

    value = helper.make_tensor_value_info
    inputs = [value("input_ids", TensorProto.INT64, [1, "step"])]
    outputs = [value("logits", TensorProto.FLOAT, [1, "step", smollm.WORDS])]
    for cache in smollm.CACHES:
        inputs.append(value(f"past_{cache}", TensorProto.FLOAT, [1, smollm.KV_HEADS, "past", smollm.SIZE]))
        outputs.append(value(f"present_{cache}", TensorProto.FLOAT, [1, smollm.KV_HEADS, "total", smollm.SIZE]))
    return b.model("smollm2", inputs, outputs)
