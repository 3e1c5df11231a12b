"""Built-in interpreters: one plugin per file, named as in YAML; files that start with an underscore are helpers."""
