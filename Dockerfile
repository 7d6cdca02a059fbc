# The images of the operator and of the load pipeline:
#   docker build --target operator -t scalable-topics-operator .
#   docker build --target spark -t scalable-topics-spark .
# `make image` does both and writes what is in them (an SBOM). No line depends on the processor's architecture.

# Any image of Debian 12 with Python 3.11 serves, such as one that was made where no registry can be reached.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build
# Where another authority vouches for the package index: a file of its certificates, mounted into the build.
ARG SSL_CERT_FILE
ARG PIP_CERT
# An image of Debian has Python without pip.
RUN python3 -m pip --version >/dev/null 2>&1 || \
    (apt-get update && apt-get install --yes --no-install-recommends python3-pip)
ARG UV_VERSION=0.13.9
RUN python3 -m pip install --quiet --no-cache-dir --break-system-packages --root-user-action=ignore "uv==${UV_VERSION}"
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_NO_CACHE=1 UV_SYSTEM_PYTHON=1
WORKDIR /source

FROM build AS operator-packages
ARG SSL_CERT_FILE
COPY pyproject.toml uv.lock ./
RUN uv export --quiet --frozen --no-dev --no-emit-project --extra operator --output-file /requirements.txt
RUN uv pip install --target /packages --no-deps --require-hashes --requirement /requirements.txt && \
    python3 -m compileall -q --invalidation-mode unchecked-hash -s /packages -p /opt/scalable-topics/packages /packages

FROM build AS spark-packages
ARG SSL_CERT_FILE
COPY pyproject.toml uv.lock ./
RUN uv export --quiet --frozen --no-dev --no-emit-project --extra spark --output-file /requirements.txt
RUN uv pip install --target /packages --no-deps --require-hashes --requirement /requirements.txt && \
    python3 -m compileall -q --invalidation-mode unchecked-hash -s /packages -p /opt/scalable-topics/packages /packages

FROM build AS project
ARG SSL_CERT_FILE
COPY pyproject.toml uv.lock README.md LICENSE CHANGELOG.md ./
COPY client client
COPY operator operator
COPY spark spark
RUN uv build --quiet --wheel --out-dir /wheels && \
    uv pip install --quiet --target /project --no-deps /wheels/*.whl && \
    python3 -m compileall -q --invalidation-mode unchecked-hash -s /project -p /opt/scalable-topics/project /project

FROM ${BASE_IMAGE} AS runtime
# Containers run as somebody who may write nowhere; bytecode is there already.
ENV PYTHONPATH=/opt/scalable-topics/project:/opt/scalable-topics/packages \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.licenses=Apache-2.0

FROM runtime AS spark
# Some of Java's packages write below a folder of manual pages that slim images lack.
RUN mkdir -p /usr/share/man/man1 && \
    apt-get update && \
    apt-get install --yes --no-install-recommends openjdk-17-jre-headless && \
    rm -rf /var/lib/apt/lists/* && \
    echo "scalable-topics:x:10001:0::/opt/segment-load:/usr/sbin/nologin" >>/etc/passwd && \
    mkdir --mode=0775 /opt/segment-load && chown 10001:0 /opt/segment-load
ENV HOME=/opt/segment-load \
    SPARK_HOME=/opt/scalable-topics/packages/pyspark \
    PYSPARK_PYTHON=python3
LABEL org.opencontainers.image.title="Load pipeline of scalable topics" \
      org.opencontainers.image.description="Spark with the pipeline: beside an operator, or as driver and executors"
COPY --from=spark-packages /packages /opt/scalable-topics/packages
COPY --from=project /project /opt/scalable-topics/project
COPY --chmod=0755 spark/image/ /opt/segment-load/
WORKDIR /opt/segment-load
USER 10001:0
ENTRYPOINT ["/opt/segment-load/entrypoint.sh"]
# Last, since every commit has another one, after which nothing is taken from the layers of the build before.
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${REVISION}

FROM runtime AS operator
ENV HOME=/tmp
LABEL org.opencontainers.image.title="Operator of scalable topics" \
      org.opencontainers.image.description="Scalable topics for Apache Pulsar on Kubernetes"
COPY --from=operator-packages /packages /opt/scalable-topics/packages
COPY --from=project /project /opt/scalable-topics/project
WORKDIR /tmp
USER 10001:10001
ENTRYPOINT ["python3", "-m", "scalable_topics_operator"]
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${REVISION}
