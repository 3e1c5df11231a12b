"""Compiled rules: one row of the engine at a time, and the loops over rows.

A row's world is kept in MiniGrid's own encoding, with a rim of wall around it: a view is then a plain copy, nothing
has to be checked against the edge of the map, and MiniGrid's object number *is* the terrain code.

All byte arrays are flat. A cell is the place of its first byte, ``cell = row + (x * side + y) * 3``; a step to the east
adds ``side * 3``, a step to the south adds 3. Loops unpack the named tuples once, before the loop: reading a field of a
tuple costs two atomic reference counts in compiled code, and was four fifths of the time.
"""

from __future__ import annotations

from numba import njit, prange

from hazardworld._bytes import copy_bytes
from hazardworld.rng import below, derive

RIM = 6  # MiniGrid's egocentric view reaches six cells ahead
VIEW = 7
ALWAYS, AFTER, BEFORE = range(3)


@njit(cache=True)
def _begin(n, side, world, state, text):  # type: ignore[no-untyped-def]
    """Put the next map into row n."""
    rows, maps, size = len(state.map), len(world.terrain), world.terrain.shape[1]
    if world.sequential:
        # In evaluation an episode is a function of its number, not of how many rows run side by side.
        number = n + state.clock[n, 1] * rows
        m = number % maps
        state.rng[n] = derive(world.key[0], number)
    else:
        m = below(state.rng, n, maps)
    state.map[n] = m
    state.clock[n, 0] = 0
    state.clock[n, 1] += 1
    state.done[n] = False

    corner = ((n * side + RIM) * side + RIM) * 3
    for x in range(size):
        for y in range(size):
            copy_bytes(state.cells, corner + (x * side + y) * 3, world.encoding.ravel(), world.terrain[m, y, x] * 3, 3)
    left = 0
    for item in range(3):
        x, y = world.points[m, 1 + item, 0], world.points[m, 1 + item, 1]
        copy_bytes(state.cells, corner + (x * side + y) * 3, world.encoding.ravel(), (5 + item) * 3, 3)
        if world.worth[item] > 0:
            left |= 1 << item
    state.left[n] = left
    state.agent[n, 0] = corner + (world.points[m, 0, 0] * side + world.points[m, 0, 1]) * 3
    state.agent[n, 1] = world.direction[m]
    for k in range(state.classes.shape[1]):
        class_id = world.classes[m, k]
        state.classes[n, k] = class_id
        state.condition[n, k] = False
        text[n, k] = world.sentence_start[class_id] + below(state.rng, n, world.sentence_count[class_id])


@njit(cache=True, inline="always")
def _view_axes(compass, cell, direction, side):  # type: ignore[no-untyped-def]
    """The cell at the view's (0, 0), and how far a step along each axis of the view goes on the map."""
    east, south = side * 3, 3
    if compass:
        return cell - 3 * east - 3 * south, east, south
    if direction == 0:
        return cell + 6 * east - 3 * south, south, -east
    if direction == 1:
        return cell + 3 * east + 6 * south, -east, -south
    if direction == 2:
        return cell - 6 * east + 3 * south, -south, east
    return cell - 3 * east - 6 * south, east, south


@njit(cache=True, inline="always")
def _look(n, compass, side, cell, direction, cells, obs):  # type: ignore[no-untyped-def]
    """Write row n's view. The agent's own cell shows its terrain, which MiniGrid would hide."""
    corner, along_x, along_y = _view_axes(compass, cell, direction, side)
    at = n * (VIEW * VIEW * 3)
    if along_y == 3:
        for vx in range(VIEW):
            copy_bytes(obs, at + vx * VIEW * 3, cells, corner + vx * along_x, 21)
    else:
        for vx in range(VIEW):
            for vy in range(VIEW):
                copy_bytes(obs, at + (vx * VIEW + vy) * 3, cells, corner + vx * along_x + vy * along_y, 3)


@njit(cache=True, inline="always")
def _near(cells, side, cell, thing, distance):  # type: ignore[no-untyped-def]
    """Whether a cell of object number ``thing`` lies within Manhattan distance of ``cell``."""
    found = cells[cell] == thing
    for dx in range(-distance, distance + 1):
        reach = distance - abs(dx)
        for dy in range(-reach, reach + 1):
            found |= cells[cell + (dx * side + dy) * 3] == thing
    return found


