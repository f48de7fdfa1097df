# Two images, of one base: `web` has neither torch nor a compiler, `worker` has both.
#
#     docker build --target web --tag fusionscope-web .
#     docker build --target worker --tag fusionscope-worker .
#
# docs/operators.md says how the base is pinned by its digest, and how the worker gets a torch for the CPU alone.
ARG PYTHON_IMAGE=python:3.11-slim

# ---- The wheel, with the page in it. Node comes from a Python package.
FROM ${PYTHON_IMAGE} AS wheel
# pip, npm and Node read these: another index, and certificates of one's own. They stay out of the images.
ARG PIP_INDEX_URL
ARG PIP_CERT
ARG NODE_EXTRA_CA_CERTS
ARG npm_config_registry
WORKDIR /source
COPY deploy/build.lock deploy/
RUN python -m venv /build \
    && /build/bin/pip install --no-cache-dir --no-deps --require-hashes -r deploy/build.lock
COPY . .
RUN PATH=/build/bin:$PATH python -m hatchling build --target wheel --directory /wheels

# ---- What both images have installed, each file checked against its hash.
FROM ${PYTHON_IMAGE} AS libraries
ARG PIP_INDEX_URL
ARG PIP_CERT
COPY deploy/image.lock /locks/
RUN python -m venv /opt/fusionscope \
    && /opt/fusionscope/bin/pip install --no-cache-dir --no-deps --require-hashes -r /locks/image.lock

# ---- What both images are: a user of their own, and one folder each that outlives a container.
FROM ${PYTHON_IMAGE} AS base
# Web may use the socket in /run/fusionscope through the group that both have, and nothing else of the worker's.
RUN groupadd --gid 10001 fusionscope \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp web \
    && useradd --uid 10002 --gid 10001 --no-create-home --home-dir /tmp worker \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data \
    && install --directory --owner=10002 --group=10001 --mode=2750 /run/fusionscope
# All that is written, but for those two folders, goes below /tmp: the root file system may be read-only.
ENV PATH=/opt/fusionscope/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /tmp

# ---- Web.
FROM base AS web
COPY --from=libraries /opt/fusionscope /opt/fusionscope
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-deps --no-index /wheels/*.whl
USER 10001:10001
VOLUME ["/data"]
ENV FUSIONSCOPE_HOST=0.0.0.0 \
    FUSIONSCOPE_PORT=8000 \
    FUSIONSCOPE_DATA=/data \
    FUSIONSCOPE_WORKERS=/run/fusionscope/worker.sock \
    FUSIONSCOPE_PROFILES=/run/fusionscope/profiles.json
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["fusionscope", "web"]

# ---- The worker. The compiler is needed while it runs: kernels for the CPU and Triton's launchers are compiled then.
FROM base AS worker
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY --from=libraries /opt/fusionscope /opt/fusionscope
# "cpu" takes the build for CPUs, from the index TORCH_INDEX; without it torch is what the usual index has for this
# processor, which on x86-64 is the build for CUDA.
ARG TORCH_BUILD=
ARG TORCH_INDEX=
ARG PIP_INDEX_URL
ARG PIP_CERT
COPY deploy/torch*.lock /locks/
RUN if [ -z "${TORCH_BUILD}" ]; then \
        pip install --no-cache-dir --no-deps --require-hashes -r /locks/torch.lock; \
    elif [ -n "${TORCH_INDEX}" ]; then \
        pip install --no-cache-dir --no-deps --require-hashes --extra-index-url "${TORCH_INDEX}" \
            -r "/locks/torch-${TORCH_BUILD}.lock"; \
    else \
        echo "TORCH_BUILD=${TORCH_BUILD} needs TORCH_INDEX, the address of a package index with that build." >&2; \
        exit 1; \
    fi
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && pip check
ENV FUSIONSCOPE_SOCKET=/run/fusionscope/worker.sock \
    FUSIONSCOPE_CACHE_DIR=/tmp/fusionscope \
    TRITON_CACHE_DIR=/tmp/triton \
    TORCHINDUCTOR_CACHE_DIR=/tmp/torchinductor
USER 10002:10001
VOLUME ["/run/fusionscope"]
HEALTHCHECK --interval=30s --timeout=15s --start-period=90s \
    CMD ["python", "-m", "server.wire.probe", "/run/fusionscope/worker.sock"]
CMD ["fusionscope", "worker"]
