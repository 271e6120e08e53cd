import { tokenAnnotation } from '../../agent/certificate-keeper.ts';
import { pullKeys } from '../../controller/basic/names.ts';
import { createdNamespace } from '../../controller/commands/clean-up.ts';
import { finalizer, keys } from '../../controller/hub/index.ts';
import { versionKeys } from '../../controller/rollout/index.ts';
import { disableImageSync } from '../../controller/spec/spec.ts';
import { adoptedFrom } from '../../controller/takeover/kinds.ts';
import { annotations } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { selfRegisteredLabel } from '../../lib/clusters/index.ts';
import { wantedByAnnotation } from '../../principal/replicas/hold-record.ts';
import { replicaAnnotations } from '../../principal/replicas/replica-lease.ts';
import { cell, generated } from './markdown.ts';

/** Who sets it: `you` may; `we` do and nobody else may; `they` are other programs. */
type Author = 'you' | 'we' | 'they';
type Text = readonly [author: Author, kind: 'label' | 'annotation' | 'finalizer', on: string, means: string];
/** The texts of a table of keys: a key without a text does not compile. */
type Texts<Keys> = { readonly [K in keyof Keys]: Text };

const shared: Texts<Omit<typeof wellKnown, 'gpgKeysConfigMap'>> = {
  secretTypeLabel: [
    'you',
    'label',
    'Secret',
    "Argo CD's: `repository` and `repo-creds` are delivered to the clusters that need them, `cluster` makes an agent known.",
  ],
  agentNameLabel: [
    'you',
    'label',
    'cluster Secret, Lease',
    'The agent that the cluster Secret stands for. `argocd-agent enroll` and the controller set it.',
  ],
  agentModeAnnotation: [
    'you',
    'annotation',
    'cluster Secret, Lease',
    'The mode that the agent must have. Change it when an agent is to change its mode.',
  ],
  connectedAnnotation: [
    'we',
    'annotation',
    'Lease of a connection',
    '`true` or `false`: whether the agent is connected.',
  ],
  agentVersionAnnotation: ['we', 'annotation', 'Lease of a connection', "The agent's version."],
  ignoreSyncLabel: ['you', 'label', 'any synchronised object', '`true` keeps the object out of all synchronisation.'],
  skipReconcileAnnotation: [
    'we',
    'annotation',
    'cluster Secret, Application',
    "Argo CD's: the hub's application controller leaves the Applications to the cluster. Do not remove it.",
  ],
  trackingAnnotation: [
    'they',
    'annotation',
    'any object',
    "Argo CD's: the Application that manages the object. The controller does not change a ConfigMap of Argo CD that has it.",
  ],
  instanceLabel: [
    'they',
    'label',
    'any object',
    'Where Argo CD tracks by labels: the Application that manages the object. One that names an Application of the other side is not synchronised.',
  ],
  managedByLabel: [
    'we',
    'label',
    'every object that we make',
    '`argocd-pull-integration` for the controller, as with the original. Objects without it are not touched.',
  ],
  partOfLabel: ['we', 'label', 'Lease, Secret', '`argocd-agent`: objects that the principal and the agent keep.'],
};

