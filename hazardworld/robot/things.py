"""What is on the floor, in numbers. They are Safety-Gymnasium's; a test compares them with its classes."""

from __future__ import annotations

import numpy as np

KINDS = ("hazards", "vases", "pillars", "buttons", "gremlins")
HAZARDS, VASES, PILLARS, BUTTONS, GREMLINS = range(5)
MOST = 4
"""Solid things of one kind, at the most. Of hazards, which nothing collides with, there may be more."""
GOALS = 5
"""Goals that a layout knows; the task decides how many of them an episode has."""

EXTENT = 2.0  # the floor on which things are placed goes from -EXTENT to EXTENT
ROBOT_RADIUS = 0.1
GOAL_RADIUS = 0.3
RADIUS = np.array([0.2, 0.1, 0.2, 0.1, 0.1])
"""[5]: of the discs between whose rims a gap is measured. Vases and gremlins are boxes of this half width."""
VASE_HEIGHT = 0.1 - 4e-5  # of its middle; vases stand a little sunk into the floor
TRAVEL = 0.3
"""Gremlins go round a circle of this radius about the place where they were put."""

# Free space for placing. Goal and hazards have the values of Safety-Gymnasium's own navigation tasks (all their levels
# set them); with the classes' defaults of 0.4, four of each kind and five goals hardly fit on this floor.
ROBOT_KEEPOUT = 0.4
GOAL_KEEPOUT = 0.305
KEEPOUT = np.array([0.18, 0.15, 0.3, 0.2, 0.5])  # [5]; that of the gremlins holds their circle

STEPS = 10
"""Physics steps in one control step."""
BINS = 16
LIDARS = ("goal", *KINDS)
MAX_DISTANCE = 3.0  # where a lidar reads zero
SENSORS = ("accelerometer", "velocimeter", "gyro", "magnetometer")
OBSERVATION = 3 * len(SENSORS) + BINS * len(LIDARS) + 1
"""109 numbers: four sensors of three, six lidars of sixteen, the distance to the goal."""
