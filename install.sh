#!/bin/sh
# Install into the active Python environment, with the CPU build of torch unless a torch is there already.
# A GPU machine: install the CUDA build of torch first, then run this.
set -eu
cd "$(dirname "$0")"
torch='torch==2.13.0' # tested; any torch that pyproject.toml allows may be installed beforehand
if ! python -c 'import torch' 2>/dev/null; then
    # On Linux the default index gives a CUDA build of 3 GB; this index has the CPU build.
    python -m pip install --quiet --no-deps --retries 1 --timeout 15 "$torch" --index-url https://download.pytorch.org/whl/cpu || {
        echo "install.sh: the index of CPU builds cannot be reached; taking $torch from your own index"
        python -m pip install --quiet "$torch"
    }
fi
python -m pip install --quiet -e ".[${1:-dev,tensorboard,webshop}]"
