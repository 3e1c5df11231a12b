"""Heed: safe reinforcement learning with constraints said in plain language."""

__version__ = "0.1.0"
