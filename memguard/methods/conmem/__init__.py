"""ConMem: what does a memory do to later answers?

Nothing is imported here: settings, log and rules are read without loading LangGraph.
"""
