"""Permission-Semantic Admission: what may each unit of a memory be used for in this answer?"""

from memguard.methods.permission_semantic.graph import create_permission_semantic_graph

__all__ = ["create_permission_semantic_graph"]
