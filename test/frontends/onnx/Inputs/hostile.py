# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a file should not be."""
import onnx.parser
from onnx import TensorProto, helper


def parse(graph, opset=17, rest=""):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {graph} {rest}')


def plain():
    return parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")


def changed(change, model=None):
    model = model or plain()
    change(model)
    return model


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def nested_ifs(depth):
    """Written by hand: the messages are too deep for the library."""
    graph = field(12, field(1, b"y"))
    for _ in range(depth):
        branch = field(5, field(1, b"then_branch") + varint(20 << 3) + varint(5) + field(6, graph))
        graph = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + branch)
    return b"\x08\x08" + field(8, b"\x10\x11") + field(7, graph)


def nested_types(depth):
    """An input that is a sequence of sequences of ..."""
    kind = field(1, b"\x08\x01")
    for _ in range(depth):
        kind = field(4, field(1, kind))
    return b"\x08\x08" + field(8, b"\x10\x11") + field(7, field(11, field(1, b"x") + field(2, kind)))


def models():
    good = plain().SerializeToString()
    yield "empty", b"", []
    yield "text", b"This is a letter to a friend, and not a model at all.\n" * 20, []
    yield "truncated", good[:-3], []
    yield "no_graph", changed(lambda m: m.ClearField("graph")), []
    yield "no_ir_version", changed(lambda m: m.ClearField("ir_version")), []
    yield "future_ir", changed(lambda m: setattr(m, "ir_version", 999)), []
    yield "no_opset", changed(lambda m: m.ClearField("opset_import")), []
    yield "future_opset", changed(lambda m: setattr(m.opset_import[0], "version", 999)), []
    yield "old_opset", changed(lambda m: setattr(m.opset_import[0], "version", 5)), []
    yield "two_opsets", changed(lambda m: m.opset_import.add(domain="ai.onnx", version=12)), []
    yield "nested", nested_ifs(2000), []
    yield "nested_types", nested_types(2000), []

    def odd_names(model):
        model.graph.node[0].name = "a\nb\0c"
        model.graph.node[0].op_type = "RandomNormalLike"
    yield "names", changed(odd_names), []

    softmax = parse("g (float[2, 2] x) => (float[2, 2] y) { y = Softmax<axis = 0>(x) }")
    yield "same_attributes", changed(lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0]), softmax), []
    softmax = parse("g (float[2, 2] x) => (float[2, 2] y) { y = Softmax<axis = 0>(x) }")
    yield "reference", changed(lambda m: setattr(m.graph.node[0].attribute[0], "ref_attr_name", "where"), softmax), []
    constant = parse("g () => (float[2] y) { y = Constant<value = float[2] {1.0, 2.0}>() }")
    yield "no_tensor", changed(lambda m: m.graph.node[0].attribute[0].ClearField("t"), constant), []
    yield "no_initializer_name", changed(lambda m: m.graph.initializer.add(data_type=TensorProto.FLOAT)), []
    body = '<domain: "my", opset_import: ["" : 17]> F(x) => (y) { y = Neg(x) }'
    yield "same_functions", parse("g (float[2] x) => (float[2] y) { y = Neg(x) }", rest=body + body), []
    fork = ("g (float[2] x) => (float[2] y) <bool c = {1}> "
            "{ y = If (c) <then_branch = t () => (float[2] p) { p = Neg(x) }, else_branch = e () => (float[2] q) { q = Neg(x) }> }")
    def branch_inputs(model):
        for attribute in model.graph.node[0].attribute:
            attribute.g.input.add(name="z")
    yield "branch_inputs", changed(branch_inputs, parse(fork)), []
    yield "condition", changed(lambda m: m.graph.initializer[0].CopyFrom(helper.make_tensor("c", TensorProto.BOOL, [2], [1, 0])), parse(fork)), []
    yield "output_name", changed(lambda m: m.graph.node[0].ClearField("output")), []
