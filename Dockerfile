# syntax=docker/dockerfile:1
# Images of mcp-conformance. The last one is small; the others also have what servers need that are started in them:
#
#   docker build -t mcp-conformance .
#   docker build -t mcp-conformance:node --target node .     # also: python, uv
#   docker run --rm -v "$PWD:/work" mcp-conformance:node -- node dist/index.js

FROM rust:1-alpine AS build
# Only this stage has them, and Alpine removes the versions that one could name.
# hadolint ignore=DL3018
RUN apk add --no-cache ca-certificates gcc musl-dev
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/source/target \
    cargo build --release --locked && cp target/release/mcp-conformance /mcp-conformance

FROM node:22-alpine AS node
COPY --from=build /mcp-conformance /usr/local/bin/mcp-conformance
WORKDIR /work
# The user node, as a number that a host can compare.
USER 1000:1000
ENTRYPOINT ["mcp-conformance"]

FROM python:3.13-alpine AS python
COPY --from=build /mcp-conformance /usr/local/bin/mcp-conformance
RUN adduser -D -u 1000 mcp
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["mcp-conformance"]

FROM ghcr.io/astral-sh/uv:python3.13-alpine AS uv
COPY --from=build /mcp-conformance /usr/local/bin/mcp-conformance
RUN adduser -D -u 1000 mcp
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["mcp-conformance"]

# Nothing but the program and the certificates that it trusts, for servers over HTTP.
FROM scratch AS program
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /mcp-conformance /mcp-conformance
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["/mcp-conformance"]
