import { expect, test } from 'vitest';
import type { GitOpsCluster, Placement, Toleration } from '../hub/index.ts';
import { parseGitOpsCluster } from '../spec/index.ts';
import type { Fleet, FleetDeps } from './fleet-deps.ts';
import { describePlacement, ensureTolerations } from './placement-steps.ts';

const caches = { placements: { get: () => undefined, list: () => [] } } as unknown as FleetDeps['caches'];

function messageFor(placementNamespace: string | undefined, clusters: string[]): string {
  const placementRef = { kind: 'Placement', name: 'p', namespace: placementNamespace };
  const gitOpsCluster: GitOpsCluster = { metadata: { namespace: 'argocd', name: 'fleet' }, spec: { placementRef } };
  const selection = { known: true, clusters: new Set(clusters) };
  const fleet = { gitOpsCluster, namespace: 'argocd', spec: parseGitOpsCluster(gitOpsCluster), selection };
  const result = describePlacement({ caches }, fleet as unknown as Fleet, { skipped: [], lost: [] });
  if (result?.status !== 'True') {
    throw new Error(JSON.stringify(result));
  }
  return result.message;
}

test.each([[['c1']], [[]]])(
  'a namespace of the reference that is not used is reported, with clusters %j',
  (clusters) => {
    expect(messageFor('foo', clusters)).toMatch(
      /; spec\.placementRef\.namespace \(foo\) is not used: a GitOpsCluster uses a Placement of its own namespace, argocd$/,
    );
    for (const namespace of [undefined, '', 'argocd']) {
      expect(messageFor(namespace, clusters)).not.toContain('placementRef');
    }
  },
);

const unreachable = { key: 'cluster.open-cluster-management.io/unreachable', operator: 'Exists' };
const unavailable = { key: 'cluster.open-cluster-management.io/unavailable', operator: 'Exists' };
const own = { key: 'example.com/maintenance', operator: 'Exists' };

/** What the step says of a Placement with these tolerations, and what it writes. */
async function tolerationsOf(tolerations: Toleration[] | undefined) {
  const metadata = { namespace: 'argocd', name: 'p' };
  const placement: Placement = { metadata, spec: tolerations === undefined ? {} : { tolerations } };
  const written: unknown[] = [];
  const client = { mergePatch: async (_: unknown, __: unknown, patch: unknown) => written.push(patch) };
  const deps = { client, caches: { placements: { get: () => placement } } } as unknown as FleetDeps;
  const gitOpsCluster: GitOpsCluster = {
    metadata: { namespace: 'argocd', name: 'fleet' },
    spec: { placementRef: { kind: 'Placement', name: 'p' } },
  };
  const fleet = { gitOpsCluster, namespace: 'argocd', spec: parseGitOpsCluster(gitOpsCluster) };
  const { result } = await ensureTolerations(deps, fleet as unknown as Fleet);
  return { written, status: result?.status, message: result?.message ?? '' };
}

test('a Placement without tolerations gets those that keep clusters that do not report', async () => {
  const { written, status } = await tolerationsOf(undefined);
  expect(status).toBe('True');
  expect(written).toMatchObject([{ spec: { tolerations: [unreachable, unavailable] } }]);
});

test.each([
  ['of its own', [own], [unreachable, unavailable]],
  ['that is empty', [], [unreachable, unavailable]],
  ['with one of the two', [unreachable], [unavailable]],
])('a list %s is never changed, and what it lacks is said', async (_, list, missing) => {
  const { written, status, message } = await tolerationsOf(list);
  expect(written).toEqual([]);
  expect(status).toBe('False');
  const named = missing.map(({ key, operator }) => `{key: ${key}, operator: ${operator}}`).join(' and ');
  expect(message).toContain(`Placement argocd/p would drop a cluster that does not report`);
  expect(message).toContain(`add ${named} to its spec.tolerations (the controller does not change a list of others)`);
});

test.each([[[own, unreachable, unavailable]], [[{ operator: 'Exists' }]]])('nothing lacks in %j', async (list) => {
  expect(await tolerationsOf(list)).toMatchObject({ written: [], status: 'True' });
});
