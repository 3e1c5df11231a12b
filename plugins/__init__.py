"""Everything that can be swapped: interpreters, policies, optimizers, environments, and the sentences."""
