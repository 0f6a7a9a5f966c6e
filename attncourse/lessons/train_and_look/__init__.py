"""Train and look: what a trained head has learned."""
