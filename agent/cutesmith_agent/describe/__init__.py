"""From words to a reference: a forward that is only described, written in PyTorch and held against checks that were
written apart from it."""
