"""Runs in the interpreter of the user's project: torch, cutlass, tvm_ffi, numpy and the standard library, no more."""
