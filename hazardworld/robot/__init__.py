"""HazardWorld-robot: Safety-Gymnasium's Point robot among hazards, vases, pillars, buttons and gremlins.

Three statements of one world: ``reference.py`` is Safety-Gymnasium's own classes (slow, the yardstick), ``exact.py`` is
the same arithmetic in MuJoCo for many rows, ``fast.py`` leaves out of MuJoCo whatever cannot matter. Nothing here is
imported by ``import hazardworld``: the grid world needs neither MuJoCo nor Safety-Gymnasium.
"""
