# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose inputs and outputs are what is tested."""
from onnx import TensorProto, helper

F = TensorProto.FLOAT


def info(name, *dims, type=F):
    return helper.make_tensor_value_info(name, type, dims)


def model(inputs, outputs=None, nodes=None, weights=(), ir=8):
    nodes = nodes if nodes is not None else [helper.make_node("Neg", [inputs[0].name], ["out"])]
    outputs = outputs if outputs is not None else [info("out", "anything")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir)


def weight(name, *values, type=F):
    return helper.make_tensor(name, type, [len(values)], values)


def models():
    bsx = info("x", "batch", "seq", 3)
    yield "names", model([bsx, info("y", "batch", "?", None), info("in:0", "", "unk__7", "p2o.DynamicDimension.0", "y_d1"), info("z", "lonely")]), []
    yield "hints", model([bsx], [info("out", 7, 7, 7)]), []
    yield "fixed", model([bsx]), ["--dim", "batch=4", "--dim", "seq=1..512", "--dim", "seq%8"]
    yield "shaped", model([bsx, info("y", "batch")]), ["--shape", "x=4x?x3"]
    no_rank = info("x")
    no_rank.type.tensor_type.ClearField("shape")
    yield "rank_given", model([no_rank]), ["--shape", "x=2x?"]
    add = [helper.make_node("Add", ["x", "w"], ["out"])]
    yield "default", model([info("x", 2), info("w", 2)], nodes=add, weights=[weight("w", 1.0, 2.0)]), []
    yield "listed", model([info("x", 2), info("w", 2)], nodes=add, weights=[weight("w", 1.0, 2.0)], ir=3), []

    yield "no_rank", model([no_rank]), []
    yield "no_such_dim", model([bsx]), ["--dim", "sequence=3", "--dim", "height=1..9"]
    yield "no_such_input", model([bsx]), ["--shape", "image=1x2x3"]
    yield "wrong_rank", model([bsx]), ["--shape", "x=1x2"]
    yield "wrong_dim", model([bsx]), ["--shape", "x=1x2x4"]
    yield "two_sizes", model([bsx, info("y", "batch")]), ["--shape", "x=2x?x3", "--shape", "y=3"]
    yield "outside_range", model([bsx]), ["--shape", "x=9x?x3", "--dim", "batch=1..8"]
    yield "no_multiple", model([bsx]), ["--shape", "x=9x?x3", "--dim", "batch%8"]
    yield "negative_dim", model([info("x", -2)]), []
    yield "string_input", model([info("x", 2, type=TensorProto.STRING)]), []
    sequence = helper.make_tensor_sequence_value_info("x", F, [2])
    yield "sequence_input", model([sequence]), []
    yield "other_default", model([info("x", 2), info("w", 2)], nodes=add, weights=[weight("w", 1, 2, type=TensorProto.INT32)]), []
    yield "same_inputs", model([bsx, bsx]), []
    y = [helper.make_node("Neg", ["x"], ["y"])]
    yield "same_outputs", model([bsx], [info("y", 1), info("y", 1)], y), []
    yield "no_maker", model([bsx], [info("y", 1)]), []
    yield "other_output", model([bsx], [info("y", 1, type=TensorProto.INT64)], y), []
    yield "no_output", model([bsx], []), []
