"""The writer: extracts candidates from a conversation."""

from memguard.methods.writer.graph import build_writer_graph, create_writer_graph, readable_turns
from memguard.methods.writer.readers import Reader, build_reader
from memguard.methods.writer.rules import Pass

__all__ = [
    "Pass",
    "Reader",
    "build_reader",
    "build_writer_graph",
    "create_writer_graph",
    "readable_turns",
]
