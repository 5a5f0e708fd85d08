"""A person's hand on memory: look up, add, edit, delete, export; and the same for an agent."""
