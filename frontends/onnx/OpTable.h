// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Which code imports which operator. An entry serves a node when its since-version is the largest that is not above the
// version of the operator set the model imports; opset history ends here.

#ifndef DLC_FRONTENDS_ONNX_OPTABLE_H
#define DLC_FRONTENDS_ONNX_OPTABLE_H

#include "NodeReader.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <map>

namespace dlc {

/// The versions of the standard operator set that the table was written for.
inline constexpr int64_t kOldestOpset = 6;
inline constexpr int64_t kNewestOpset = 28;
/// The domain of the operators that ONNX Runtime's optimizer and exporters for it write.
inline constexpr llvm::StringLiteral kMicrosoft = "com.microsoft";

class OpTable {
public:
  using Handler = std::function<void(NodeReader &)>;

  /// All operators of all families.
  static const OpTable &get();

  /// Null when there is no entry.
  const Handler *find(llvm::StringRef domain, llvm::StringRef opType, int64_t version) const;
  /// The version of the standard operator set whose function body serves this operator, where it is not the operator's own:
  /// older versions that say the same but came without a body.
  std::optional<int64_t> findBodyVersion(llvm::StringRef opType, int64_t version) const;

  void add(llvm::StringRef opType, int64_t since, Handler handler, llvm::StringRef domain = "");
  void addBody(llvm::StringRef opType, int64_t since, int64_t bodyVersion);
  /// Every entry: domain, operator, since-version.
  void forEach(llvm::function_ref<void(llvm::StringRef, llvm::StringRef, int64_t)> visit) const;

private:
  using Key = std::pair<std::string, std::string>; // domain, operator
  std::map<Key, std::map<int64_t, Handler>> entries;
  std::map<std::string, std::map<int64_t, int64_t>> bodies;
};

// One function a family, each in the file of that name.
void addStructureOps(OpTable &table);
void addElementwiseOps(OpTable &table);
void addContractionOps(OpTable &table);
void addReductionOps(OpTable &table);
void addNormalizationOps(OpTable &table);
void addAttentionOps(OpTable &table);
void addRotaryOps(OpTable &table);
void addMovementOps(OpTable &table);
void addSelectionOps(OpTable &table);
void addVisionOps(OpTable &table);
void addSampleOps(OpTable &table);
void addRecurrentOps(OpTable &table);

} // namespace dlc

#endif
