# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that each call the one before twice."""
import onnx.parser


def models():
    text = '<ir_version: 10, opset_import: ["" : 17, "my" : 1]> g (float[2] x) => (float[2] y) { y = my.F39(x) }'
    text += '<domain: "my", opset_import: ["" : 17]> F0(x) => (y) { y = Neg(x) }'
    for i in range(1, 40):
        text += f'<domain: "my", opset_import: ["" : 17, "my" : 1]> F{i}(x) => (y) {{ a = my.F{i - 1}(x) y = my.F{i - 1}(a) }}'
    yield "doubling", onnx.parser.parse_model(text), []
