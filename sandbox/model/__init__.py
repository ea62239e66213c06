"""An OpenAI-compatible model on localhost that answers by transparent rules, and says so."""
