"""What a model is told of the CuTe DSL: a fixed guide, and the sections that fit a task and its errors."""

from cutesmith_agent.knowledge.pack import Section, fixed_part
from cutesmith_agent.knowledge.retrieval import sections

__all__ = ["Section", "fixed_part", "sections"]
