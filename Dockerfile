# The wheel, with the page in it. Node comes from a Python package that the build asks for.
FROM python:3.11-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim

# The compiler is needed while the service runs: kernels for the CPU and Triton's launchers are compiled then.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc g++ \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --home-dir /tmp fusionscope \
    && install --directory --owner=10001 --group=10001 /data

# torch is by far the largest part: it has a layer of its own, which stays as long as the versions do.
COPY requirements.lock /requirements.lock
RUN pip install --no-cache-dir -r /requirements.lock
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-deps /wheels/*.whl

USER 10001:10001
# All that is written, but for results in /data, goes below /tmp: the root file system may be read-only.
ENV HOME=/tmp \
    FUSIONSCOPE_CACHE_DIR=/tmp/fusionscope \
    TRITON_CACHE_DIR=/tmp/triton \
    TORCHINDUCTOR_CACHE_DIR=/tmp/torchinductor \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
VOLUME ["/data"]
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["fusionscope", "serve", "--host", "0.0.0.0", "--port", "8000", "--data", "/data"]
