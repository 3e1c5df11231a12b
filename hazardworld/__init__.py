"""HazardWorld-grid, HazardWorld-robot and LavaWall: worlds whose rules are sentences.

The benchmark by itself: nothing here knows the Heed framework. ``import hazardworld`` registers the Gymnasium ids;
``hazardworld.engine`` steps thousands of the same worlds at once, and a test holds the two to the same behaviour.
"""

from __future__ import annotations

import gymnasium

IDS: dict[str, tuple[str, dict[str, str]]] = {
    "HazardWorld-Budgetary-v0": ("hazardworld.reference:HazardWorldEnv", {"kind": "budgetary"}),
    "HazardWorld-Relational-v0": ("hazardworld.reference:HazardWorldEnv", {"kind": "relational"}),
    "HazardWorld-Sequential-v0": ("hazardworld.reference:HazardWorldEnv", {"kind": "sequential"}),
    "LavaWall-v0": ("hazardworld.reference:LavaWallEnv", {}),
    "HazardWorld-Robot-Budgetary-v0": ("hazardworld.robot.environment:HazardWorldRobotEnv", {"kind": "budgetary"}),
    "HazardWorld-Robot-Relational-v0": ("hazardworld.robot.environment:HazardWorldRobotEnv", {"kind": "relational"}),
    "HazardWorld-Robot-Sequential-v0": ("hazardworld.robot.environment:HazardWorldRobotEnv", {"kind": "sequential"}),
}


def register() -> None:
    """Tell Gymnasium about the ids. ``gymnasium.make("hazardworld:LavaWall-v0")`` imports this package by itself."""
    for name, (entry_point, kwargs) in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=entry_point, kwargs=kwargs)


register()
