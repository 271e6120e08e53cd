import { expect, test } from 'vitest';
import { type Application, applicationRouter, clusterUrl, undecidedApplications } from './index.ts';

const app = (destination: Application['spec']['destination'], metadata: object = {}): Application => ({
  metadata: { namespace: 'argocd', name: 'shop', ...metadata },
  spec: { project: 'default', ...(destination === undefined ? {} : { destination }) },
});

const agents: Record<string, string> = { 'https://one': 'one', 'https://plain': '' };
const options = {
  namespace: 'argocd',
  allowedNamespaces: [],
  mapping: 'destination' as const,
  agentOfUrl: (url: string) => agents[url],
};
const route = applicationRouter(options);
const isUndecided = undecidedApplications(options);

test.each([
  ["the URL of an agent's cluster", { server: 'https://one' }, 'one', false],
  ['with an empty name, as the UI writes it', { name: '', server: 'https://one', namespace: 'shop' }, 'one', false],
  // As Argo CD, which takes the slash from the Secret's URL alone.
  ['with a slash at its end', { server: 'https://one/' }, undefined, true],
  ['a name, which counts before the URL', { name: 'two', server: 'https://one' }, 'two', false],
  ['the hub by name, beside the URL', { name: 'in-cluster', server: 'https://one' }, undefined, false],
  ['the hub by URL', { server: 'https://kubernetes.default.svc' }, undefined, false],
  ['a cluster without an agent', { server: 'https://plain' }, undefined, false],
  ['a URL that no Secret has, or several have', { server: 'https://gone' }, undefined, true],
  ['nothing', {}, undefined, false],
  ['no destination', undefined, undefined, false],
])('with destination-based mapping, an Application for %s', (_, destination, agent, undecided) => {
  expect([route(app(destination)), isUndecided(app(destination))]).toEqual([agent, undecided]);
});

test('what takes no part in synchronisation, and mirrors, are nobody’s, and wait for no Secret', () => {
  for (const metadata of [
    { namespace: 'elsewhere' },
    { labels: { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' } },
    { annotations: { 'argocd-agent.argoproj.io/last-updated': 'x' } },
  ]) {
    expect(route(app({ server: 'https://one' }, metadata))).toBeUndefined();
    expect(isUndecided(app({ server: 'https://gone' }, metadata))).toBe(false);
  }
});

test('with namespace-based mapping the URL decides nothing', () => {
  const byNamespace = { ...options, mapping: 'namespace' as const, allowedNamespaces: ['a'] };
  const inNamespace = app({ server: 'https://one' }, { namespace: 'a' });
  expect(applicationRouter(byNamespace)(inNamespace)).toBe('a');
  expect(undecidedApplications(byNamespace)(inNamespace)).toBe(false);
});

test('Argo CD reads the URL of a cluster Secret without the slashes at its end', () => {
  expect([clusterUrl('https://a//'), clusterUrl('https://a?agentName=b/'), clusterUrl('')]).toEqual([
    'https://a',
    'https://a?agentName=b',
    '',
  ]);
});
