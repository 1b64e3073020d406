"""A step in a process that may take less memory than its micro-batch needs; prints the gradient's error."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

from had.data.packing import pack
from step_by_hand import HAD, flat_gradient, make_module, random_records, relative_error

NUM_RECORDS, PROMPT_TOKENS = 32, 400


def peak_bytes() -> int:
    """The largest address space so far."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmPeak"))


def main() -> None:
    record = random_records(1)[0]
    prompt = record.prompt_ids[:1] * PROMPT_TOKENS
    records = [replace(record, id=f"r{index}", prompt_ids=prompt) for index in range(NUM_RECORDS)]
    (whole,) = pack(records, HAD, 10**9, pad_id=0)
    expected, module = make_module(), make_module()
    expected.compute_gradient(whole.halves())
    for_halves = peak_bytes()
    expected.compute_gradient([whole])
    for_whole = peak_bytes()
    limit = (for_halves + for_whole) // 2
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    metrics = module.compute_gradient([whole])
    print(f"{for_halves} {for_whole} split {metrics['split_batches']}")
    print(relative_error(flat_gradient(module.model), flat_gradient(expected.model)))


if __name__ == "__main__":
    main()
