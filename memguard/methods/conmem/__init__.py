"""ConMem: what does a memory do to later answers?"""

from memguard.methods.conmem.graph import create_conmem_graph
from memguard.methods.conmem.panel import Panel, make_panel, prompt_names

__all__ = ["Panel", "create_conmem_graph", "make_panel", "prompt_names"]
