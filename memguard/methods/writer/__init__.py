"""The writer: candidates from a conversation."""

from memguard.methods.writer.graph import create_writer_graph, readable_turns
from memguard.methods.writer.readers import make_reader

__all__ = ["create_writer_graph", "make_reader", "readable_turns"]
