import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Deployment, KubeObject } from '../../lib/kube/index.ts';
import { agentChart, helm, principalChart, withoutHub } from './helm.ts';

// SPIRE's values: those of argocd-agent's charts.

type Rendered = KubeObject & Partial<Pick<Deployment, 'spec'>> & { readonly data?: Record<string, string> };

it('lets agents register themselves, which need no certificate of the hub', async () => {
  const fields = ['enabled=true', 'clientCertSecretName=shared'].flatMap((field) => [
    '--set',
    `principal.selfRegistration.${field}`,
  ]);
  const render = (...more: string[]) => helm(['template', 'a', principalChart, '--namespace', 'argocd', ...more]);
  const text = await render(...fields);
  expect(text).toContain('principal.self-registration.client-cert-secret: "shared"');
  expect(text).toContain('principal.resource-proxy.address: "argocd-agent-resource-proxy:9090"');
  expect(text).toContain('[list, watch, create, patch]');
  expect(await render()).not.toContain('principal.self-registration.enabled:');
  await expect(render(...fields.slice(0, 2))).rejects.toThrow(/selfRegistration\/clientCertSecretName/);
});

describe.each([
  { chart: agentChart, program: 'agent', values: '', credentials: 'agent.creds', usual: 'mtls:any' },
  {
    chart: principalChart,
    program: 'principal',
    values: 'principal.',
    credentials: 'principal.auth',
    usual: 'mtls:subject:CN=([^,]+)',
  },
])('SPIRE of the $program', ({ chart, program, values, credentials, usual }) => {
  async function render(fields: Record<string, string | boolean>, ...more: string[]) {
    const sets = Object.entries(fields).flatMap(([field, value]) => ['--set', `${values}spire.${field}=${value}`]);
    const server = program === 'agent' ? ['--set', 'server=hub.example.com'] : [];
    const args = ['template', 'a', chart, '--namespace', 'argocd', ...withoutHub(chart), ...server, ...sets, ...more];
    const objects = parseAllDocuments(await helm(args)).flatMap((one) => (one.toJS() as Rendered | null) ?? []);
    const pod = objects.find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec;
    const parameters = objects.flatMap(({ kind, data }) => (kind === 'ConfigMap' ? Object.entries(data ?? {}) : []));
    const isSpire = ({ name }: { name: string }) => name === 'spiffe-workload-api';
    const mounts = (pod?.containers[0]?.volumeMounts ?? []) as { name: string; mountPath: string }[];
    const variables = (pod?.containers[0]?.env ?? []) as { name: string }[];
    return {
      params: Object.fromEntries(parameters.filter(([key]) => key.includes('.spire.') || key === credentials)),
      volume: (pod?.volumes as { name: string }[] | undefined)?.find(isSpire),
      mountPath: mounts.find(isSpire)?.mountPath,
      variables: variables.map(({ name }) => name).filter((name) => name.includes('SPIRE')),
    };
  }
  const prefix = `ARGOCD_${program.toUpperCase()}_SPIRE`;
  const common = [`${prefix}_AGENT_SOCKET`, `${prefix}_AUTH_METHOD`];

  it('is off unless it is asked for', async () => {
    expect(await render({})).toEqual({
      params: { [credentials]: usual },
      volume: undefined,
      mountPath: undefined,
      variables: [...common, ...(program === 'agent' ? [`${prefix}_PRINCIPAL_ID`] : [])],
    });
  });

  it('has the socket from the node, and the method decides how agents authenticate', async () => {
    expect(await render({ enabled: true, authMethod: 'jwt' })).toMatchObject({
      params: {
        [`${program}.spire.socket-path`]: 'unix:///run/spire/agent-sockets/spire-agent.sock',
        [`${program}.spire.auth-method`]: 'jwt',
      },
      volume: { hostPath: { path: '/run/spire/agent-sockets', type: 'Directory' } },
      mountPath: '/run/spire/agent-sockets',
    });
    expect((await render({ enabled: true, authMethod: 'jwt' })).params).not.toHaveProperty([credentials]);
  });

  it('has it by the CSI driver', async () => {
    const csi = { enabled: true, authMethod: 'mtls', mountMethod: 'csi', hostSocketDir: '/spire' };
    const { volume, mountPath } = await render(csi);
    expect(volume).toMatchObject({ csi: { driver: 'csi.spiffe.io', readOnly: true } });
    expect(mountPath).toBe('/spire');
  });

  it('is refused without a method, and beside spiffe', async () => {
    await expect(render({ enabled: true })).rejects.toThrow(/spire\/authMethod/);
    await expect(
      render({ enabled: true, authMethod: 'jwt' }, '--set', 'spiffe.endpointSocket=unix:///x/y'),
    ).rejects.toThrow('spiffe.endpointSocket: set one of them');
  });
});
