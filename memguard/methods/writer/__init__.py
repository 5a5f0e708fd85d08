"""The writer: candidates from a conversation."""

from memguard.methods.writer.graph import create_writer_graph, readable_turns

__all__ = ["create_writer_graph", "readable_turns"]