const protocol: Texts<typeof annotations> = {
  sourceUid: [
    'we',
    'annotation',
    'copy or mirror',
    'UID of the object that it is a copy of. A copy without it is taken over or refused, by the adoption policy.',
  ],
  principalUid: ['we', 'annotation', 'copy', 'The principal that wrote it last.'],
  namespaceRemapped: [
    'we',
    'annotation',
    'copy',
    "`true`: its Application is in the principal's namespace on the hub.",
  ],
  stillThere: [
    'we',
    'annotation',
    'the deletion of a copy, on its way',
    '`true`: its source is still there, and only no longer meant for this cluster. It stands on no object.',
  ],
  mismatchPolicy: [
    'you',
    'annotation',
    'Application on the hub',
    '`recreate` or `upsert`: what the agent does with a copy of an earlier Application of the same name.',
  ],
  adoptionPolicy: [
    'you',
    'annotation',
    'Application on the cluster',
    '`always` or `never`: whether the agent takes over an Application that it did not make.',
  ],
  refresh: ['you', 'annotation', 'Application', "Argo CD's: `normal` or `hard` asks for a refresh, also from the hub."],
  refreshTimestamp: [
    'they',
    'annotation',
    'Application',
    "Argo CD's, from 3.6 on: tells one request to refresh from the next.",
  ],
  hydrate: ['you', 'annotation', 'Application', "Argo CD's: asks for a run of the source hydrator, also from the hub."],
  hydrateTimestamp: [
    'they',
    'annotation',
    'Application',
    "Argo CD's, from 3.6 on: tells one request to hydrate from the next.",
  ],
  deletionApproved: [
    'you',
    'annotation',
    'Application',
    "Argo CD's: you approve that resources with `Delete=confirm` are deleted, also from the hub.",
  ],
  notified: [
    'they',
    'annotation',
    'Application',
    "State of Argo CD's notification controller. It is not synchronised: each side has its own.",
  ],
  lastUpdated: ['they', 'annotation', 'mirror', 'Written by Go principals; ignored.'],
  nudgedAt: ['we', 'annotation', 'copy', 'When the agent last made Argo CD look at a copy that is being deleted.'],
  reportedOperation: ['we', 'annotation', 'mirror', 'When the operation began that the agent reported last.'],
  waitingOperation: ['we', 'annotation', 'copy', 'An operation that waits for the end of the one that runs.'],
  takenOver: [
    'we',
    'annotation',
    'copy',
    'What an object was before it became a copy. It is given back so when the hub has no more to do with it.',
  ],
  release: [
    'you',
    'annotation',
    'Application on the hub',
    '`true` on an Application that is being deleted lets it go without an answer of its agent. What it deployed stays.',
  ],
  mirrorOf: ['we', 'annotation', 'mirror', 'The agent whose object it mirrors.'],
  mirrorChecksums: [
    'we',
    'annotation',
    'mirror',
    "Checksums of the agent's object and of the mirror, by which a resync tells what differs.",
  ],
  mirrorDigests: ['we', 'annotation', 'mirror', 'Digests of both, for the same purpose.'],
  onBothHubs: ['we', 'annotation', 'any synchronised object', '`true`: the other hub of a pair has, or had, it too.'],
  lastActiveHub: [
    'we',
    'annotation',
    'Lease of a pair of hubs',
    'The hub that was active last: the other one does not become active by itself.',
  ],
  hubRole: [
    'we',
    'annotation',
    'Lease `argocd-agent.hub-role`',
    '`active`, `demoting`, `standby` or `promoting`: what all principals of one of two hubs are, or are about to be.',
  ],
  preferredRole: [
    'we',
    'annotation',
    'Lease `argocd-agent.hub-role`',
    'What `--ha-preferred-role` was when it decided the role. Another value decides again.',
  ],
  preferredByPod: [
    'we',
    'annotation',
    'Lease `argocd-agent.hub-role`',
    'What each of the last pods preferred, as JSON. A pod that restarts does not decide the role again.',
  ],
  followerState: [
    'we',
    'annotation',
    'Lease `argocd-agent.hub-role`',
    'The state of the principal of a standby hub that follows the other hub.',
  ],
  changedOnStandby: [
    'we',
    'annotation',
    'Lease `argocd-agent.hub-role`',
    'Names of objects that were changed on a standby hub and cannot be put back, as JSON.',
  ],
  isFollowed: [
    'we',
    'annotation',
    'ConfigMap `argocd-agent-deleted-objects`',
    '`true`: a standby has had everything since this hub became active, so deletions are recorded no longer.',
  ],
  installationId: [
    'they',
    'annotation',
    'any object',
    "Argo CD's: the installation whose Application manages the object. It is not synchronised, as `argocd.argoproj.io/tracking-id`.",
  ],
  lastApplied: ['they', 'annotation', 'any object', "kubectl's own. It is not synchronised."],
};

