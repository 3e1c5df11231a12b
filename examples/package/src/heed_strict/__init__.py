"""Plugins for Heed; the entry point in pyproject.toml names the module that has the hook."""
