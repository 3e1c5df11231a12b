"""Speed, measured as ratios within one run on one machine: ``python -m benchmarks [NAME ...]``.

A benchmark is a module here with ``run() -> list[tuple[str, float, str]]``, rows of (what, number, unit). Rows with the
unit ``times`` are the ratios; a module may name the ratio that it aims at as ``AIM``.
"""