const hub: Texts<typeof keys> = {
  component: ['we', 'label', 'Lease', '`connection` or `replica`: what the Lease records.'],
  gitOpsCluster: ['we', 'label', 'ManifestWork', 'Name of the GitOpsCluster, as in argocd-pull-integration.'],
  ownerName: ['we', 'label', 'ManifestWork, add-on, Secret', 'Name of the GitOpsCluster.'],
  ownerNamespace: ['we', 'label', 'ManifestWork, add-on, Secret', 'Namespace of the GitOpsCluster.'],
  owner: ['we', 'annotation', 'ManifestWork, add-on, Secret', 'The GitOpsCluster as `namespace/name`, in full length.'],
  clusterName: ['we', 'label', 'Secret', 'Name of the ManagedCluster.'],
  copiedLabels: [
    'we',
    'annotation',
    'cluster Secret',
    'The labels that come from the ManagedCluster, separated by commas.',
  ],
  part: ['we', 'label', 'ManifestWork', '`crds`, `argocd`, `agent`, `pre-delete` or `former`: what the work delivers.'],
  addOnName: ['they', 'label', 'ManifestWork, CertificateSigningRequest', "OCM's: name of the add-on."],
  placement: ['they', 'label', 'PlacementDecision', "OCM's: the Placement of the decision."],
  decisionGroupIndex: [
    'they',
    'label',
    'PlacementDecision',
    "OCM's: number of the decision group; rollouts follow it.",
  ],
  decisionGroupName: ['they', 'label', 'PlacementDecision', "OCM's: name of the decision group."],
  forceDetach: [
    'you',
    'annotation',
    'GitOpsCluster, ManagedClusterAddOn',
    '`true` detaches clusters without waiting for those that do not answer. What is on them stays.',
  ],
  retain: [
    'you',
    'annotation',
    'GitOpsCluster',
    '`true` removes our finalizers: when the GitOpsCluster is deleted, its clusters keep everything.',
  ],
  principalNamespace: [
    'you',
    'annotation',
    'GitOpsCluster',
    'The namespace of the principal that serves it, if that is another one.',
  ],
  detaching: ['we', 'annotation', 'ManagedClusterAddOn', 'The cluster is being detached.'],
  drainUntil: [
    'we',
    'annotation',
    'ManagedClusterAddOn',
    'Until when the agent of a detached cluster stays to carry out deletions.',
  ],
  issued: ['we', 'annotation', 'ManagedClusterAddOn', "The certificate issued last at the cluster's request, as JSON."],
  requestCluster: ['they', 'label', 'CertificateSigningRequest', "OCM's: name of the cluster."],
  rotate: [
    'you',
    'annotation',
    'Secret argocd-agent-ca, argocd-agent-jwt',
    'Any text. A new text asks for a new authority or key.',
  ],
  rotated: ['we', 'annotation', 'the same Secrets', 'The last such request that was carried out.'],
  authority: ['we', 'annotation', 'Secret argocd-agent-ca-trust', 'Fingerprint of the authority that issues.'],
  since: ['we', 'annotation', 'Secret', 'Since when its content is in use.'],
  namespaces: ['we', 'annotation', 'ManagedClusterAddOn', 'The namespaces that a detached cluster is cleaned of.'],
  configuredParams: [
    'we',
    'annotation',
    'ConfigMap argocd-cmd-params-cm',
    'What the controller has set there, and the values from before, so that it can give them back.',
  ],
  formerNamespaces: [
    'we',
    'annotation',
    'ManagedClusterAddOn',
    'Namespaces that are no longer used and are to be cleaned up.',
  ],
};

const pull: Texts<Omit<typeof pullKeys, 'refresh'>> = {
  pull: ['you', 'label', 'Application', '`true`: the Application is to run on a managed cluster (basic pull model).'],
  cluster: ['you', 'annotation', 'Application', 'Name of its ManagedCluster.'],
  appNamespace: ['you', 'annotation', 'Application', 'Its namespace on the managed cluster.'],
  destinationName: ['you', 'annotation', 'Application', 'Name of its destination on the managed cluster.'],
  destinationServer: ['you', 'annotation', 'Application', 'Address of its destination on the managed cluster.'],
  applicationSet: ['we', 'label', 'work, copy', 'An ApplicationSet made the Application.'],
  hostingApplicationSet: ['we', 'annotation', 'work, copy', 'The ApplicationSet that made the Application.'],
  hubNamespace: ['we', 'annotation', 'work', 'Namespace of the Application on the hub.'],
  hubName: ['we', 'annotation', 'work', 'Name of the Application on the hub.'],
  operation: ['we', 'annotation', 'copy', 'Id of the sync operation that it carries.'],
  refreshRequest: ['we', 'annotation', 'copy', 'Id of the refresh request that it carries.'],
};

