import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { onPath } from '../tools/index.ts';
import { findVersionBefore } from '../upgrade/index.ts';

/** Something that tests need and that a machine may lack, although it has all that the README asks for. */
export interface Need {
  /** The thing, for the sentence "it needs …". */
  readonly what: string;
  readonly isThere: boolean;
  /** What would give it: a command, or an environment variable with its value. */
  readonly remedy: string;
  /** The programs that are looked for on `PATH`. */
  readonly programs?: readonly string[];
  /** The packages of Debian that have the programs. */
  readonly packages?: readonly string[];
  /** The environment variables that give it. */
  readonly variables?: readonly string[];
}

const list = new Intl.ListFormat('en-GB');

/** Programs that Debian has. */
function debian(programs: readonly string[], packages: readonly string[] = programs): Need {
  return {
    what: list.format(programs),
    isThere: programs.every((program) => onPath(program) !== undefined),
    remedy: `apt-get install ${packages.join(' ')}`,
    programs,
    packages,
  };
}

/** What environment variables give, each with what its value is. */
function given(what: string, values: Readonly<Record<string, string>>): Need {
  const variables = Object.keys(values);
  return {
    what,
    isThere: variables.every((variable) => process.env[variable]),
    remedy: variables.map((variable) => `${variable}=<${values[variable]}>`).join(' '),
    variables,
  };
}

function hasIpv6(): boolean {
  return Object.values(networkInterfaces())
    .flat()
    .some((one) => one?.address === '::1');
}

const before = findVersionBefore(join(import.meta.dirname, '../..'));

const table = {
  chromium: debian(['chromium'], ['chromium', 'fonts-liberation']),
  prometheus: debian(['prometheus', 'promtool'], ['prometheus']),
  'redis-server': debian(['redis-server']),
  jq: debian(['jq']),
  make: debian(['make']),
  containers: {
    ...debian(['podman', 'buildah', 'runc']),
    // The image's tests find out themselves whether they can run containers here.
    ...(process.env.TEST_IMAGE === '1' && { isThere: true }),
    variables: ['TEST_IMAGE'],
  },
  'version-before': {
    what: 'the version before',
    isThere: before.revision !== undefined,
    remedy: before.remedy ?? '',
    variables: ['PREVIOUS'],
  },
  'argocd-agent': given("argocd-agent's own program", { ARGOCD_AGENT_BIN: 'file' }),
  'argocd-agent-spire': given('argocd-agent 0.10 or later', { ARGOCD_AGENT_SPIRE_BIN: 'file' }),
  'argocd-agentctl': given("argocd-agent's own argocd-agentctl", { ARGOCD_AGENTCTL_BIN: 'file' }),
  'argocd-agent-source': given("argocd-agent's source tree", { ARGOCD_AGENT_SOURCE: 'folder' }),
  'pull-integration-source': given("argocd-pull-integration's source tree", { PULL_INTEGRATION_SOURCE: 'folder' }),
  'cert-manager': given('cert-manager', { CERT_MANAGER_BIN: 'file', CERT_MANAGER_SOURCE: 'folder' }),
  'external-secrets': given('External Secrets', { EXTERNAL_SECRETS_BIN: 'file', EXTERNAL_SECRETS_SOURCE: 'folder' }),
  'image-updater': given('Argo CD Image Updater', { IMAGE_UPDATER_BIN: 'file', IMAGE_UPDATER_SOURCE: 'folder' }),
  kargo: given("Kargo's controller", { KARGO_BIN: 'file', KARGO_SOURCE: 'folder' }),
  'prometheus-operator': given('the Prometheus operator', {
    PROMETHEUS_OPERATOR_BIN: 'file',
    PROMETHEUS_OPERATOR_SOURCE: 'folder',
  }),
  'sealed-secrets': given('Sealed Secrets', {
    SEALED_SECRETS_BIN: 'file',
    KUBESEAL_BIN: 'file',
    SEALED_SECRETS_SOURCE: 'folder',
  }),
  velero: given('Velero', { VELERO_BIN: 'file', VELERO_STORE_BIN: 'file', VELERO_SOURCE: 'folder' }),
  'fips-module': given('a FIPS provider of OpenSSL', { FIPS_MODULE: 'file' }),
  'local-clusters': {
    what: "clusters of this machine's processes",
    isThere: (process.env.TEST_PROVIDER || 'local') === 'local',
    remedy: 'TEST_PROVIDER=local',
    variables: ['TEST_PROVIDER'],
  },
  'terminals-of-pods': {
    // An older API server speaks SPDY to kubelets; the testbed's nodes speak WebSocket only.
    what: 'Kubernetes 1.36 or later',
    isThere: process.env.KUBE_VERSION !== '1.30',
    remedy: 'without KUBE_VERSION',
    variables: ['KUBE_VERSION'],
  },
  linux: { what: 'Linux', isThere: process.platform === 'linux', remedy: 'a machine with Linux' },
  ipv6: { what: 'the address ::1', isThere: hasIpv6(), remedy: 'a machine with IPv6' },
} satisfies Record<string, Need>;

/** A tag of tests, which names what they need. */
export type NeedName = keyof typeof table;

/** Everything that tests need beyond what the README asks for, by the tag that such a test has. */
export const needs: ReadonlyMap<NeedName, Need> = new Map(Object.entries(table) as [NeedName, Need][]);
