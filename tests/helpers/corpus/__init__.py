"""Small kernels that a GPU and the emulated device both run: what they are, how they run, how results are compared."""
