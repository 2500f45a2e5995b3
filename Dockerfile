# Two images from one file, each by its target:
#   operator   the control plane: no JVM and no pyspark
#   spark      what jobs run in, driver and executor
# `make image` builds both with docker, podman or buildah. BASE is any Debian 12; give it by digest for a release:
#   make image BASE=docker.io/library/debian:bookworm-slim@sha256:…
ARG BASE=docker.io/library/debian:bookworm-slim

# What both run on: Python, the time zones that Arrow looks up, and the certificates of object stores.
FROM ${BASE} AS python
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 tini tzdata \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log /var/log/alternatives.log
RUN groupadd --gid 65532 hudi && useradd --uid 65532 --gid hudi --home-dir /tmp --no-create-home --shell /usr/sbin/nologin hudi
ENV PATH=/opt/hudi/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp

# Packages by hash, from locked requirements; sources (pyspark) are built with the locked build tools.
FROM python AS builder
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
COPY requirements/build.txt /src/requirements/
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=secret,id=authority,target=/run/secrets/authority.crt \
    python3 -m venv /opt/build && python3 -m venv --without-pip /opt/hudi \
    && /opt/build/bin/pip install --quiet --require-hashes --no-deps -r /src/requirements/build.txt
COPY image/install-locked /usr/local/bin/

FROM builder AS wheel
COPY LICENSE NOTICE /src/
COPY distributions /src/distributions
COPY spark_app /src/spark_app
COPY operator /src/operator
RUN /opt/build/bin/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir /wheels \
    /src/distributions/hudi-table /src/distributions/hudi-spark /src/distributions/hudi-operator

FROM builder AS operator-packages
COPY requirements/operator.txt /src/requirements/
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=secret,id=authority,target=/run/secrets/authority.crt \
    install-locked /src/requirements/operator.txt
COPY image/finish /usr/local/bin/
RUN finish

FROM builder AS spark-packages
COPY requirements/spark.txt /src/requirements/
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=secret,id=authority,target=/run/secrets/authority.crt \
    install-locked /src/requirements/spark.txt
COPY image/finish /usr/local/bin/
RUN finish

FROM operator-packages AS operator-app
COPY image/install-wheels /usr/local/bin/
COPY --from=wheel /wheels /wheels
RUN install-wheels hudi_operator.cli.run hudi_table hudi_operator

FROM spark-packages AS spark-app
COPY image/install-wheels /usr/local/bin/
COPY --from=wheel /wheels /wheels
RUN install-wheels hudi_spark.jobs.ingest_spark hudi_table hudi_spark

FROM python AS operator
COPY --from=operator-packages /opt/hudi /opt/hudi
COPY --from=operator-app /opt/app /opt/hudi
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="hudi-operator" \
      org.opencontainers.image.description="Keeps Apache Hudi tables healthy: the control plane" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
USER 65532:65532
ENTRYPOINT ["python", "-m", "hudi_operator"]

FROM python AS spark
# The JRE links its manual pages, for which a slim image has no folder.
RUN mkdir -p /usr/share/man/man1 && apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log /var/log/alternatives.log \
    && ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /opt/java
ENV JAVA_HOME=/opt/java SPARK_HOME=/opt/spark PYSPARK_PYTHON=/opt/hudi/bin/python
COPY --from=spark-packages /opt/hudi /opt/hudi
# A Spark home without a Python folder, so that pyspark is imported from where it is compiled; conf is where Kubernetes mounts.
RUN mkdir -p /opt/spark/conf && ln -s /opt/hudi/lib/python3*/site-packages/pyspark/bin \
    /opt/hudi/lib/python3*/site-packages/pyspark/jars /opt/spark/
COPY --from=spark-app /opt/app /opt/hudi
COPY image/entrypoint.py image/job.py /opt/hudi/
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="hudi-spark" \
      org.opencontainers.image.description="Keeps Apache Hudi tables healthy: the jobs, on Arrow and Spark" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
USER 65532:65532
ENTRYPOINT ["/usr/bin/tini", "--", "python", "/opt/hudi/entrypoint.py"]
