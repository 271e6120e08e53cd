import { problemCondition } from '../../controller/basic/names.ts';
import type { AddOnReasons, FleetReasons, RequestReasons } from '../../controller/hub/index.ts';
import { agentDisconnectedCondition, agentErrorCondition, agentWarningCondition } from '../../lib/argocd/index.ts';
import { cell, generated } from './markdown.ts';

/** What the conditions of one kind of object mean: a missing or undeclared type or reason does not compile. */
type Texts<Reasons> = {
  readonly [Type in keyof Reasons]: readonly [
    means: string,
    reasons: { readonly [Reason in Reasons[Type] & string]: string },
  ];
};

const nothing = 'Nothing to do.';
const done = `It is done. ${nothing}`;
const wrong = 'The message names the object and the error; correct it, and the controller tries again by itself.';
const noneSelected = 'There are no clusters. Look at PlacementEvaluated if you expect some.';
const underWay = `It is under way. ${nothing}`;
const conflict =
  'Another GitOpsCluster has a selected cluster, and keeps it. Change one of the two Placements so that each cluster has one owner.';
const concern = {
  Success: done,
  Failed: `It failed for the clusters in the message. ${wrong}`,
  InProgress: underWay,
  NoClusters: noneSelected,
};

const fleet: Texts<FleetReasons> = {
  Ready: [
    "Whether the hub's side of this GitOpsCluster works: a summary of the conditions below, apart from those about the clusters' health. Its reason is that of the first condition that is not True.",
    {
      Success: nothing,
      Failed: 'Look at the condition that the message names.',
      InProgress: 'Wait; the message names the condition that is not known yet.',
      ServerNotDiscovered: 'See ServerDiscovered.',
      NamespaceNotServed: 'See RBACReady.',
      NamespaceNotReadable: 'See RBACReady.',
      Conflict: 'See PlacementEvaluated.',
      HubReconcilesApplications: 'See HubArgoCDCompatible.',
      HubArgoCDNotConfigured: 'See HubArgoCDCompatible.',
      VersionUnknown: 'See HubArgoCDCompatible.',
      VersionNotSupported: 'See HubArgoCDCompatible.',
      UnknownParameters: 'See ClusterSettingsRead.',
    },
  ],
  RBACReady: [
    "Whether the controller may work in the principal's namespace.",
    {
      Success: nothing,
      NamespaceNotServed:
        "The chart gives the controller no rights in this namespace. Add it to the chart's values as the message says, or move the GitOpsCluster.",
      NamespaceNotReadable:
        "The API server refuses to show the namespace's objects to the controller. Give it the rights that the message names.",
    },
  ],
  ServerDiscovered: [
    'Whether it is known at which address the agents reach the principal.',
    {
      Success: nothing,
      Failed: wrong,
      ServerNotDiscovered:
        "No Service, Ingress or Route gives an address. Set spec.argoCDAgentAddon.principalServerAddress and principalServerPort, or correct the principal's Service.",
    },
  ],
  CACertificateReady: [
    'Whether there is an authority (Secret argocd-agent-ca) that issues all certificates.',
    { Success: nothing, Failed: `${wrong} A Secret of yours must hold a valid authority with its key.` },
  ],
  JWTSecretReady: [
    'Whether there is the key of the tokens (Secret argocd-agent-jwt) that the principal gives its agents.',
    { Success: nothing, Failed: wrong },
  ],
  PrincipalCertificateReady: [
    "Whether the principal's server certificate (Secret argocd-agent-principal-tls) is valid and names its address.",
    { Success: nothing, Failed: wrong },
  ],
  ResourceProxyCertificateReady: [
    "Whether the resource proxy's server certificate (Secret argocd-agent-resource-proxy-tls) is valid.",
    { Success: nothing, Failed: wrong },
  ],
  PrincipalAvailable: [
    "Whether there is a principal behind the principal's Service.",
    {
      Success: nothing,
      Failed: 'Agents cannot connect: look at the pods of the principal and their log.',
      InProgress: 'The principal starts or is replaced. Wait a minute.',
    },
  ],
  AddOnTemplateReady: [
    "Always True: argocd-pull-integration's condition about a template that this controller does not need.",
    { Success: nothing },
  ],
  HubArgoCDCompatible: [
    "Whether the hub's own Argo CD fits the fleet, and the Argo CD that the clusters get is known.",
    {
      Success: nothing,
      Failed: wrong,
      InProgress: `The controller sets the hub's Argo CD up as soon as the principal is ready. ${nothing}`,
      HubReconcilesApplications:
        "The hub's application controller is older than 3.4 and works on the fleet's Applications too: update it, or scale it to 0 replicas.",
      HubArgoCDNotConfigured:
        'Argo CD on the hub lacks a setting of live access: run the command in the message, or set hubArgoCD.configure in the chart.',
      VersionUnknown:
        'The version in an image cannot be told, or is newer than this program knows: check that it is supported, or update this program.',
      VersionNotSupported:
        "The clusters would get an Argo CD that is too old: update the hub's Argo CD, or set managedArgoCD.image in the chart.",
    },
  ],
  ClusterSettingsRead: [
    'Whether the settings for the clusters have an effect. A GitOpsCluster without settings does not have it.',
    {
      Success: nothing,
      Failed: 'The settings contradict each other: the message says which and how to solve it.',
      UnknownParameters:
        'No delivered program reads some of the parameters, most likely by a typing error: correct or remove them.',
    },
  ],
  PlacementTolerationConfigured: [
    'Whether the Placement keeps clusters that do not report for a while.',
    {
      Success: nothing,
      Failed:
        "The Placement does not exist, or is not the controller's to change: add the tolerations that the message names.",
    },
  ],
  PlacementEvaluated: [
    'Which clusters the Placement selects, and which of them this GitOpsCluster does not enrol.',
    {
      Success: nothing,
      Failed: `The selection could not be read; enrolled clusters stay. ${wrong}`,
      InProgress: 'OCM has not evaluated the Placement yet. If it stays so, check that the Placement exists.',
      NoClusters:
        "The Placement selects nothing: the message has OCM's reason, often a missing ManagedClusterSetBinding.",
      Conflict: conflict,
    },
  ],
  ClustersImported: ["Whether the hub's Argo CD knows the clusters (Argo CD's cluster Secrets).", concern],
  ManifestWorkCreated: ['Whether the ManifestWorks of all clusters are written.', concern],
  ArgoCDCRDelivered: ['Whether the ManifestWorks with Argo CD are written.', concern],
  AddonConfigured: ['Whether the ManagedClusterAddOns of all clusters are written.', concern],
  RemovedClustersCleanedUp: [
    'Whether clusters that left are cleaned up. It is there only after a cluster has left.',
    {
      Success: nothing,
      Failed: wrong,
      InProgress:
        'The message says what the controller waits for. Annotate with force-detach if a cluster never comes back.',
    },
  ],
  ClustersReady: [
    'Whether the workloads of all clusters run and their agents are connected.',
    {
      Success: nothing,
      Failed: 'The clusters in the message have had a problem for too long: look at status.clusters.failingClusters.',
      InProgress: 'Wait for the clusters in the message.',
      NoClusters: noneSelected,
      Conflict: conflict,
    },
  ],
  ClustersUpToDate: [
    'Whether all clusters have the version of Argo CD and agent that they should have.',
    {
      Success: nothing,
      Failed: 'The rollout is stopped: mend the clusters in the message, or allow more failures in rolloutStrategy.',
      InProgress: 'The rollout is under way. Wait.',
      NoClusters: noneSelected,
    },
  ],
};

