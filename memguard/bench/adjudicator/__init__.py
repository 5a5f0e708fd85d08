"""How the local adjudicator does on labels that need no model."""
