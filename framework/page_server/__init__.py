"""The page to play with: a small server over the same agents, interpreters and worlds that training uses."""
