import { basename } from 'node:path';
import { addonChart, agentChart, principalChart, pullChart } from '../hub/index.ts';

/** Values of a chart. */
export type ChartValues = Readonly<Record<string, unknown>>;

/** A chart as somebody installs it. */
export interface TriedChart {
  /** The name of its folder, and of the release. */
  readonly name: string;
  readonly folder: string;
  /** Of the release. */
  readonly namespace: string;
  /** All namespaces that have pods of it. */
  readonly spaces: readonly string[];
  /** What the hub or cluster has before: Argo CD's kinds. */
  readonly needsArgoCd: boolean;
  /** What everybody has to say; no Service of type LoadBalancer, for there is nobody who gives it an address. */
  readonly values: ChartValues;
  /** A change of them: of settings, of the number of pods. */
  readonly changed: ChartValues;
  /** What a quota for limits asks for. */
  readonly limits: ChartValues;
  /** Why the version before cannot be upgraded. */
  readonly refusesBefore?: string;
  /** What tools have to say that render without looking at the cluster. */
  readonly unseen: ChartValues;
}

const limits = { requests: { cpu: '10m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi' } };
const argoCdParts = ['server', 'repoServer', 'applicationSet', 'applicationController', 'redis'];

const common = { namespace: 'argocd', spaces: ['argocd'], needsArgoCd: true, unseen: {} };

/** The four charts. */
export const triedCharts: readonly TriedChart[] = [
  {
    name: basename(addonChart),
    folder: addonChart,
    namespace: 'open-cluster-management-agent-addon',
    spaces: ['open-cluster-management-agent-addon', 'argocd'],
    needsArgoCd: false,
    values: { principalServiceType: 'NodePort' },
    changed: {
      replicas: 2,
      controller: { log: { level: 'debug' } },
      principal: { params: { 'principal.log.level': 'debug' } },
      hubArgoCD: { applicationController: { enabled: true } },
    },
    limits: {
      hookResources: limits,
      controller: { resources: limits },
      principal: { resources: limits },
      hubArgoCD: Object.fromEntries(argoCdParts.map((part) => [part, { resources: limits }])),
    },
    unseen: { hubArgoCD: { install: true }, principal: { enabled: true } },
  },
  {
    ...common,
    name: basename(pullChart),
    folder: pullChart,
    values: {},
    refusesBefore: 'its Deployment had another selector until 23 November 2026; docs/upgrades.md has what to do',
    changed: { replicas: 2, log: { level: 'debug' }, placement: { spec: { numberOfClusters: 3 } } },
    limits: { hookResources: limits, resources: limits },
  },
  {
    ...common,
    name: basename(principalChart),
    folder: principalChart,
    values: { service: { type: 'NodePort' } },
    changed: { principal: { log: { level: 'debug' } }, pki: { addresses: ['hub.example.com'] } },
    limits: { hookResources: limits, resources: limits, pki: { resources: limits } },
  },
  {
    ...common,
    name: basename(agentChart),
    folder: agentChart,
    values: { server: 'principal.example.com', agentMode: 'managed' },
    changed: { logLevel: 'debug', rbac: { liveAccess: 'view' } },
    limits: { hookResources: limits, resources: limits },
  },
];
