"""The model as a proposer: write a kernel, mend it by the evaluator's findings, then relieve one bottleneck a round."""