const addOn: Texts<AddOnReasons> = {
  Configured: [
    "Whether the add-on's configuration (AddOnDeploymentConfig) can be used.",
    {
      ConfigurationsConfigured: 'Nothing to do, unless the message names containers that do not exist.',
      ConfigurationInvalid: 'Correct the field of the AddOnDeploymentConfig that the message names.',
    },
  ],
  ManifestApplied: [
    'Whether the cluster has applied the ManifestWorks.',
    {
      AddonManifestApplied: nothing,
      AddonManifestAppliedFailed:
        'The cluster refuses an object: the message has its error, and the right that the work agent lacks if that is why.',
      ManifestWorkApplyFailed: 'The hub could not write the works: correct what the message names.',
      Progressing: 'The works are applied for the first time. Wait.',
      Updating: 'Changed works are applied. Wait.',
    },
  ],
  Available: [
    'Whether what was delivered runs on the cluster, by the reports of its work agent.',
    {
      ProbeAvailable: nothing,
      ProbeUnavailable: 'Look at the pods of the workloads in the message, on the cluster.',
      AgentNotConnected: 'Everything runs, but the agent does not reach the principal: look at the log of the agent.',
      ResourceNotAvailable: 'Somebody deleted a delivered object on the cluster. OCM makes it again.',
      WorkNotApplied: 'A work is not applied: see ManifestApplied.',
      WorkNotFound: 'There are no works yet. See ManifestWorkCreated of the GitOpsCluster.',
      NoProbeResult: 'The work agent has not reported yet. Wait.',
      ManagedClusterNotAvailable: 'The cluster does not report to OCM: look at its klusterlet.',
    },
  ],
  Progressing: [
    'Whether something is being changed on the cluster.',
    {
      Completed: nothing,
      Progressing: 'Works are being written or applied. Wait.',
      WaitingForRollout: 'Other clusters get the new version first. Wait, or change rolloutStrategy.',
      Detaching: 'The cluster leaves: the message says what the controller waits for.',
      Failed: 'Works could not be written, or a new version does not run in its time: correct what the message names.',
    },
  ],
  AgentConnected: [
    "Whether the cluster's agent is connected to the principal, by the Lease that the principal keeps.",
    {
      Connected: nothing,
      Disconnected: 'Look at the log of the agent on the cluster, and at the network to the address in the message.',
      NeverConnected:
        'Right after the enrolment: wait. Else look at the log of the agent, and at the address in the message.',
    },
  ],
  ClientCertificateIssued: [
    "Whether a cluster that is to request its agent's certificate has got one.",
    {
      Issued: nothing,
      InUse: 'The agent has connected with such a certificate, though its record is lost. Nothing to do.',
      Expired: 'The cluster does not renew its certificate: look at the log of klusterlet-registration-agent there.',
      NotRequested:
        'The cluster has not asked: look at that log, or set spec.argoCDAgentAddon.clientCertificate to Generated.',
    },
  ],
  ClusterLabelsCopied: [
    'That labels or claims of the ManagedCluster could not be copied to the cluster Secret. It is there only then.',
    {
      NotCopied:
        'Change the labels that the message names; a name that is reserved, or a value that is no label, is not copied.',
    },
  ],
  HookManifestCompleted: [
    "Whether the Job that cleans a detached cluster up is complete (OCM's condition).",
    {
      HookManifestIsCompleted: nothing,
      HookManifestIsNotCompleted: 'Wait; look at the pods of the Job on the cluster if it stays so.',
    },
  ],
};

