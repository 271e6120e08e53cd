import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { installCrds, publishedCrds } from '../../e2e/hub/index.ts';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { type KubeObject, type Service, services } from '../../lib/kube/index.ts';
import { inspectCertificate, secretText } from '../../lib/pki/index.ts';
import { useHub } from '../testing/hub.ts';

// The Gateway and the TLSRoute of docs/ecosystem.md, against the published CRDs of the Gateway API.

const hub = useHub(borrowCluster);
const page = new URL('../../docs/ecosystem.md', import.meta.url);

async function manifests(): Promise<(KubeObject & { apiVersion: string; kind: string })[]> {
  const blocks = (await readFile(page, 'utf8')).matchAll(/^```yaml\n([\s\S]*?)^```$/gm);
  const text = [...blocks].map(([, block = '']) => block).find((block) => block.includes('kind: TLSRoute'));
  return parseAllDocuments(text ?? '').map((document) => document.toJS());
}

test('a TLSRoute leads the agents to the principal, and its certificate has the host name', async () => {
  const { ns, a, client } = hub;
  await installCrds(client, await publishedCrds('gateway-api'));
  await hub.fixture.put(services, {
    metadata: { namespace: ns, name: 'argocd-agent-principal' },
    spec: { type: 'ClusterIP', ports: [{ name: 'https', port: 443 }] },
  } as Service);
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { principalServerAddress: '', principalServerPort: '' });
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'ServerDiscovered', 'False', /no external endpoint/);
  const objects = await manifests();
  expect(objects.map(({ kind }) => kind)).toEqual(['Gateway', 'TLSRoute']);
  for (const { apiVersion, kind, metadata, ...rest } of objects) {
    const path = `/apis/${apiVersion}/namespaces/${ns}/${kind.toLowerCase()}s?fieldValidation=Strict`;
    const body = { apiVersion, kind, metadata: { ...metadata, namespace: ns }, ...rest };
    await (await client.request(path, { method: 'POST', body })).body.text();
  }
  await hub.fixture.conditionIs([ns, 'fleet'], 'ServerDiscovered', 'True', /^Server at agents\.example\.com:443$/);
  await until('a certificate with the name', async () => {
    const certificate = secretText((await hub.secret('argocd-agent-principal-tls'))?.data, 'tls.crt') ?? '';
    return inspectCertificate(certificate).dnsNames.includes('agents.example.com');
  });
});
