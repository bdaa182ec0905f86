"""A simulation as an environment for reinforcement learning, and an agent that learns weights from its rewards.

One flow of 4 MB has to complete within 10 ms beside three endless flows on a link of 10 Gb/s. Each millisecond the
agent sets the flow's weight. Weight costs, and a missed deadline costs more. The rates are those of s-PERC.
"""

import random

import subak

WEIGHTS = [0.5, 1, 2, 4, 8]
SIZE_BYTES, DEADLINE_MS = 4_000_000, 10
NETWORK = {"kind": "star", "hosts": 5, "rate": "10Gbps"}


class Deadline:
    """The environment, with the methods of gymnasium's ``Env``."""

    def reset(self, seed: int = 1) -> tuple[int, int]:
        """Starts an episode."""
        self.simulation = subak.Simulation(NETWORK, "s-perc", seed=seed)
        self.simulation.add_all([{"src": f"h{k}", "dst": "h4"} for k in (1, 2, 3)])
        self.flow = self.simulation.add("h0", "h4", size=SIZE_BYTES)
        self.now_ms = 0
        return self.observation()

    def observation(self) -> tuple[int, int]:
        """Time left in milliseconds, and tenths of the flow that are left."""
        received = self.simulation.flows.to_numpy()["received_bytes"][self.flow]
        return DEADLINE_MS - self.now_ms, -int(-10 * (SIZE_BYTES - int(received)) // SIZE_BYTES)

    def step(self, action: int) -> tuple[tuple[int, int], float, bool]:
        """Sets a weight for one millisecond; returns observation, reward and whether the episode has ended."""
        self.simulation.set_weight(self.flow, WEIGHTS[action])
        self.now_ms += 1
        finished = self.flow in self.simulation.run(f"{self.now_ms}ms")
        late = not finished and self.now_ms == DEADLINE_MS
        return self.observation(), -WEIGHTS[action] - 100 * late, finished or late


def learn(episodes: int, seed: int = 1) -> list[float]:
    """Learns action values by Q-learning; returns the sum of rewards of each episode."""
    environment, draw, values, returns = Deadline(), random.Random(seed), {}, []
    for episode in range(episodes):
        state, total, over = environment.reset(), 0.0, False
        while not over:
            known = values.setdefault(state, [0.0] * len(WEIGHTS))
            explores = draw.random() < 0.5 * (1 - episode / episodes) ** 2
            action = draw.randrange(len(WEIGHTS)) if explores else known.index(max(known))
            after, reward, over = environment.step(action)
            total += reward
            ahead = 0.0 if over else max(values.get(after, [0.0]))
            known[action] += 0.3 * (reward + ahead - known[action])
            state = after
        returns.append(total)
    return returns


if __name__ == "__main__":
    rewards = learn(400)
    for first in range(0, 400, 50):
        print(f"episodes {first} to {first + 49}: mean sum of rewards {sum(rewards[first : first + 50]) / 50:.1f}")
