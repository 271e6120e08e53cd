import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { application, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';
import { type KubeObject, type ResourceType, resourceType } from '../lib/kube/index.ts';
import { createAuthority, issueCertificate } from '../lib/pki/index.ts';

// A hub whose admission takes longer than a replica's Lease has left.

const admissionMs = 2_000;
const webhooks: ResourceType<KubeObject & { webhooks: object[] }> = resourceType({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  namespaced: false,
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
});

let pair: Pair;
let stopWebhook: () => void;

beforeAll(async () => {
  pair = await startPair({ principal: { args: ['--enable-replicas'] }, agent: { mode: 'autonomous' } });
  stopWebhook = await slowAdmission();
});
afterAll(async () => {
  await pair?.stop();
  stopWebhook?.();
});

const logs = () => ({ details: () => pair.principal.output.slice(-4_000) });

test('with several principals, a mirror appears and goes although each write takes 2 s', async () => {
  const mirror = () => pair.hub.client.get(pairApplications, { namespace: pair.name, name: 'web' });
  await pair.managed.client.create(pairApplications, application({ name: 'web', namespace }));
  await until('the mirror is there', async () => (await mirror()) !== undefined, logs());
  await pair.managed.client.delete(pairApplications, { namespace, name: 'web' });
  await until('the mirror is gone', async () => (await mirror()) === undefined, logs());
});

/** Lets the hub's API server wait for an answer before it creates or deletes an Application. */
async function slowAdmission(): Promise<() => void> {
  const authority = await createAuthority({ commonName: 'webhook' });
  const { certificate, key } = await issueCertificate({
    authority,
    commonName: 'webhook',
    hosts: ['127.0.0.1'],
    usages: ['server'],
  });
  const server = createServer({ cert: certificate, key }, (request, response) => {
    let text = '';
    request.on('data', (bytes: Buffer) => {
      text += bytes.toString();
    });
    request.on('end', () => {
      const { request: asked, apiVersion, kind } = JSON.parse(text) as Record<string, { uid: string }>;
      const answer = JSON.stringify({ apiVersion, kind, response: { uid: asked?.uid, allowed: true } });
      setTimeout(() => {
        response.setHeader('content-type', 'application/json');
        response.end(answer);
      }, admissionMs);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { client } = pair.hub;
  await client.create(webhooks, {
    metadata: { name: 'slow' },
    webhooks: [
      {
        name: 'slow.example.com',
        clientConfig: {
          url: `https://127.0.0.1:${port}/`,
          caBundle: Buffer.from(authority.certificate).toString('base64'),
        },
        rules: [
          {
            apiGroups: ['argoproj.io'],
            apiVersions: ['*'],
            operations: ['CREATE', 'DELETE'],
            resources: ['applications'],
          },
        ],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        timeoutSeconds: 10,
      },
    ],
  });
  const probe = application({ name: 'probe', namespace: 'default' });
  await until('admission is slow', async () => {
    const began = performance.now();
    await client.create(pairApplications, probe, { dryRun: true });
    return performance.now() - began > admissionMs / 2;
  });
  expect(server.listening).toBe(true);
  return () => server.close();
}
