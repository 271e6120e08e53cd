import { type FleetConditionType, succeeded } from '../hub/index.ts';
import type { ClusterSummary } from '../ownership/index.ts';
import {
  ensureAuthority,
  ensurePrincipalCertificate,
  ensureResourceProxyCertificate,
  ensureTokenKey,
} from '../trust/index.ts';
import type { Fleet, FleetDeps, FoundationFindings } from './fleet-deps.ts';
import { ensureHubArgoCd } from './hub-argo-cd-step.ts';
import { describePlacement, ensureTolerations } from './placement-steps.ts';
import { restartPrincipal } from './principal-restart.ts';
import { judgePrincipal, principalCondition } from './principal-step.ts';
import { runStep, type Step, type StepOutcome } from './run-step.ts';
import { discoverServer } from './server-step.ts';
import { judgeSettings, settingsCondition } from './settings-step.ts';
import { summarySteps } from './summary-steps.ts';

const step = <Type extends FleetConditionType>(condition: Type, purpose: string): Step<Type> => ({
  condition,
  purpose,
});
const constant = (condition: FleetConditionType, purpose: string, message: string) => ({
  ...step(condition, purpose),
  result: succeeded(message),
});
/** The condition about the controller's own rights. */
export const rbacCondition = 'RBACReady';
const rbac = constant(
  rbacCondition,
  'ensure RBAC',
  'RBAC resources created successfully (the chart grants everything; nothing is needed per GitOpsCluster)',
);
const template = constant(
  'AddOnTemplateReady',
  'ensure AddOnTemplate',
  'No AddOnTemplate is needed: the controller renders the ManifestWorks itself',
);

/** Finds the principal's address and makes the authority: the prerequisites of all clusters of a GitOpsCluster. */
export async function layFoundation(
  deps: FleetDeps,
  fleet: Fleet,
): Promise<{ outcomes: readonly StepOutcome[]; found: FoundationFindings }> {
  const { signal } = fleet;
  const [server, authority] = await Promise.all([
    runStep(step('ServerDiscovered', 'discover the server'), signal, () =>
      discoverServer(fleet, deps.rollouts.addressOf(fleet.key)),
    ),
    runStep(step('CACertificateReady', 'create CA certificate'), signal, () => ensureAuthority(deps, fleet)),
  ]);
  return { outcomes: [rbac, server, authority], found: { endpoint: server.found, authority: authority.found } };
}

/** Makes all other objects of a GitOpsCluster on the hub. These steps do not depend on each other. */
export function equipHub(deps: FleetDeps, fleet: Fleet, found: FoundationFindings): Promise<StepOutcome[]> {
  const { signal, exposure, spec } = fleet;
  const { endpoint, authority } = found;
  const address = endpoint?.address ?? spec.server.value?.address ?? '';
  // Clusters that a new address has not reached yet dial the former one.
  const addresses = [address, ...deps.rollouts.addressesIn(fleet.namespace)];
  const readByPrincipal = [
    runStep(step('JWTSecretReady', 'create JWT secret'), signal, () => ensureTokenKey(deps, fleet)),
    runStep(step('PrincipalCertificateReady', 'generate principal certificate'), signal, () =>
      ensurePrincipalCertificate(deps, fleet, authority, { exposure, addresses }),
    ),
    runStep(step('ResourceProxyCertificateReady', 'generate resource proxy certificate'), signal, () =>
      ensureResourceProxyCertificate(deps, fleet, authority, exposure),
    ),
  ];
  return Promise.all([
    ...readByPrincipal,
    runStep(step(principalCondition, 'check the principal'), signal, async () => {
      // One restart for all of them.
      await Promise.all(readByPrincipal);
      await restartPrincipal(deps, fleet);
      return judgePrincipal(fleet);
    }),
    template,
    runStep(step('HubArgoCDCompatible', "look at the hub's Argo CD"), signal, () => ensureHubArgoCd(deps, fleet)),
    runStep(step(settingsCondition, 'look at the settings of the clusters'), signal, () => ({
      result: judgeSettings(deps, fleet),
    })),
    runStep(step('PlacementTolerationConfigured', 'configure placement tolerations'), signal, () =>
      ensureTolerations(deps, fleet),
    ),
  ]);
}

/** Describes the selection of the Placement. */
export function evaluatePlacement(deps: FleetDeps, fleet: Fleet, summary: ClusterSummary): Promise<StepOutcome> {
  return runStep(step('PlacementEvaluated', 'evaluate placement'), fleet.signal, () => ({
    result: describePlacement(deps, fleet, summary),
  }));
}

/** Computes the conditions about the clusters. */
export function sumUpClusters(
  fleet: Fleet,
  found: FoundationFindings,
  summary: ClusterSummary,
): Promise<StepOutcome[]> {
  return Promise.all(
    summarySteps.map(({ condition, purpose, run }) =>
      runStep({ condition, purpose }, fleet.signal, () => ({ result: run({ fleet, found, summary }) })),
    ),
  );
}
