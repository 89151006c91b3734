# syntax=docker/dockerfile:1
# Everything is put together on the same base that it runs on, with the Node that the image brings.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json ./
COPY src ./src
COPY signatures ./signatures
RUN npm run build
# The list of what is in it is made of the lockfile without what is for tests: what both need, `--omit dev` leaves out.
# The packages that bring Node itself go: here it is there.
RUN npm ci --omit=dev --no-audit --no-fund && npm pkg delete devDependencies && npm prune --package-lock-only --no-audit --no-fund && npm sbom --package-lock-only --sbom-format cyclonedx > sbom.cdx.json && rm -rf node_modules/node-linux-* node_modules/.bin/node
# What V8 makes of the program, for who it runs as: no start need compile it again.
RUN mkdir -m 777 compiled && (NODE_COMPILE_CACHE=/app/compiled NODE_OPTIONS="--max-semi-space-size=16 --v8-pool-size=1" timeout -s INT 15 setpriv --reuid=65532 --regid=65532 --clear-groups node dist/bin.js up --workers 1 --upstream http://127.0.0.1:9 --listen 127.0.0.1:0 --manage 127.0.0.1:0 --data /tmp/compiling || true) && chmod -R a+rX,go-w compiled && test -n "$(find compiled -type f)"

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="Gatehouse" \
      org.opencontainers.image.description="The gate in front of a web application that knows which AI agent is at the door" \
      org.opencontainers.image.licenses="Apache-2.0 AND BSD-3-Clause AND LicenseRef-FoxIO-1.1"
# What installs packages is of no use to what is installed.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn* /usr/local/bin/yarn /usr/local/bin/yarnpkg && mkdir -p /var/lib/gatehouse && chown 65532:65532 /var/lib/gatehouse
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/compiled ./compiled
COPY --from=build /app/sbom.cdx.json ./
COPY package.json LICENSE NOTICE CHANGELOG.md ./
COPY signatures ./signatures
COPY config ./config
ENV NODE_ENV=production
USER 65532:65532
# What it keeps by default, ./data, is here.
WORKDIR /var/lib/gatehouse
VOLUME /var/lib/gatehouse
EXPOSE 8443 9080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:9080/health/live').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# What bin.js would else start Node again with: a tenth of the time that a sidecar takes to start.
ENV GLIBC_TUNABLES=glibc.malloc.hugetlb=1 NODE_OPTIONS="--max-semi-space-size=16 --v8-pool-size=1" NODE_COMPILE_CACHE=/app/compiled
ENTRYPOINT ["node", "/app/dist/bin.js"]
CMD ["up"]
