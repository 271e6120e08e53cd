import { expect, test } from 'vitest';
import { madeUpExtensionKeys, serveMadeUpFleet } from '../testing/made-up-fleet.ts';
import { type ExtensionHeader, extensionCaller } from './extension-callers.ts';

const secrets = {
  'fleet-page.extension.application': madeUpExtensionKeys.application,
  'fleet-page.extension.clusters': madeUpExtensionKeys.clusters,
};
const good: Partial<Record<ExtensionHeader, string>> = {
  'x-fleet-page-key': madeUpExtensionKeys.application,
  'argocd-application-name': 'argocd:shop',
  'argocd-project-name': 'default',
  'argocd-user-id': 'ann',
};
const caller = (headers: Partial<Record<ExtensionHeader, string>>, known: Readonly<Record<string, string>> = secrets) =>
  extensionCaller((name) => headers[name], known);

test('the key says for which extension Argo CD asks', () => {
  const application = { project: 'default', namespace: 'argocd', name: 'shop' };
  expect(caller(good)).toEqual({ extension: 'application', application, user: 'ann' });
  expect(caller({ ...good, 'x-fleet-page-key': madeUpExtensionKeys.clusters })?.extension).toBe('clusters');
});

test.each([
  ['no key', { ...good, 'x-fleet-page-key': undefined }, secrets],
  ['another key', { ...good, 'x-fleet-page-key': 'x'.repeat(madeUpExtensionKeys.application.length) }, secrets],
  ['an empty key, and none in the Secret', { ...good, 'x-fleet-page-key': '' }, {}],
  [
    'a short key in the Secret',
    { ...good, 'x-fleet-page-key': 'short' },
    { 'fleet-page.extension.application': 'short' },
  ],
  ['no Application', { ...good, 'argocd-application-name': undefined }, secrets],
  ['an Application without a namespace', { ...good, 'argocd-application-name': 'shop' }, secrets],
  ['too much of an Application', { ...good, 'argocd-application-name': 'a:b:c' }, secrets],
  ['an Application that is a path', { ...good, 'argocd-application-name': 'argocd:../x' }, secrets],
  ['no project', { ...good, 'argocd-project-name': undefined }, secrets],
])('nobody: %s', (_, headers, known) => {
  expect(caller(headers as typeof good, known as typeof secrets)).toBeUndefined();
});

test('over HTTP: never open, each key for its own extension alone, no header twice, no key in place of a session', async () => {
  const fleet = await serveMadeUpFleet({ one: {} }, { way: async () => ({ agent: 'one', stations: [] }) });
  const status = async (path: string, headers: Record<string, string> | [string, string][]) => {
    const answer = await fetch(`${fleet.url}${path}`, { headers });
    await answer.body?.cancel();
    return answer.status;
  };
  const named = { 'argocd-application-name': 'argocd:shop', 'argocd-project-name': 'default' };
  const by = (key: string) => ({ ...named, 'x-fleet-page-key': key });
  const { application, clusters } = madeUpExtensionKeys;
  try {
    expect(await status('extension/application', named)).toBe(401);
    expect(await status('extension/clusters', named)).toBe(401);
    const session = { ...named, authorization: `Bearer ${await fleet.session()}` };
    expect(await status('extension/clusters', session)).toBe(401);
    expect(await status('extension/application', by(application))).toBe(200);
    expect(await status('extension/clusters', by(clusters))).toBe(200);
    expect(await status('extension/application', by(clusters))).toBe(404);
    expect(await status('extension/clusters', by(application))).toBe(404);
    expect(await status('', by(clusters))).toBe(401);
    expect(await status('clusters/one', by(clusters))).toBe(401);
    expect(
      await status('extension/application', [
        ...Object.entries(by(application)),
        ['argocd-application-name', 'argocd:other'],
      ]),
    ).toBe(401);
  } finally {
    await fleet.close();
  }
});
