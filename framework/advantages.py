"""Generalised advantage estimation (Schulman et al., 2016), as one pure function for reward and for cost alike.

    delta_t = r_t + gamma * (1 - terminated_t) * V(next_t) - V_t
    A_t     = delta_t + gamma * lambda * (1 - done_t) * A_{t+1}

Truncation is not termination: at a time limit V(next) still counts, and only the chain of advantages is cut.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gae(
    reward: Tensor,  # [T, N]
    value: Tensor,  # [T, N] of the state that is left
    next_value: Tensor,  # [T, N] of the state that is reached, before any reset
    terminated: Tensor,  # [T, N] bool
    done: Tensor,  # [T, N] bool: terminated or truncated
    gamma: float,
    lam: float,
) -> tuple[Tensor, Tensor]:
    """Advantages and value targets, [T, N] each."""
    delta = reward + gamma * next_value * ~terminated - value
    carry = gamma * lam * ~done
    advantage = torch.zeros_like(reward)
    running = torch.zeros_like(reward[0])
    for t in reversed(range(len(reward))):
        running = delta[t] + carry[t] * running
        advantage[t] = running
    return advantage, advantage + value