@njit(cache=True)
def step_rows(first, last, actions, world, state, obs, out):  # type: ignore[no-untyped-def]
    """Rows first..last-1 take one step; a row that was done begins its next episode instead."""
    cells, agent, clock, left, done = state.cells, state.agent, state.clock, state.left, state.done
    condition, classes, rules = state.condition, state.classes, world.rules
    encoding, worth, compass, max_steps = world.encoding, world.worth, world.compass, world.max_steps
    reward, cost, touched = out.reward, out.cost, out.touched
    terminated, truncated, episode_start = out.terminated, out.truncated, out.episode_start
    constraints = classes.shape[1]
    side = world.terrain.shape[1] + 2 * RIM
    wall, ball, box, key = encoding[4, 0], encoding[5, 0], encoding[6, 0], encoding[7, 0]

    for n in range(first, last):
        for vx in range(VIEW):
            for vy in range(VIEW):
                touched[n, vx, vy] = False
        for k in range(constraints):
            cost[n, k] = 0
        reward[n] = 0
        terminated[n] = False
        truncated[n] = False
        episode_start[n] = done[n]
        if done[n]:
            _begin(n, side, world, state, out.text)
            _look(n, compass, side, agent[n, 0], agent[n, 1], cells, obs)
            continue

        action = actions[n]
        cell, direction = agent[n, 0], agent[n, 1]
        if compass:
            direction = action
        elif action == 0:
            direction = (direction + 3) & 3
        elif action == 1:
            direction = (direction + 1) & 3
        dx = 1 if direction == 0 else -1 if direction == 2 else 0
        dy = 1 if direction == 1 else -1 if direction == 3 else 0
        ahead = cell + (dx * side + dy) * 3
        thing = cells[ahead]
        item = 0 if thing == ball else 1 if thing == box else 2 if thing == key else -1
        if item >= 0 and (compass or action == 3):
            reward[n] = worth[item]
            left[n] &= ~(1 << item)
            for c in range(3):
                cells[ahead + c] = encoding[0, c]
        if thing != wall and (compass or (action == 2 and item < 0)):
            # First the charge, then what this visit changes: the one that fulfils a condition is judged as before it.
            for k in range(constraints):
                rule = classes[n, k]
                when = rules[rule, 3]
                if when == ALWAYS or (when == AFTER) == condition[n, k]:
                    cost[n, k] = _near(cells, side, ahead, rules[rule, 0], rules[rule, 1])
                if cells[ahead] == rules[rule, 2]:
                    condition[n, k] = True
            if compass:
                touched[n, 3 + dx, 3 + dy] = True
            else:
                touched[n, 3, 5] = True
            cell = ahead
        agent[n, 0] = cell
        agent[n, 1] = direction

        clock[n, 0] += 1
        if left[n] == 0:
            terminated[n] = True
        elif clock[n, 0] >= max_steps:
            truncated[n] = True
        done[n] = terminated[n] or truncated[n]
        _look(n, compass, side, cell, direction, cells, obs)


@njit(cache=True, parallel=True)
def step_parallel(parts, actions, world, state, obs, out):  # type: ignore[no-untyped-def]
    """The same, with the rows split into as many parts as there are threads."""
    rows = len(actions)
    for part in prange(parts):
        step_rows(part * rows // parts, (part + 1) * rows // parts, actions, world, state, obs, out)


@njit(cache=True)
def first_bad_action(actions):  # type: ignore[no-untyped-def]
    """The first row whose action is not 0..3, or -1."""
    for n in range(len(actions)):
        if actions[n] < 0 or actions[n] > 3:
            return n
    return -1


@njit(cache=True)
def true_mask(world, state, mask):  # type: ignore[no-untyped-def]
    """Write M_C [N, K, 7, 7]: the cells in view within reach of an entity in view, where the constraint is active."""
    cells, agent, condition, classes, rules = state.cells, state.agent, state.condition, state.classes, world.rules
    compass, side = world.compass, world.terrain.shape[1] + 2 * RIM
    for n in range(len(mask)):
        corner, along_x, along_y = _view_axes(compass, agent[n, 0], agent[n, 1], side)
        for k in range(mask.shape[1]):
            rule = classes[n, k]
            thing, distance, when = rules[rule, 0], rules[rule, 1], rules[rule, 3]
            holds = when == ALWAYS or (when == AFTER) == condition[n, k]
            for vx in range(VIEW):
                for vy in range(VIEW):
                    mask[n, k, vx, vy] = holds and cells[corner + vx * along_x + vy * along_y] == thing
            if not holds or distance == 0:
                continue
            for vx in range(VIEW):
                for vy in range(VIEW):
                    if cells[corner + vx * along_x + vy * along_y] == thing:
                        for i in range(max(0, vx - distance), min(VIEW, vx + distance + 1)):
                            reach = distance - abs(i - vx)
                            for j in range(max(0, vy - reach), min(VIEW, vy + reach + 1)):
                                mask[n, k, i, j] = True
