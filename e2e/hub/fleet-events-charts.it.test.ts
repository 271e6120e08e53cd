import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Deployment, KubeObject } from '../../lib/kube/index.ts';
import { addonChart, helm, principalChart, withoutHub } from './helm.ts';

// Where events of the fleet go, as the charts tell the principal; chart.it.test.ts has the controller's.

type Rendered = KubeObject & Partial<Pick<Deployment, 'spec'>> & { readonly data?: Record<string, string> };

describe.each([
  ['argocd-agent-addon', addonChart, 'argocd-agent-principal'],
  ['argocd-agent-principal', principalChart, 'hub-argocd-agent-principal'],
])('events of the principal of chart %s', (_what, chart, name) => {
  /** The parameters about events, and what the pod has of the Secret. */
  async function render(fields: Record<string, string>) {
    const sets = Object.entries(fields).flatMap(([field, value]) => ['--set', `principal.events.${field}=${value}`]);
    const text = await helm(['template', 'hub', chart, '--namespace', 'argocd', ...withoutHub(chart), ...sets]);
    const objects = parseAllDocuments(text).flatMap((document) => (document.toJS() as Rendered | null) ?? []);
    const deployment = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name);
    const pod = deployment?.spec?.template?.spec;
    const [container] = pod?.containers ?? [];
    const parameters = objects.flatMap(({ kind, data }) => (kind === 'ConfigMap' ? Object.entries(data ?? {}) : []));
    const settings = Object.fromEntries(parameters.filter(([key]) => key.startsWith('principal.events.')));
    const volume = (pod?.volumes as { name: string }[] | undefined)?.find((one) => one.name === 'events-token');
    const mounts = (container?.volumeMounts ?? []) as { name: string; mountPath: string }[];
    return { settings, volume, mount: mounts.find((one) => one.name === 'events-token') };
  }

  it('are not sent unless it is asked for', async () => {
    expect(await render({})).toEqual({ settings: {}, volume: undefined, mount: undefined });
  });

  it('go to a sink, with a token from a Secret', async () => {
    const { settings, volume, mount } = await render({
      sinkUrl: 'https://events.example.com',
      tokenSecret: 'sink',
      mode: 'structured',
    });
    expect(settings).toEqual({
      'principal.events.sink-url': 'https://events.example.com',
      'principal.events.sink-token-path': '/app/config/events/token',
      'principal.events.mode': 'structured',
    });
    expect(volume).toEqual({
      name: 'events-token',
      secret: { secretName: 'sink', items: [{ key: 'token', path: 'token' }] },
    });
    expect(mount).toEqual({ name: 'events-token', mountPath: '/app/config/events', readOnly: true });
  });

  it('go there without a token, too', async () => {
    const { settings, volume } = await render({ sinkUrl: 'http://events' });
    expect(settings).toEqual({
      'principal.events.sink-url': 'http://events',
      'principal.events.mode': 'binary',
    });
    expect(volume).toBeUndefined();
  });

  it.each([
    [{ sinkUrl: 'events.example.com' }, 'sinkUrl'],
    [{ mode: 'plain' }, 'mode'],
    [{ token: 'x' }, 'token'],
  ])('refuse %j', async (fields, problem) => {
    await expect(render(fields)).rejects.toThrow(problem);
  });
});
