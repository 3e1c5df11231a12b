"""Stable-Baselines3's PPO on HazardWorld, without the framework: it sees picture and words, and pays for cost.

Type:

    pip install stable-baselines3
    python examples/sb3_on_hazardworld.py --steps 20000
"""

import argparse
import re
import zlib

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import hazardworld  # noqa: F401  (registers the ids)

OBJECTS, WORDS, PRICE = 13, 64, 0.5


class Flat(gymnasium.Wrapper):
    """One vector: the objects in view one-hot, and which buckets the words fill. Cost past the budget is a penalty."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(0, 1, (7 * 7 * OBJECTS + WORDS,), np.float32)

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        self._cost = 0.0
        return self._flat(obs), info

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        budget = float(np.ravel(info["budget"])[0])
        before = max(0.0, self._cost - budget)
        self._cost += float(info["cost"])
        return self._flat(obs), reward - PRICE * (max(0.0, self._cost - budget) - before), terminated, truncated, info

    @staticmethod
    def _flat(obs):
        words = np.zeros(WORDS, np.float32)
        for word in re.findall(r"[a-z]+", obs["mission"].lower()):
            words[zlib.crc32(word.encode()) % WORDS] = 1.0
        return np.concatenate([np.eye(OBJECTS, dtype=np.float32)[obs["image"][..., 0]].ravel(), words])


def main(steps: int = 20_000, seed: int = 0) -> None:
    worlds = make_vec_env(lambda: Flat(gymnasium.make("HazardWorld-Budgetary-v0", labels=False)), n_envs=4, seed=seed)
    model = PPO("MlpPolicy", worlds, n_steps=min(256, max(2, steps // 4)), batch_size=64, seed=seed, device="cpu")
    model.learn(steps)
    mean, spread = evaluate_policy(model, worlds, n_eval_episodes=4, deterministic=False)
    print(f"{model.num_timesteps} steps: return minus penalties {mean:.2f} +- {spread:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
