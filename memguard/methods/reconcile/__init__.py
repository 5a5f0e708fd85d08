"""Reconciliation: how does an admitted candidate change what is stored already?"""

from memguard.methods.reconcile.config import RECONCILE_PRESETS, Reconcile
from memguard.methods.reconcile.graph import build_reconcile_graph, create_reconcile_graph

__all__ = ["RECONCILE_PRESETS", "Reconcile", "build_reconcile_graph", "create_reconcile_graph"]
