# One image for all programs: argocd-agent (principal, agent), gitops-controller and argocd-agentctl. It holds Node.js, the
# libraries that it loads, and the programs: no shell, no package manager.
#
#   npm run image
#   docker build --build-arg GIT_REVISION=$(git rev-parse HEAD) -t quay.io/open-cluster-management/argocd-fleet:0.1.0 .

ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

# Whose files go into the image. Nothing of it is run, so that it may be one for another architecture.
FROM ${NODE_IMAGE} AS node
# buildah removes the image itself, with the intermediate ones, if a stage does nothing.
LABEL stage=node

FROM --platform=${BUILDPLATFORM} ${NODE_IMAGE} AS build
WORKDIR /src
# Dependencies first: they change less often than the code.
COPY package.json package-lock.json ./
# The secret is for those whose packages come from a registry of their own: it is there while a command runs, never in a layer.
ENV NPM_CONFIG_USERCONFIG=/run/secrets/npmrc
RUN --mount=type=secret,id=npmrc \
    npm ci --ignore-scripts --no-audit --no-fund
# What is copied is listed in .dockerignore.
COPY . .
ARG GIT_REVISION=unknown
ARG BUILD_DATE
# The programs with their libraries in a few files, and what `argocd-agent version` prints.
RUN GIT_REVISION="${GIT_REVISION}" BUILD_DATE="${BUILD_DATE}" npm run build
RUN --mount=type=bind,from=node,target=/target \
    node release/image/main.ts /target dist /image

FROM scratch
COPY --from=build /image /
ENV NODE_ENV=production PATH=/usr/local/bin:/bin
WORKDIR /opt/argocd-fleet
# Needs no rights and writes nothing: runs with a read-only root file system.
USER 999:999
# As in the image of argocd-agent: whoever gives arguments alone means this program.
ENTRYPOINT ["argocd-agent"]
