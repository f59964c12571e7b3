/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The verifier's parts.
#ifndef DLCRT_VERIFY_H
#define DLCRT_VERIFY_H

#include "Module.h"

namespace dlcrt::impl {

/// Every operand is an earlier node, every symbol less than `symbolCount`. `where` begins the messages.
Status verifyExprs(Span<dlcrt_expr_node> nodes, uint64_t symbolCount, const char *where, Error *error);

/// Checks the plan of variant `index`, whose tables are verified, and describes it in `plan`.
Status verifyPlan(Module &module, uint32_t index, Plan &plan, Error *error);

} // namespace dlcrt::impl
#endif
