# The verbs that one tries first, each a script of package.json.
.PHONY: help build test testall unit integration e2e lint fix demo run install image docs bench release clean

help: ## this list
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## /\1\t/' | expand -t 14

build: ## what the image runs, in dist
	npm ci --no-audit --no-fund
	npm run build

test: ## what tells most, in ten minutes: npm test
	npm test

testall: ## all tests
	npm run test:all

unit: ## tests that need only Node.js
	npm run test:unit

integration: ## tests against real API servers
	npm run test:integration

e2e: ## tests on a hub with clusters
	npm run test:e2e

lint: ## types, formatting, lint
	npm run check

fix: ## corrects formatting and lint where it can
	npm run fix

demo: ## a hub and two clusters on this machine
	npm run demo

run: demo ## the same as demo

install: ## the GitOpsCluster CRD of this version, on the hub of kubectl's current context
	kubectl apply --server-side --force-conflicts -f charts/argocd-agent-addon/crds

image: ## the image, with docker, podman or buildah
	npm run image

docs: ## the documentation site, in dist/site
	npm run docs

bench: ## the list of benches
	npm run bench -- --help

release: ## the files of a release, in dist/release
	npm run release -- --version $$(node -p 'require("./package.json").version') --output dist/release

clean: ## removes dist
	rm -rf dist
