import { expect } from 'vitest';
import { type KubeClient, type ObjectKey, type Pod, pods } from '../../lib/kube/index.ts';
import { type FleetApplication, fleetApplications } from '../fleet/index.ts';
import { waitForObject } from '../testbed/index.ts';

/** An object of an Application whose synchronisation never ends by itself. */
export const endlessHook = `apiVersion: v1
kind: Pod
metadata: { name: endless, annotations: { argocd.argoproj.io/hook: PreSync } }
spec:
  restartPolicy: Never
  containers: [{ name: wait, image: "registry.k8s.io/pause:3.10" }]
`;

/** An Application that did not reach its repo server for a moment tries again after three minutes. */
const generous = { timeoutMs: 240_000 };

/** What Argo CD says of an Application's present or last operation. */
export function operationOf(application: FleetApplication | undefined) {
  return application?.status?.operationState as
    | { phase?: string; startedAt?: string; message?: string; operation?: { info?: { name: string; value: string }[] } }
    | undefined;
}

const isReady = (pod: Pod | undefined) =>
  pod?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

/**
 * Starts a sync that hangs in {@link endlessHook}, and terminates it from the hub as Argo CD's API server does. The
 * Application deploys into a namespace of its name.
 */
export async function terminateHangingSync(where: {
  from: KubeClient;
  /** The Application on the hub. */
  key: ObjectKey;
  on: KubeClient;
  /** The same one on its cluster. */
  copy: ObjectKey;
}): Promise<void> {
  const { from, key, on, copy } = where;
  const sync = { revision: 'main', syncOptions: ['CreateNamespace=true'] };
  await from.mergePatch(fleetApplications, key, { operation: { sync } });
  // Argo CD's controller loses what is written while it looks at an operation: now it waits for the hook alone.
  await waitForObject(on, pods, { namespace: key.name, name: 'endless' }, isReady, generous);
  const waits = (found: FleetApplication | undefined) => {
    const { phase, message = '' } = operationOf(found) ?? {};
    return phase === 'Running' && /waiting for completion of hook/.test(message);
  };
  await waitForObject(on, fleetApplications, copy, waits, generous);
  await waitForObject(from, fleetApplications, key, (found) => operationOf(found)?.phase === 'Running', generous);
  await from.mergePatch(fleetApplications, key, { status: { operationState: { phase: 'Terminating' } } });
  const ended = await waitForObject(
    from,
    fleetApplications,
    key,
    (now) => operationOf(now)?.phase === 'Failed',
    generous,
  );
  expect(operationOf(ended)?.message).toContain('terminated');
}
