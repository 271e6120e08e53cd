import type { EventRecorder } from '../../lib/kube/index.ts';
import type { FleetConditionType } from './condition-types.ts';

/**
 * The reasons of the controller's Events, apart from those of conditions. What is recorded for another reason does not
 * compile. docs/reference/events.md says what they mean (`site/reference/events.ts`).
 */
export type NamedEventReason =
  | 'Ready'
  | 'ClusterSkipped'
  | 'ClusterConflict'
  | 'ClusterEnrolled'
  | 'ClusterConnected'
  | 'ClusterRefusesWork'
  | 'ClusterUnavailable'
  | 'AgentDisconnected'
  | 'CertificateMissing'
  | 'ClusterRecovered'
  | 'ClusterLeaving'
  | 'ClusterLeft'
  | 'DrainTimedOut'
  | 'CleanUpFailed'
  | 'AuthorityReplaced'
  | 'AuthorityAdded'
  | 'AuthorityRetired'
  | 'CertificateRenewed'
  | 'KeyWithdrawn'
  | 'PrincipalRestarted'
  | 'RequestRefused'
  | 'SecretsLeft'
  | 'HubArgoCDConfigured'
  | 'HubArgoCDGivenBack'
  | 'HubArgoCDRestarted'
  | 'HubArgoCDNotRestarted';

/** The reason of an Event: one that has a name, or that a condition of a GitOpsCluster became False. */
export type HubEventReason = NamedEventReason | `${Exclude<FleetConditionType, 'Ready'>}Failed`;

/** Records the controller's Events. */
export type HubEvents = Pick<EventRecorder<HubEventReason>, 'normal' | 'warning'>;