const versions: Texts<typeof versionKeys> = {
  version: ['we', 'annotation', 'ManifestWork', 'The version that it was made with, as JSON.'],
  updatedAt: ['we', 'annotation', 'ManifestWork', 'When that version replaced another one.'],
  reconnects: ['we', 'annotation', 'ManifestWork', '`true`: the update has another address of the principal.'],
  isOver: ['we', 'annotation', 'ManifestWork', '`true`: the rollout is over.'],
};

const replicas: Texts<typeof replicaAnnotations> = {
  pod: ['we', 'annotation', 'Lease of a replica', 'The pod of the principal.'],
  address: ['we', 'annotation', 'Lease of a replica', 'Where the other replicas reach it.'],
  fingerprint: ['we', 'annotation', 'Lease of a replica', 'The certificate by which they know it.'],
  version: ['we', 'annotation', 'Lease of a replica', 'Its version.'],
};

const single: Readonly<Record<string, Text>> = {
  [finalizer]: [
    'we',
    'finalizer',
    'GitOpsCluster, ManagedClusterAddOn',
    'Holds it until its clusters are cleaned up. Use force-detach or retain-clusters rather than removing it.',
  ],
  [disableImageSync]: ['you', 'annotation', 'GitOpsCluster', "`true` leaves the agent's image to argocd-operator."],
  [createdNamespace.label]: [
    'we',
    'label',
    'Namespace on a cluster',
    '`true`: the add-on created it, and the clean-up deletes it. Remove the label to keep the namespace.',
  ],
  [adoptedFrom]: [
    'we',
    'annotation',
    'ClusterManagementAddOn',
    "argocd-pull-integration's Helm release that the hub was taken over from.",
  ],
  [selfRegisteredLabel]: [
    'we',
    'label',
    'cluster Secret',
    '`true`: the principal made it because an agent registered itself.',
  ],
  [wantedByAnnotation]: [
    'we',
    'annotation',
    'Lease of a connection',
    'The replica that the agent has connected to while another one holds it.',
  ],
  [tokenAnnotation]: [
    'we',
    'annotation',
    "Secret with an agent's certificate",
    'SHA-256 of the token that it was requested with.',
  ],
  'argocd-agent.argoproj-labs.io/params-digest': [
    'we',
    'annotation',
    'pod of the agent',
    'Digest of its parameters: a change starts a new pod.',
  ],
};

/** Every label, annotation and finalizer that the programs know, with its text, by name. */
export const knownMetadata: Readonly<Record<string, Text>> = {
  ...byName(wellKnown, shared),
  ...byName(annotations, protocol),
  ...byName(keys, hub),
  ...byName(pullKeys, pull),
  ...byName(versionKeys, versions),
  ...byName(replicaAnnotations, replicas),
  ...single,
};

function byName<K extends string>(
  names: Readonly<Record<K, string>>,
  texts: Readonly<Partial<Record<K, Text>>>,
): Record<string, Text> {
  return Object.fromEntries(
    Object.entries<Text | undefined>(texts).flatMap(([key, text]) => (text ? [[names[key as K], text]] : [])),
  );
}

/** The page of all labels, annotations and finalizers, in Markdown. */
export function metadataPage(): string {
  return [
    '# Labels and annotations',
    '',
    generated,
    '',
    '## For you to set',
    '',
    ...table('you'),
    '',
    '## Kept by the programs',
    '',
    'Do not set or change them: they are written anew, or something is lost.',
    '',
    ...table('we'),
    '',
    '## Of other programs, with a meaning here',
    '',
    ...table('they'),
    '',
  ].join('\n');
}

function table(author: Author): string[] {
  const rows = Object.entries(knownMetadata)
    .filter(([, [one]]) => one === author)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, [, kind, on, means]]) => `| \`${name}\` | ${kind} | ${on} | ${cell(means)} |`);
  return ['| Name | | On | |', '|---|---|---|---|', ...rows];
}
