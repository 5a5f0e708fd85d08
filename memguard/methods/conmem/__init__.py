"""ConMem: what does a memory do to later answers?"""

from memguard.methods.conmem.graph import build_conmem_graph, create_conmem_graph
from memguard.methods.conmem.panel import JUDGES, Panel, make_panel, prompt_names

__all__ = [
    "JUDGES",
    "Panel",
    "build_conmem_graph",
    "create_conmem_graph",
    "make_panel",
    "prompt_names",
]
