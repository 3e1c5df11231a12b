"""Our TRPO beside sb3-contrib's, on CartPole: same network, batch, radius, discounts and critics; eight seeds each.

Two independent implementations of one algorithm must learn equally fast. Twelve updates are compared, because from
about the twentieth on every run of either side is at CartPole's cap of 500, where nothing can differ; and eight seeds,
because with three a gap of a hundred at one update is mere chance. Half the radius on one side is a gap of 60 where 15
would be allowed, so the comparison can fail.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from framework.builder import System
from framework.schema import Training
from framework.seeding import derive, seed_everything
from framework.trainer import Trainer
from plugins.envs.gymnasium_adapter import Config as EnvConfig
from plugins.envs.gymnasium_adapter import GymnasiumAdapter
from plugins.interpreters.none import NoInterpreter
from plugins.optimizers.trpo import TRPO
from plugins.policies._uses import Uses
from plugins.policies.mlp import MLP
from plugins.policies.mlp import Config as MLPConfig

pytestmark = pytest.mark.slow

ROWS, BATCH, UPDATES, SEEDS = 8, 2_048, 12, range(8)
GAMMA, LAMBDA, RADIUS, DAMPING, CG, BACKTRACKS, SHRINK = 0.99, 0.95, 0.01, 0.1, 15, 10, 0.8
HIDDEN, CRITIC_RATE, CRITIC_EPOCHS, CRITIC_MINIBATCH = (64, 64), 1e-3, 10, 128
BAR = 150.0
"""Mean episode reward that counts as having learned; a random policy gets about 22."""
CAP = 490.0
"""Just short of the longest episode."""


def ours(seed: int) -> list[float]:
    """Mean reward of the episodes that finished in each batch; NaN if none did."""
    config = EnvConfig(id="CartPole-v1", cost_key=None, autoreset="same_step")
    env = GymnasiumAdapter(config, rows=ROWS, split="train", seed=derive(seed, "env") % 2**31)
    seed_everything(seed)
    policy = MLP(MLPConfig(hidden=HIDDEN, uses=Uses(mask=False, budget=False, threshold=False)), env.spec)
    settings = TRPO.Config(
        kl_radius=RADIUS,
        damping=DAMPING,
        cg_iterations=CG,
        fisher_share=1.0,
        backtracks=BACKTRACKS,
        shrink=SHRINK,
        critic_learning_rate=CRITIC_RATE,
        critic_epochs=CRITIC_EPOCHS,
        critic_minibatch=CRITIC_MINIBATCH,
    )
    system = System(env, NoInterpreter(None, env.spec), policy, TRPO(settings, policy))
    training = Training(steps=UPDATES * BATCH, batch=BATCH, rows=ROWS, gamma=GAMMA, gae_lambda=LAMBDA)
    curve: list[float] = []
    Trainer(system, training, seed, lambda _, metrics: curve.append(metrics.get("reward", np.nan))).train()
    env.close()
    return curve


def theirs(seed: int) -> list[float]:
    """Likewise."""
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed; make test-slow installs it")
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class Curve(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.means: list[float] = []
            self._finished: list[float] = []

        def _on_step(self) -> bool:
            self._finished += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
            return True

        def _on_rollout_end(self) -> None:
            self.means.append(float(np.mean(self._finished)) if self._finished else np.nan)
            self._finished.clear()

    curve = Curve()
    contrib.TRPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=ROWS, seed=seed),
        learning_rate=CRITIC_RATE,
        n_steps=BATCH // ROWS,
        batch_size=CRITIC_MINIBATCH,
        gamma=GAMMA,
        cg_max_steps=CG,
        cg_damping=DAMPING,
        line_search_shrinking_factor=SHRINK,
        line_search_max_iter=BACKTRACKS,
        n_critic_updates=CRITIC_EPOCHS,
        gae_lambda=LAMBDA,
        target_kl=RADIUS,
        sub_sampling_factor=1,
        policy_kwargs={"net_arch": {"pi": list(HIDDEN), "vf": list(HIDDEN)}, "activation_fn": torch.nn.Tanh},
        seed=seed,
        device="cpu",
    ).learn(UPDATES * BATCH, callback=curve)
    return curve.means


def standard_error(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of the difference of two means over seeds (the first axis)."""
    return np.sqrt((np.nanvar(first, axis=0, ddof=1) + np.nanvar(second, axis=0, ddof=1)) / len(SEEDS))


def test_trpo_learns_as_its_peer_does():
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed; make test-slow installs it")
    a, b = (np.array([side(seed) for seed in SEEDS]) for side in (ours, theirs))  # [seeds, updates]
    speed_a, speed_b = np.nanmean(a, axis=1), np.nanmean(b, axis=1)  # area under each curve
    gap, error = float(speed_a.mean() - speed_b.mean()), float(standard_error(speed_a, speed_b))
    curve_a, curve_b = np.nanmean(a, axis=0), np.nanmean(b, axis=0)
    figures = f"ours {speed_a.mean():.1f}, theirs {speed_b.mean():.1f}, standard error of the gap {error:.1f}\n"
    figures += f"ours   {curve_a.round().tolist()}\ntheirs {curve_b.round().tolist()}"
    print(figures)
    assert min(curve_a[-4:].min(), curve_b[-4:].min()) > BAR, figures
    assert max(curve_a.max(), curve_b.max()) < CAP, "at the cap nothing can differ"
    assert abs(gap) <= 2.2 * error, figures  # 19 of 20 for two means of eight seeds
    assert (np.abs(curve_a - curve_b) <= 3 * standard_error(a, b) + 0.05 * curve_b).all(), figures  # at each update
