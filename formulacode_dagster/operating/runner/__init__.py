"""The runner of stages and the ledger of their items: pending items, results, claims, gates."""
