"""HazardWorld by itself: a random agent, and what a sentence made of its walk. Needs gymnasium and hazardworld only.

Type: python examples/gymnasium_loop.py
"""

import gymnasium

import hazardworld  # noqa: F401  (registers the ids)


def main(episodes: int = 5) -> None:
    env = gymnasium.make("HazardWorld-Budgetary-v0")
    env.action_space.seed(0)
    for episode in range(episodes):
        obs, info = env.reset(seed=episode)
        total, cost, over = 0.0, 0.0, False
        while not over:
            obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
            total += reward
            cost += info["cost"]
            over = terminated or truncated
        print(f"{obs['mission']!r} allows {info['budget'][0]}: return {total:g}, cost {cost:g}")
    env.close()


if __name__ == "__main__":
    main()
