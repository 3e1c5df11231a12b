"""Action distributions: the two that policies return, with exactly what trust-region methods need.

``torch.distributions`` validates and broadcasts on every call, which costs more than a small policy's forward pass;
these are plain formulas. ``kl(old, new)`` is KL(old || new) for both (safe-RL code that swaps the two measures the
wrong trust region).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Categorical:
    """Over ``A`` choices; ``log_probs`` are normalised."""

    log_probs: Tensor  # [B, A]

    @classmethod
    def from_logits(cls, logits: Tensor) -> Categorical:
        return cls(torch.log_softmax(logits, dim=-1))

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """[B] int64, by the Gumbel-max trick (multinomial's own kernel is several times slower on small batches)."""
        noise = torch.rand(self.log_probs.shape, generator=generator, device=self.log_probs.device)
        return (self.log_probs - torch.log(-torch.log(noise.clamp_(1e-20, 1 - 1e-7)))).argmax(-1)

    def mode(self) -> Tensor:
        return self.log_probs.argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.log_probs.exp() * self.log_probs).sum(-1)

    def detach(self) -> Categorical:
        return Categorical(self.log_probs.detach())

    def fisher(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Each tensor that the policy gave, with the diagonal of the Fisher information in it."""
        return ((self.log_probs, self.log_probs.detach().exp()),)


@dataclass(frozen=True)
class Gaussian:
    """Independent normals, one per action dimension."""

    mean: Tensor  # [B, A]
    log_std: Tensor  # [B, A]

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        noise = torch.randn(self.mean.shape, generator=generator, device=self.mean.device)
        return self.mean + self.log_std.exp() * noise

    def mode(self) -> Tensor:
        return self.mean

    def log_prob(self, action: Tensor) -> Tensor:
        z = (action - self.mean) * torch.exp(-self.log_std)
        return (-0.5 * z.square() - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self) -> Tensor:
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def detach(self) -> Gaussian:
        return Gaussian(self.mean.detach(), self.log_std.detach())

    def fisher(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Each tensor that the policy gave, with the diagonal of the Fisher information in it."""
        variance = torch.exp(2 * self.log_std.detach())
        return ((self.mean, 1 / variance), (self.log_std, torch.full_like(variance, 2.0)))


Distribution = Categorical | Gaussian


def kl(old: Distribution, new: Distribution) -> Tensor:
    """KL(old || new) per row, [B]."""
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        return (old.log_probs.exp() * (old.log_probs - new.log_probs)).sum(-1)
    if isinstance(old, Gaussian) and isinstance(new, Gaussian):
        variance_ratio = torch.exp(2 * (old.log_std - new.log_std))
        distance = (old.mean - new.mean) * torch.exp(-new.log_std)
        return (new.log_std - old.log_std + 0.5 * (variance_ratio + distance.square() - 1)).sum(-1)
    raise TypeError(f"KL between {type(old).__name__} and {type(new).__name__} is not defined")
