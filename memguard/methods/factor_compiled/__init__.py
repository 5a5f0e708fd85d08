"""Factor-Compiled Admission: which recalled memories may enter the prompt, and as what?"""

from memguard.methods.factor_compiled.graph import create_factor_compiled_graph

__all__ = ["create_factor_compiled_graph"]
