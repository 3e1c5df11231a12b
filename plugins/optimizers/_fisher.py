"""Products of the Fisher matrix with vectors: J' W J v, without ever holding a matrix.

J is the Jacobian of what a distribution is made of (log-probabilities; mean and log_std) in the actor's weights, W the
information in them, which is diagonal. That is the Hessian of KL(old || new) at old = new, at half the price for a
recurrent policy: no second derivatives of the network are taken, since their part of that Hessian is zero. And
v' J' W J v is a sum of squares, so it is never negative, whatever rounding does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from framework.interfaces import Distribution


class Fisher:
    """The Fisher matrix of a policy's distribution on a batch, as an operator on vectors: ``fisher @ vector``."""

    def __init__(self, distribution: Distribution, weights: list[nn.Parameter]) -> None:
        parts = [(made, weight) for made, weight in distribution.fisher() if made.requires_grad]
        self._made = [made for made, _ in parts]
        self._information = [weight / len(weight) for _, weight in parts]  # the mean over the batch
        self._weights = weights
        # J'u is linear in u: differentiating it by u gives products with J, whatever u is.
        self._seeds = [torch.zeros_like(made, requires_grad=True) for made in self._made]
        self._pulled = self._pull(self._seeds, graph=True)

    def __matmul__(self, vector: Tensor) -> Tensor:
        pushed = torch.autograd.grad(self._pulled @ vector, self._seeds, retain_graph=True)
        return self._pull([w * jv for w, jv in zip(self._information, pushed, strict=True)]).detach()

    def _pull(self, cotangents: list[Tensor], graph: bool = False) -> Tensor:
        """J'u, as one vector."""
        grads = torch.autograd.grad(
            self._made, self._weights, cotangents, retain_graph=True, create_graph=graph, allow_unused=True
        )
        return join(grads, self._weights)


def join(grads: tuple[Tensor | None, ...], weights: list[nn.Parameter]) -> Tensor:
    """Gradients end to end, zeros where a weight had no part."""
    return torch.cat([
        (torch.zeros_like(p) if grad is None else grad).reshape(-1) for grad, p in zip(grads, weights, strict=True)
    ])  # fmt: skip
