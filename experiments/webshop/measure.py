"""Measures the shop: counts, rewards of an oracle, loading, memory and time per step.

Usage: python experiments/webshop/measure.py [WEBSHOP_DATA]
"""

from __future__ import annotations

import random
import resource
import sys
import time

from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.nouns import TitleNouns
from had.envs.webshop.original import OriginalShop
from had.envs.webshop.reward import Titled, type_factor
from had.envs.webshop.shop import Shop
from had.envs.webshop.tasks import WebShopTasks

NUM_EPISODES = 200


def report_rewards(shop: Shop) -> None:
    """Print what an oracle, a shopper without options and one who takes the first result get."""
    searched = {goal.text: shop.catalogue.search(goal.text, 1) for goal in shop.goals}
    shoppers = {
        "goal product, its options": [(goal.asin, goal.options) for goal in shop.goals],
        "goal product, no option": [(goal.asin, ()) for goal in shop.goals],
        "first result of the goal's text, its options": [
            (searched[goal.text][0], goal.options) for goal in shop.goals
        ],
    }
    for name, purchases in shoppers.items():
        rewards = [
            shop.judge(asin, options, goal).value
            for (asin, options), goal in zip(purchases, shop.goals, strict=True)
        ]
        share = sum(reward == 1.0 for reward in rewards) / len(rewards)
        mean = sum(rewards) / len(rewards)
        print(f"  {name}: mean {mean:.4f}, exactly 1 {share:.4f}, lowest {min(rewards):.4f}")


def report_nouns(shop: Shop) -> None:
    """Print how often the type factor is the same with guessed nouns as with those of the file."""
    draw, guessed = random.Random(0), TitleNouns()
    products = [shop.catalogue.product(goal.asin) for goal in shop.goals]
    for name, is_found in (("random pairs", False), ("pairs of a product and a search result for it", True)):
        num_same = 0
        for _ in range(2000):
            wanted = draw.choice(products)
            bought = draw.choice(products)
            if is_found:
                bought = shop.catalogue.product(draw.choice(shop.catalogue.search(wanted.query, 10)))
            factors = {
                type_factor(Titled(bought, nouns.of(bought)), Titled(wanted, nouns.of(wanted)))
                for nouns in (shop.nouns, guessed)
            }
            num_same += len(factors) == 1
        print(f"  same type factor with guessed nouns, {name}: {num_same / 2000:.4f}")


def report_steps(source: OriginalShop) -> None:
    """Print the CPU time of random play."""
    env, draw = WebShopEnv(source), random.Random(0)
    times = []
    for task in WebShopTasks(source).tasks("test")[:NUM_EPISODES]:
        step = env.reset(task)
        for _ in range(15):
            command = draw.choice(step.commands)
            if command == "search[<query>]":
                command = f"search[{' '.join(draw.choices(task.goal.split(), k=4))}]"
            started = time.process_time()
            step = env.step(command)
            times.append(1000 * (time.process_time() - started))
            if step.is_done:
                break
    times.sort()
    mean, high = sum(times) / len(times), times[int(0.99 * len(times))]
    print(f"  {len(times)} steps: mean {mean:.2f} ms, 99 % below {high:.2f} ms of CPU")


def main() -> None:
    """Print everything."""
    data = sys.argv[1] if len(sys.argv) > 1 else None
    started = time.process_time()
    source = OriginalShop(data)
    shop = source.open()
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"1,000 products, {len(shop.goals)} goals: {seconds:.2f} s of CPU to load, {peak:.0f} MiB at most")
    report_steps(source)
    report_rewards(shop)
    print("with option_rule=pairs:")
    report_rewards(OriginalShop(data, option_rule="pairs").open())
    report_nouns(shop)


if __name__ == "__main__":
    main()
