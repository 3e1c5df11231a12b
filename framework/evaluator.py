"""Plays whole episodes with a fixed policy and keeps what each of them brought."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from framework.agent import Agent, labels_for
from framework.interfaces import ConstraintEnv, Interpretation, Timestep
from framework.ledger import PLAIN, Ledger
from framework.stats import mean_interval


@dataclass(frozen=True)
class Result:
    """E evaluated episodes."""

    reward: Tensor  # [E]
    discounted: Tensor  # [E] discounted reward
    safe_reward: Tensor  # [E] reward before the first move that violates: what it brings if it is stopped there
    cost: Tensor  # [E, K] true
    cost_in_sight: Tensor  # [E, K] the part of it that the true M_C showed before the move
    threshold: Tensor  # [E, K] true h_C
    kind: Tensor  # [E, K]
    text: Tensor  # [E, K] which of the env's sentences
    length: Tensor  # [E]
    ceiling: Tensor  # [E] best reward possible without violation; NaN where unknown
    discounted_ceiling: Tensor  # [E] likewise, discounted

    @property
    def violation(self) -> Tensor:
        """[E]: Delta_C = max(0, cost - h_C), summed over constraints."""
        return (self.cost - self.threshold).clamp(min=0).sum(-1)

    @property
    def violation_in_sight(self) -> Tensor:
        """[E]: the same by what could be seen coming. The rest no reading of the view could have avoided."""
        return (self.cost_in_sight - self.threshold).clamp(min=0).sum(-1)

    def tensors(self) -> dict[str, Tensor]:
        return {f.name: getattr(self, f.name).contiguous() for f in dataclasses.fields(self)}

    def summary(self) -> dict[str, float]:
        """Means over episodes; the first three with a 95 % interval over episodes."""
        low, high = mean_interval(self.reward.numpy())
        safe_low, safe_high = mean_interval(self.safe_reward.numpy())
        violation_low, violation_high = mean_interval(self.violation.numpy())
        return {
            "episodes": float(len(self.reward)),
            "reward": float(self.reward.mean()),
            "reward_low": low,
            "reward_high": high,
            "safe_reward": float(self.safe_reward.mean()),
            "safe_reward_low": safe_low,
            "safe_reward_high": safe_high,
            "discounted_reward": float(self.discounted.mean()),
            "violation": float(self.violation.mean()),
            "violation_low": violation_low,
            "violation_high": violation_high,
            "violation_in_sight": float(self.violation_in_sight.mean()),
            "violation_rate": float((self.violation > 0).float().mean()),
            "cost": float(self.cost.sum(-1).mean()),
            "length": float(self.length.mean()),
            "ceiling_share": _share(self.reward, self.ceiling),
            "discounted_ceiling_share": _share(self.discounted, self.discounted_ceiling),
        }


@torch.no_grad()
def evaluate(
    env: ConstraintEnv, agent: Agent, episodes: int, gamma: float, generator: torch.Generator, greedy: bool = False
) -> Result:
    """Each row plays ceil(episodes / rows) episodes to their end: stopping at a count would favour short ones."""
    quota = math.ceil(episodes / env.rows)
    played = torch.zeros(env.rows, dtype=torch.int64)
    columns: list[dict[str, Tensor]] = []
    now = env.reset()
    inputs, mind = agent.perceive(now, agent.fresh_mind(), agent.no_action(), labels_for(agent.interpreter, env))
    reward, discounted, safe_reward, length = (torch.zeros(env.rows) for _ in range(4))
    cost, in_sight = (torch.zeros(env.rows, env.spec.constraints) for _ in range(2))
    truth = _truth(Ledger.empty(env.rows, env.spec.constraints, env.spec.cells), env, now)
    ceiling, discounted_ceiling = _ceiling(env, 1.0), _ceiling(env, gamma)
    while bool((played < quota).any()):
        distribution = agent.policy.distribution(inputs)
        action = distribution.mode() if greedy else distribution.sample(generator)
        moves = ~now.done if now.final_obs is None else torch.ones_like(now.done)
        before, now = now, env.step(action)
        reward = reward + now.reward * moves
        discounted = discounted + gamma**length * now.reward * moves
        cost = cost + now.cost * moves[:, None]
        kept = (cost <= before.threshold).all(-1)  # so far, this move included
        safe_reward = safe_reward + now.reward * (moves & kept)
        in_sight = in_sight + torch.minimum(truth.charge(now.touched).cost, now.cost) * moves[:, None]
        length = length + moves
        rows = now.done & (played < quota)
        if bool(rows.any()):
            done = {
                "reward": reward,
                "discounted": discounted,
                "safe_reward": safe_reward,
                "cost": cost,
                "cost_in_sight": in_sight,
                "length": length,
            }
            done |= {"ceiling": ceiling, "discounted_ceiling": discounted_ceiling}
            # now's may be the next episode's already
            rule = {"threshold": before.threshold, "kind": before.kind, "text": before.text}
            done |= rule | {"order": played * env.rows + torch.arange(env.rows)}
            columns.append({k: v[rows] for k, v in done.items()})
        played = played + now.done
        keep = ~now.done
        reward, discounted, safe_reward, length = (x * keep for x in (reward, discounted, safe_reward, length))
        cost, in_sight = cost * keep[:, None], in_sight * keep[:, None]
        if bool(now.episode_start.any()):
            ceiling = torch.where(now.episode_start, _ceiling(env, 1.0), ceiling)
            discounted_ceiling = torch.where(now.episode_start, _ceiling(env, gamma), discounted_ceiling)
        truth = _truth(truth, env, now)
        inputs, mind = agent.perceive(now, mind, action, labels_for(agent.interpreter, env))
    # By number within the row, not by when they ended: cutting off the last to end would favour short episodes.
    order = torch.cat([c["order"] for c in columns]).argsort()[:episodes]
    return Result(**{f.name: torch.cat([c[f.name] for c in columns])[order] for f in dataclasses.fields(Result)})


def _truth(books: Ledger, env: ConstraintEnv, now: Timestep) -> Ledger:
    """What is truly forbidden in view now. For measuring: the agent does not see this."""
    labels = env.labels()
    seen = Interpretation(labels.mask.flatten(0, 1), labels.threshold.flatten())
    return books.observe(seen, now.episode_start, PLAIN)


def _share(got: Tensor, best: Tensor) -> float:
    """Of what was possible, over all episodes; NaN when that is not known."""
    known = ~torch.isnan(best)
    return float(got[known].sum() / best[known].sum()) if bool(known.any()) else math.nan


def _ceiling(env: ConstraintEnv, gamma: float) -> Tensor:
    best = env.ceiling(gamma)
    return torch.full((env.rows,), math.nan) if best is None else best
