// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NodeReader.h"
#include "OpTable.h"
#include "Weights.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"
#include "gtest/gtest.h"

using namespace dlc;
using namespace mlir;

namespace {

class NodeReaderTest : public ::testing::Test {
protected:
  NodeReaderTest() : builder(&context), loc(builder.getUnknownLoc()), weights(&context, "") {
    context.loadDialect<DlcDialect>();
    context.loadDialect<func::FuncDialect>();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    node.opType = "Test";
    node.version = 17;
    node.outputs = {"out"};
  }

  void addInput(StringRef name, bool poisoned = false) {
    node.inputs.push_back({name.str(), name.empty() ? Value() : makeStandIn(builder, loc, builder.getF32Type()), poisoned});
  }
  onnx::AttributeProto &addAttribute(StringRef name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto &attribute = *message.add_attribute();
    attribute.set_name(name.str());
    attribute.set_type(type);
    return attribute;
  }
  NodeReader reader() {
    node.attributes.clear();
    for (const onnx::AttributeProto &attribute : message.attribute())
      node.attributes.push_back({attribute.name(), &attribute});
    return NodeReader(builder, loc, node, weights);
  }
  /// What is wrong once the reader is finished.
  std::string errors(NodeReader &n) {
    n.finish();
    std::string text;
    for (const std::string &error : n.getErrors())
      text += error + "\n";
    return text;
  }

