# An image with privsyn and its compiled loops: docs/install.md says how it is built and run. Running it needs no
# network and no root; building it needs the index of Python packages.
ARG PYTHON=3.13
FROM python:${PYTHON}-slim

# The tests of other packages are a sixth of the image, and go. Loops are compiled once, for every machine of this architecture; whoever runs them must be able to write beside them.
ENV NUMBA_CACHE_DIR=/opt/loops NUMBA_CPU_NAME=generic
ARG EXTRAS=app
COPY pyproject.toml README.md LICENSE /src/
COPY privsyn /src/privsyn
RUN pip install --no-cache-dir "/src[${EXTRAS}]" \
    && rm -r /src \
    && find "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" -type d -name tests -prune -exec rm -r {} + \
    && privsyn compile \
    && chmod -R a+rwX /opt/loops \
    && useradd --create-home --uid 1000 privsyn

USER privsyn
WORKDIR /data
ENTRYPOINT ["privsyn"]
CMD ["--help"]
