"""The only place where a model is called. Nothing here imports a model's package until it runs."""
