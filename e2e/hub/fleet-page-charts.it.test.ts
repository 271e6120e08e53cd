import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, PodSpec } from '../../lib/kube/index.ts';
import { addonChart, helm, principalChart, withoutHub } from './helm.ts';

// The fleet page as both charts of a hub serve it.

interface Rendered extends KubeObject {
  spec?: {
    template?: { spec?: PodSpec };
    ports?: readonly { port: number; targetPort: string }[];
    selector?: Record<string, string>;
    podSelector?: { matchLabels: Record<string, string> };
    ingress?: readonly { from?: unknown; ports?: readonly { port: unknown }[] }[];
    [field: string]: unknown;
  };
  rules?: readonly unknown[];
}

describe.each([
  ['argocd-agent-addon', addonChart, 'argocd-agent-principal'],
  ['argocd-agent-principal', principalChart, 'hub-argocd-agent-principal'],
])('the fleet page of chart %s', (_what, chart, name) => {
  const page = { 'principal.fleetPage.enabled': true };

  async function render(values: Record<string, unknown>): Promise<Rendered[]> {
    const sets = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
    const text = await helm(['template', 'hub', chart, '--namespace', 'argocd', ...withoutHub(chart), ...sets]);
    return parseAllDocuments(text).flatMap((document) => (document.toJS() as Rendered | null) ?? []);
  }

  function pick(objects: readonly Rendered[], kind: string, of: string): Rendered | undefined {
    return objects.find((object) => object.kind === kind && object.metadata.name === of);
  }

  function container(objects: readonly Rendered[]) {
    const [found] = pick(objects, 'Deployment', name)?.spec?.template?.spec?.containers ?? [];
    const env = (found?.env ?? []) as readonly { name: string; value?: string }[];
    const of = env.filter((variable) => variable.name.startsWith('ARGOCD_PRINCIPAL_FLEET_PAGE_'));
    return {
      env: Object.fromEntries(of.map((variable) => [variable.name.slice(28).toLowerCase(), variable.value])),
      ports: (found?.ports ?? []) as readonly { name: string; containerPort: number }[],
    };
  }

  /** The rules of the principal's policy that name the page's port. */
  function rulesOf(objects: readonly Rendered[]) {
    const rules = pick(objects, 'NetworkPolicy', name)?.spec?.ingress ?? [];
    return rules.filter(({ ports = [] }) => ports.some(({ port }) => port === 'fleet-page'));
  }

  it('is not there unless it is asked for', async () => {
    const objects = await render({});
    expect(container(objects).env).toEqual({});
    expect(container(objects).ports.map((port) => port.name)).not.toContain('fleet-page');
    expect(rulesOf(objects)).toEqual([]);
    expect(pick(objects, 'Service', `${name}-fleet-page`)).toBeUndefined();
  });

  it('has a port, a Service and a rule for everybody, and needs no further right', async () => {
    const [without, objects] = await Promise.all([render({}), render(page)]);
    expect(container(objects).env).toEqual({ listen: ':8446', path: '/', plaintext: 'false', login_url: '' });
    expect(container(objects).ports).toContainEqual({ name: 'fleet-page', containerPort: 8446 });
    const service = pick(objects, 'Service', `${name}-fleet-page`);
    expect(service?.spec?.ports).toEqual([{ name: 'fleet-page', port: 443, targetPort: 'fleet-page' }]);
    expect(service?.metadata.namespace).toBe('argocd');
    const labels = pick(objects, 'Deployment', name)?.spec?.template as { metadata: { labels: object } } | undefined;
    expect(labels?.metadata.labels).toMatchObject(service?.spec?.selector ?? { no: 'selector' });
    expect(rulesOf(objects)).toEqual([{ ports: [{ port: 'fleet-page' }] }]);
    const rights = (all: readonly Rendered[]) => all.filter(({ rules }) => rules).map(({ rules }) => rules);
    expect(rights(objects)).toEqual(rights(without));
  });

  it('takes path, port and where to log in; without TLS only pods of its namespace and named proxies reach it', async () => {
    const proxy = {
      from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress' } } }],
      ports: [{ port: 'fleet-page' }],
    };
    const objects = await render({
      ...page,
      'principal.fleetPage.port': 9446,
      'principal.fleetPage.path': '/fleet/',
      'principal.fleetPage.plaintext': true,
      'principal.fleetPage.loginUrl': 'https://argocd.example.com',
      'networkPolicy.extraRules': [proxy],
    });
    expect(container(objects).env).toEqual({
      listen: ':9446',
      path: '/fleet/',
      plaintext: 'true',
      login_url: 'https://argocd.example.com',
    });
    expect(container(objects).ports).toContainEqual({ name: 'fleet-page', containerPort: 9446 });
    expect(pick(objects, 'Service', `${name}-fleet-page`)?.spec?.ports).toMatchObject([{ port: 80 }]);
    expect(rulesOf(objects)).toEqual([{ from: [{ podSelector: {} }], ports: [{ port: 'fleet-page' }] }, proxy]);
  });

  it.each([
    [{ 'principal.fleetPage.path': 'fleet' }, 'path'],
    [{ 'principal.fleetPage.port': 0 }, 'port'],
    [{ 'principal.fleetPage.loginUrl': 'javascript:alert(1)' }, 'loginUrl'],
    [{ 'principal.fleetPage.enable': true }, 'enable'],
  ])('refuses %j', async (values, problem) => {
    await expect(render({ ...page, ...values })).rejects.toThrow(problem);
  });
});
