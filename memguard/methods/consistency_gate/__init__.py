"""ConsistencyGate: is a candidate supported by its source?"""

from memguard.methods.consistency_gate.graph import (
    build_consistency_gate_graph,
    create_consistency_gate_graph,
)
from memguard.methods.consistency_gate.judges import build_judge

__all__ = ["build_consistency_gate_graph", "build_judge", "create_consistency_gate_graph"]
