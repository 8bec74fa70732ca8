"""The emulated device: runs the PTX of CuTe kernels on the CPU, with NumPy, and checks every access. No torch here."""
