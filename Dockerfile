# One image for all programs: argocd-agent (principal, agent), gitops-controller and argocd-agentctl.
#
#   docker build --build-arg GIT_REVISION=$(git rev-parse HEAD) -t quay.io/open-cluster-management/argocd-fleet:0.1.0 .

ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
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

FROM ${NODE_IMAGE}
# Package managers have no place in production.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
           /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-*
ENV NODE_ENV=production
WORKDIR /opt/argocd-fleet
COPY --from=build /src/dist ./
# Those of /bin and /manager are the paths in the originals' images: their manifests name them.
RUN ln -s /opt/argocd-fleet/bin/argocd-agent.js /usr/local/bin/argocd-agent \
 && ln -s /opt/argocd-fleet/bin/gitops-controller.js /usr/local/bin/gitops-controller \
 && ln -s /opt/argocd-fleet/bin/argocd-agentctl.js /usr/local/bin/argocd-agentctl \
 && ln -s /opt/argocd-fleet/bin/argocd-agentctl.js /usr/local/bin/kubectl-argocd_fleet \
 && ln -s /opt/argocd-fleet/bin/argocd-agent.js /bin/argocd-agent \
 && ln -s /opt/argocd-fleet/bin/gitops-controller.js /manager
# Needs no rights and writes nothing: runs with a read-only root file system.
USER 999:999
# As in the image of argocd-agent: whoever gives arguments alone means this program.
ENTRYPOINT ["argocd-agent"]
