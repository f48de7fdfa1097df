FROM python:3.11-slim

# g++ and Python's headers are needed while the service runs: CPU kernels and Triton's launchers are compiled then.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home fusionscope

WORKDIR /app
COPY requirements.lock ./
RUN pip install --no-cache-dir -r requirements.lock
COPY . .
RUN pip install --no-cache-dir --no-deps .

USER 10001:10001
ENV HOME=/tmp FUSIONSCOPE_HOST=0.0.0.0 FUSIONSCOPE_CACHE_DIR=/tmp/fusionscope-cache
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["fusionscope", "serve", "--host", "0.0.0.0", "--data", "/data"]
