import { expect, test } from 'vitest';
import type { GitOpsCluster } from '../hub/index.ts';
import { parseGitOpsCluster } from '../spec/index.ts';
import type { Fleet, FleetDeps } from './fleet-deps.ts';
import { describePlacement } from './placement-steps.ts';

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
