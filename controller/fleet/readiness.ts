import { type Condition, findCondition } from '../../lib/kube/index.ts';
import type { FleetConditionType } from '../hub/index.ts';

/** Whether `Ready` depends on a condition. Those that it does not are about the clusters and others' programs. */
const isDecisive: Readonly<Record<Exclude<FleetConditionType, 'Ready'>, boolean>> = {
  RBACReady: true,
  ServerDiscovered: true,
  CACertificateReady: true,
  JWTSecretReady: true,
  PrincipalCertificateReady: true,
  ResourceProxyCertificateReady: true,
  PrincipalAvailable: true,
  AddOnTemplateReady: true,
  HubArgoCDCompatible: false,
  ClusterSettingsRead: false,
  PlacementTolerationConfigured: false,
  PlacementEvaluated: true,
  ClustersImported: true,
  ManifestWorkCreated: true,
  ArgoCDCRDelivered: true,
  AddonConfigured: true,
  RemovedClustersCleanedUp: false,
  ClustersReady: false,
  ClustersUpToDate: false,
};

/**
 * The condition `Ready`, from the others. One of a type that this version does not have is not counted: after a rollback
 * from a version that has it, nobody would ever change it.
 */
export function readiness(conditions: readonly Condition[]): Pick<Condition, 'status' | 'reason' | 'message'> {
  const relevant = conditions.filter(({ type }) => (isDecisive as Readonly<Record<string, boolean>>)[type] === true);
  const bad = relevant.filter(({ status }) => status === 'False');
  const [first] = bad;
  if (first) {
    const more =
      bad.length > 1
        ? ` (and ${bad.length - 1} more: ${bad
            .slice(1)
            .map(({ type }) => type)
            .join(', ')})`
        : '';
    return { status: 'False', reason: first.reason, message: `${first.type}: ${first.message}${more}` };
  }
  const open = relevant.find(({ status }) => status === 'Unknown');
  if (open) {
    return { status: 'Unknown', reason: open.reason, message: `${open.type}: ${open.message}` };
  }
  const clusters = findCondition(conditions, 'ClustersReady')?.message;
  return { status: 'True', reason: 'Success', message: `The hub's side works${clusters ? `; ${clusters}` : ''}` };
}
