"""Shows a shop and an episode in it to a person with a web browser.

    python src/shop.py                             # the generated catalogue
    python src/shop.py env=webshop port=8000       # WebShop's own products

The address of a page holds the whole episode: `/TASK?do=search[…]&do=click[…]`.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from had.runtime.instantiate import build


@hydra.main(config_path="../configs", config_name="shop", version_base=None)
def main(config: DictConfig) -> None:
    """Serve until interrupted."""
    tasks = build(config.env.tasks)
    with build(config.server, env=build(config.env.make_env)(), tasks=tasks) as server:
        print(f"{len(tasks.tasks('test'))} test tasks: open {server.address} (Ctrl-C ends)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended")


if __name__ == "__main__":
    main()
