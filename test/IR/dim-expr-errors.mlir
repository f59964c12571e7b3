// RUN: dlc-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{no dimension function 'twice' of 1 operands}}
func.func private @unknown(tensor<?xf32, #dlc.info<[twice(a)]>>)

// -----

// expected-error @+1 {{the dimension expression has no value}}
func.func private @zero(tensor<?xf32, #dlc.info<[floordiv(a, 0)]>>)