  MLIRContext context;
  OpBuilder builder;
  Location loc;
  Weights weights;
  OwningOpRef<ModuleOp> module;
  onnx::NodeProto message;
  NodeInfo node;
};

TEST_F(NodeReaderTest, EverythingRead) {
  addInput("x");
  addInput("");
  addInput("y");
  addAttribute("axis", onnx::AttributeProto::INT).set_i(3);
  addAttribute("alpha", onnx::AttributeProto::FLOAT).set_f(0.5f);
  addAttribute("mode", onnx::AttributeProto::STRING).set_s("linear");
  addAttribute("pads", onnx::AttributeProto::INTS).add_ints(7);
  NodeReader n = reader();
  EXPECT_EQ(n.input(0), node.inputs[0].value);
  EXPECT_EQ(n.optionalInput(1), Value());
  EXPECT_EQ(n.input(2), node.inputs[2].value);
  EXPECT_EQ(n.optionalInput(3), Value());
  EXPECT_EQ(n.getInt("axis", 0), 3);
  EXPECT_EQ(n.getFloat("alpha", 0), 0.5f);
  EXPECT_EQ(n.findString("mode"), "linear");
  EXPECT_EQ(n.findInts("pads"), SmallVector<int64_t>{7});
  EXPECT_EQ(n.getInt("missing", 11), 11);
  EXPECT_EQ(errors(n), "");
}

TEST_F(NodeReaderTest, UnreadIsAnError) {
  addInput("x");
  addInput("extra");
  addAttribute("strange", onnx::AttributeProto::INT);
  NodeReader n = reader();
  n.input(0);
  EXPECT_EQ(errors(n), "its attribute 'strange' is not supported\nits input 1 'extra' is not supported\n");
  EXPECT_TRUE(n.failed());
}

TEST_F(NodeReaderTest, WrongAttributeType) {
  addAttribute("axis", onnx::AttributeProto::FLOAT);
  NodeReader n = reader();
  EXPECT_EQ(n.getInt("axis", 5), 5);
  EXPECT_EQ(errors(n), "its attribute 'axis' is of type float, where int is expected\n");
}

TEST_F(NodeReaderTest, MissingInputHasAStandIn) {
  addInput("");
  NodeReader n = reader();
  EXPECT_TRUE(n.input(0));
  EXPECT_TRUE(n.input(1));
  EXPECT_EQ(errors(n), "input 0 is missing\ninput 1 is missing\n");
}

TEST_F(NodeReaderTest, NoWordAboutWhatFollowsFromAnotherError) {
  addInput("axes", /*poisoned=*/true);
  NodeReader n = reader();
  EXPECT_TRUE(n.constantInts(0, "axes").empty());
  EXPECT_EQ(errors(n), "");
  EXPECT_TRUE(n.failed());
}

TEST_F(NodeReaderTest, ConstantInput) {
  addInput("axes");
  addInput("axis");
  NodeReader maker = reader();
  node.inputs[0].value = maker.ints({1, -2});
  node.inputs[1].value = maker.scalar(4, builder.getI32Type());
  NodeReader n = reader();
  EXPECT_EQ(n.constantInts(0, "axes"), (SmallVector<int64_t>{1, -2}));
  EXPECT_EQ(n.constantInt(1, "axis"), 4);
  EXPECT_FALSE(n.optionalConstantInts(2, "more"));
  EXPECT_EQ(errors(n), "");
  NodeReader again = reader();
  again.constantInt(0, "axis");
  EXPECT_EQ(errors(again), "its axis (input 0 'axes') must be one number, not 2\n");
}

TEST_F(NodeReaderTest, ElementTypes) {
  addAttribute("to", onnx::AttributeProto::INT).set_i(onnx::TensorProto::BFLOAT16);
  addAttribute("far", onnx::AttributeProto::INT).set_i(INT64_MAX);
  NodeReader n = reader();
  EXPECT_TRUE(n.getElementType("to").isBF16());
  n.getElementType("far");
  EXPECT_EQ(errors(n), "its attribute 'far' asks for element type unknown (2147483647), which dlc does not support\n");
}

TEST_F(NodeReaderTest, Scalars) {
  NodeReader n = reader();
  auto valueOf = [](Value value) { return NodeReader::constantOf(value); };
  auto splat = [&](auto element, Type type) { return TypedAttr(DenseElementsAttr::get(RankedTensorType::get({}, type), element)); };
  EXPECT_EQ(valueOf(n.scalar(0.5, builder.getF32Type())), splat(0.5f, builder.getF32Type()));
  EXPECT_EQ(valueOf(n.scalar(-3, builder.getI64Type())), splat(int64_t(-3), builder.getI64Type()));
  EXPECT_EQ(valueOf(n.scalar(1, builder.getI1Type())), splat(true, builder.getI1Type()));
  Type ui8 = IntegerType::get(&context, 8, IntegerType::Unsigned);
  EXPECT_EQ(valueOf(n.scalar(255, ui8)), splat(uint8_t(255), ui8));
}

TEST(OpTable, NewestEntryThatIsNotTooNew) {
  OpTable table;
  int called = 0;
  for (int since : {1, 11, 13})
    table.add("Op", since, [since, &called](NodeReader &) { called = since; });
  MLIRContext context;
  OpBuilder builder(&context);
  Weights weights(&context, "");
  NodeInfo node;
  NodeReader reader(builder, builder.getUnknownLoc(), node, weights);
  for (auto [version, expected] : {std::pair(6, 1), std::pair(11, 11), std::pair(12, 11), std::pair(13, 13), std::pair(28, 13)}) {
    const OpTable::Handler *handler = table.find("", "Op", version);
    ASSERT_TRUE(handler);
    (*handler)(reader);
    EXPECT_EQ(called, expected) << "opset " << version;
  }
  EXPECT_FALSE(table.find("", "Op", 0));
  EXPECT_FALSE(table.find("", "Other", 13));
  EXPECT_FALSE(table.find("com.example", "Op", 13));
}

TEST(OpTable, BodiesOfLaterVersions) {
  OpTable table;
  table.addBody("Op", 6, 16);
  EXPECT_FALSE(table.findBodyVersion("Op", 5));
  EXPECT_EQ(table.findBodyVersion("Op", 6), 16);
  EXPECT_EQ(table.findBodyVersion("Op", 15), 16);
  EXPECT_FALSE(table.findBodyVersion("Op", 16)); // has its own
}

/// An entry that no operator set has would never be asked for. The library does not know ONNX Runtime's operators, some of which are in the
/// standard domain.
TEST(OpTable, EntriesAreOperators) {
  OpTable::get().forEach([](StringRef domain, StringRef opType, int64_t since) {
    if (domain == kMicrosoft || (since == 1 && (opType == "LayerNormalization" || opType == "SimplifiedLayerNormalization")))
      return;
    int64_t version = std::max<int64_t>(since, kOldestOpset);
    EXPECT_TRUE(onnx::OpSchemaRegistry::Schema(opType.str(), static_cast<int>(version), domain.str()))
        << opType.str() << " in opset " << version;
  });
}

/// When the library learns a newer operator set, each changed operator must be looked at before kNewestOpset goes up.
TEST(OpTable, NewestOpsetIsTheLibrarys) {
  EXPECT_EQ(onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second, kNewestOpset);
}

} // namespace
