"""What the read-time methods share: one batched call that judges, and the steps around it."""
