# s2rm-data in a container, installed from its wheel:
#   docker build -t s2rm-data .
#   docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" s2rm-data bballs --balls 1-6
#   docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" --entrypoint s2rm-train s2rm-data --store data.zarr
# Only data, no PyTorch: docker build --build-arg PACKAGES=data .
# On another base, which must bring `python` and `pip`: docker build --build-arg BASE=python:3.14-slim .

# python:3.13-slim with Python 3.13.14, of 2026-08-05, for all platforms
ARG BASE=python@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6

FROM $BASE AS wheel
WORKDIR /source
COPY requirements/build.txt ./
RUN pip install --no-cache-dir --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE ./
COPY pretrained pretrained
COPY s2rm_data s2rm_data
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM $BASE
# Every package by its digest: requirements/README.md says how the files are made.
ARG PACKAGES=train
COPY requirements /tmp/requirements
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements/$PACKAGES.txt \
    && pip install --no-deps /tmp/wheels/*.whl && rm -r /tmp/wheels /tmp/requirements
# Code is compiled once, while the image is built. It is the image's user's: what others could put there would be run.
# Another --user has code compiled for itself.
ENV NUMBA_CACHE_DIR=/opt/s2rm-data-compiled
RUN mkdir $NUMBA_CACHE_DIR && cd /tmp \
    && s2rm-data bballs --balls 3 --train 2 --val 0 --test 0 --out warm.zarr --quiet \
    && s2rm-data sc2 --scenario 3s5z --train 2 --val 0 --out warm.zarr --quiet \
    && rm -r warm.zarr && chown -R 1000:1000 $NUMBA_CACHE_DIR && chmod -R go-w $NUMBA_CACHE_DIR
# Not root, even if --user is left out; any user may write to the working folder.
RUN mkdir -m 1777 /data
USER 1000:1000
ENV HOME=/tmp
WORKDIR /data
ENTRYPOINT ["s2rm-data"]
CMD ["--help"]
