import type { BasicEventReason } from '../../controller/basic/basic-deps.ts';
import type { NamedEventReason } from '../../controller/hub/index.ts';
import type { ApplicationEventReason } from '../../principal/application-events.ts';
import type { PrincipalEventReason } from '../../principal/clusters/operator-events.ts';
import { cell, generated } from './markdown.ts';

type Kind = 'Normal' | 'Warning';
/** What the Events of a program mean: a reason without a text, or a text without a reason, does not compile. */
type Texts<Reason extends string> = { readonly [R in Reason]: readonly [kind: Kind, means: string] };

const controller: Texts<NamedEventReason> = {
  Ready: ['Normal', "The hub's side works again: all conditions except those about the clusters' health are True."],
  ClusterSkipped: ['Normal', 'A selected cluster is the hub itself, or is not registered: exclude it, or register it.'],
  ClusterConflict: [
    'Warning',
    'A selected cluster belongs to another GitOpsCluster, which is older or had it first: change one of the Placements.',
  ],
  ClusterEnrolled: ['Normal', 'A cluster has applied everything that was delivered for the first time.'],
  ClusterConnected: ['Normal', 'The agent of a cluster has connected for the first time.'],
  ClusterRefusesWork: [
    'Warning',
    'A cluster has refused a manifest for 15 s: grant the right or correct the field that the message names.',
  ],
  ClusterUnavailable: [
    'Warning',
    'A workload has not been ready for 5 minutes, or a cluster does not report: look at its pods, or at its klusterlet.',
  ],
  AgentDisconnected: [
    'Warning',
    'An agent has not been connected for 5 minutes: look at its log, and at the network to the principal.',
  ],
  CertificateMissing: [
    'Warning',
    "A cluster has not requested or renewed its agent's certificate for 5 minutes: look at klusterlet-registration-agent there.",
  ],
  ClusterRecovered: ['Normal', 'The problem that one of these Events reported is over.'],
  ClusterLeaving: [
    'Normal',
    'A cluster is being cleaned up: it is no longer selected, or its GitOpsCluster is deleted.',
  ],
  ClusterLeft: ['Normal', 'All objects of a cluster that left are removed from the hub.'],
  DrainTimedOut: [
    'Warning',
    'The agent of a cluster that leaves did not delete its Applications in time: the message names what stays there.',
  ],
  CleanUpFailed: [
    'Warning',
    'The Job that cleans former namespaces up failed: look at its pods, and delete its ManifestWork to run it again.',
  ],
  AuthorityReplaced: [
    'Normal',
    'There is a new authority, and all certificates follow it; the former one stays trusted meanwhile.',
  ],
  AuthorityAdded: ['Normal', 'An authority is trusted in addition.'],
  AuthorityRetired: ['Normal', 'A former authority, whose certificates nobody uses any more, is no longer trusted.'],
  CertificateRenewed: ['Normal', 'A certificate is renewed; the programs read it without a restart.'],
  KeyWithdrawn: ['Normal', 'An agent uses a certificate that its cluster requested, and the delivered key is removed.'],
  PrincipalRestarted: [
    'Normal',
    "The pods of a principal with argocd-agent's own image are replaced: it reads renewed certificates only when it starts.",
  ],
  RequestRefused: [
    'Warning',
    'A CertificateSigningRequest gets no certificate: only the registration agent of an enrolled cluster may ask.',
  ],
  SecretsLeft: [
    'Warning',
    'A deleted GitOpsCluster leaves Secrets and ConfigMaps in a namespace in which the controller has no rights: delete them as the message says.',
  ],
  HubArgoCDConfigured: ['Normal', "Parameters of the hub's own Argo CD are set (hubArgoCD.configure)."],
  HubArgoCDGivenBack: ['Normal', "Parameters of the hub's own Argo CD are as they were before."],
  HubArgoCDRestarted: [
    'Normal',
    "Programs of the hub's own Argo CD are restarted, because they read changed parameters.",
  ],
  HubArgoCDNotRestarted: [
    'Warning',
    "The right to restart the hub's Argo CD is missing when a GitOpsCluster goes: run the commands in the message.",
  ],
};

const basic: Texts<BasicEventReason> = {
  NotPulled: ['Warning', 'An Application is not delivered: correct what the message names; existing copies stay.'],
  NotApplied: ['Warning', 'A cluster refuses an Application: the message has its error.'],
  NoClusterSecret: [
    'Warning',
    'No Argo CD cluster Secret can be made for a ManagedCluster: the message names what is in the way.',
  ],
};

const principal: Texts<PrincipalEventReason> = {
  AgentModeRefused: [
    'Warning',
    'An agent came in a mode that it may not have: set its mode on the cluster, or pin the new one with the annotation agent-mode.',
  ],
  AgentConnectionUnsteady: [
    'Warning',
    'The last five connections of an agent ended soon: let it ping more often than proxies and firewalls on the way close what is idle, or look why it does not stay up.',
  ],
  CannotMirror: [
    'Warning',
    'An Application or AppProject of an autonomous agent cannot be shown on the hub: correct what the message names.',
  ],
  ApplicationKept: [
    'Warning',
    'An agent keeps an Application that this hub does not have and another principal made, with its AppProject and credentials: restore them here, or delete the copy.',
  ],
  AgentReportRefused: [
    'Warning',
    'What an agent reports about an Application cannot be written on the hub: permit it, or correct what the message names. It is tried again.',
  ],
  AgentRefuses: [
    'Warning',
    'An agent cannot read what it is sent, or its cluster refuses a copy of it (an AppProject, a repository, keys): permit it, or correct what the message names. What the cluster refuses is tried again.',
  ],
  AgentQuotaExceeded: [
    'Warning',
    'An agent would have more on the hub than it may, and the write is refused: delete something, or raise the quota.',
  ],
  MirrorPutBack: [
    'Warning',
    'About the mirror of an Application of an autonomous cluster: somebody changed or deleted it on the hub, which was undone. Change it on the cluster. At most once in ten minutes.',
  ],
};

const applications: Texts<ApplicationEventReason> = {
  ResourceUpdated: ['Normal', 'The sync status or the health that its agent reports has changed.'],
  OperationStarted: ['Normal', 'The Argo CD of its cluster has started an automated sync.'],
  OperationCompleted: ['Normal', 'An operation has ended on its cluster; a Warning when it did not succeed.'],
};

/** The page of all Events, in Markdown. */
export function eventsPage(): string {
  return [
    '# Events',
    '',
    generated,
    '',
    'Equal Events are folded into one, whose count and last time change. `kubectl get events` shows them for an hour.',
    '',
    '## Controller',
    '',
    'On a GitOpsCluster; `RequestRefused` on the CertificateSigningRequest. *Condition*`Failed`, for instance',
    '`ServerDiscoveredFailed`, is a Warning: that [condition](conditions.md) became False.',
    '',
    ...table(controller),
    '',
    '## Basic pull model',
    '',
    'On an Application, or on a ManagedCluster.',
    '',
    ...table(basic),
    '',
    '## Principal',
    '',
    "On the agent's Argo CD cluster Secret.",
    '',
    ...table(principal),
    '',
    'On an Application of the hub, with `--application-events` of the principal. The reasons are those of',
    "Argo CD's application controller.",
    '',
    ...table(applications),
    '',
  ].join('\n');
}

function table(texts: Readonly<Record<string, readonly [Kind, string]>>): string[] {
  const rows = Object.entries(texts).map(([reason, [kind, means]]) => `| \`${reason}\` | ${kind} | ${cell(means)} |`);
  return ['| Reason | Type | |', '|---|---|---|', ...rows];
}
