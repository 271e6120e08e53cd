import { expect, test } from 'vitest';
import { ownership } from './ownership.ts';

const application = (namespace: string, name?: string) => ({
  metadata: { namespace },
  spec: { destination: name === undefined ? {} : { name } },
});
const isMapped = (agent: string) => agent !== 'unmapped';

test('namespace-based: the namespace names the agent', () => {
  const agentOf = ownership({
    namespace: 'argocd',
    allowedNamespaces: ['team-*', 'unmapped'],
    destinationBasedMapping: false,
    isMapped,
  });
  expect(agentOf(application('team-a', 'elsewhere'))).toBe('team-a');
  expect(agentOf(application('argocd', 'x'))).toBeUndefined();
  expect(agentOf(application('unmapped'))).toBeUndefined();
});

test('destination-based: the destination names the agent', () => {
  const agentOf = ownership({
    namespace: 'argocd',
    allowedNamespaces: ['team-*'],
    destinationBasedMapping: true,
    isMapped,
  });
  expect(agentOf(application('argocd', 'cluster1'))).toBe('cluster1');
  expect(agentOf(application('team-a', 'cluster1'))).toBe('cluster1');
  expect(agentOf(application('other', 'cluster1'))).toBeUndefined();
  expect(agentOf(application('argocd', 'in-cluster'))).toBeUndefined();
  expect(agentOf(application('argocd', ''))).toBeUndefined();
  expect(agentOf(application('argocd'))).toBeUndefined();
  expect(agentOf(application('argocd', 'unmapped'))).toBeUndefined();
});