const request: Texts<RequestReasons> = {
  Approved: ["The certificate of a cluster's agent is signed.", { ArgoCDAgentRequestApproved: nothing }],
  Denied: [
    'No certificate is issued.',
    {
      ArgoCDAgentRequestRefused:
        "The message says why: only a cluster's own registration agent gets one, in the form of its add-on.",
    },
  ],
  Failed: [
    'A request that somebody had approved gets no certificate.',
    { ArgoCDAgentRequestRefused: 'As with Denied; do not approve requests to this signer yourself.' },
  ],
};

/** The conditions of Argo CD's Applications, which have no reason: who sets it, what it means. */
const application = [
  [
    agentErrorCondition,
    'the principal',
    'The agent could not do what the hub wants: the message has the error of the cluster. Correct the Application or the cluster; the agent tries again.',
  ],
  [
    agentWarningCondition,
    'the principal',
    'The principal waits for something, or has seen a harmless irregularity: the message says which, and whether to act.',
  ],
  [
    agentDisconnectedCondition,
    'the principal',
    'The agent whose status is shown is not connected: the status is old. Look at the agent; the condition goes when it is back.',
  ],
  [
    problemCondition,
    'the basic pull model',
    'The Application cannot be delivered, or was not applied: the message says why. Correct the Application or its cluster.',
  ],
] as const;

/** The page of all conditions, in Markdown. */
export function conditionsPage(): string {
  return [
    '# Conditions',
    '',
    generated,
    '',
    'A condition has a type, a status, a reason and a message. The message names the objects and says what to do; this page says',
    'what type and reason mean.',
    '',
    '## GitOpsCluster',
    '',
    ...types(fleet),
    '## ManagedClusterAddOn',
    '',
    'Object `argocd-agent-addon` in the namespace of each cluster.',
    '',
    ...types(addOn),
    '## CertificateSigningRequest',
    '',
    ...types(request),
    '## Application',
    '',
    "Argo CD's conditions of Applications have no reason.",
    '',
    '| Type | Set by | |',
    '|---|---|---|',
    ...application.map(([type, who, means]) => `| \`${type}\` | ${who} | ${cell(means)} |`),
    '',
  ].join('\n');
}

/** A heading for each type, so that others can link to it. */
function types(texts: Readonly<Record<string, readonly [string, Readonly<Record<string, string>>]>>): string[] {
  const words = /\b[A-Z]\w+/g;
  const linked = (text: string) =>
    cell(text).replaceAll(words, (word) => (Object.hasOwn(texts, word) ? `[${word}](#${word.toLowerCase()})` : word));
  return Object.entries(texts).flatMap(([type, [means, reasons]]) => [
    `### ${type}`,
    '',
    cell(means),
    '',
    '| Reason | What to do |',
    '|---|---|',
    ...Object.entries(reasons).map(([reason, text]) => `| \`${reason}\` | ${linked(text)} |`),
    '',
  ]);
}
