import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createSigningRequest } from '../../e2e/ocm/signing-request.ts';
import type { CertificateSigningRequest } from '../../lib/kube/index.ts';
import { createAuthority, type KeyCertificate } from '../../lib/pki/index.ts';
import { agentSubject } from '../hub/index.ts';
import { Signer } from './signer.ts';

const cluster = 'edge';
const signal = new AbortController().signal;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function requestOf(of: string): Promise<CertificateSigningRequest> {
  const { request } = await createSigningRequest(agentSubject(of));
  return {
    metadata: {
      name: 'csr',
      resourceVersion: '1',
      creationTimestamp: new Date().toISOString(),
      labels: {
        'open-cluster-management.io/cluster-name': cluster,
        'open-cluster-management.io/addon-name': 'argocd-agent-addon',
      },
    },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: 'open-cluster-management.io/argocd-agent-addon',
      usages: ['digital signature', 'key encipherment', 'client auth'],
      username: `system:open-cluster-management:${cluster}:agent`,
      groups: [`system:open-cluster-management:${cluster}`],
    },
  } as CertificateSigningRequest;
}

/** Fills the controller's caches, one kind after the other. */
function start(csr: CertificateSigningRequest, authority: KeyCertificate) {
  const known = { owner: undefined as string | undefined, addOn: undefined as object | undefined };
  const written: object[] = [];
  const signer = new Signer({
    caches: {
      requests: { get: () => csr },
      addOns: { get: () => known.addOn },
      ownSecrets: { get: () => undefined },
      works: { list: () => [] },
    },
    ownership: { ownerOf: () => ({ owner: known.owner }) },
    foundations: new Map([['argocd/fleet', { authority, addOn: { clientCertificate: 'CSR' } }]]),
    client: {
      mergePatch: async (_type: unknown, _key: unknown, patch: { status?: object }) => {
        if (patch.status) {
          written.push(patch.status);
        }
        return csr;
      },
    },
    events: { warning: () => undefined },
    logger: { info: () => undefined, warn: () => undefined },
    now: () => new Date(),
  } as never);
  return { known, written, reconcile: () => signer.reconcile('csr', signal) };
}

test('a request that arrives in the caches before its cluster is not denied', async () => {
  const authority = await createAuthority({ commonName: 'authority' });
  const { known, written, reconcile } = start(await requestOf(cluster), authority);
  expect(await reconcile()).toEqual({ requeueAfterMs: 1_000 });
  vi.advanceTimersByTime(1_000);
  known.owner = 'argocd/fleet';
  expect(await reconcile()).toEqual({ requeueAfterMs: 1_000 });
  expect(written).toEqual([]);
  vi.advanceTimersByTime(1_000);
  known.addOn = { metadata: {} };
  expect(await reconcile()).toEqual({ requeueAfterMs: 250 });
  expect(written).toMatchObject([{ conditions: [{ type: 'Approved' }] }]);
});

test('a cluster gets its certificate when the add-on has come to rest, or does not do so', async () => {
  const authority = await createAuthority({ commonName: 'authority' });
  const csr = await requestOf(cluster);
  csr.status = { conditions: [{ type: 'Approved', status: 'True' }] };
  const { known, written, reconcile } = start(csr, authority);
  known.owner = 'argocd/fleet';
  const changes = (version: number) => {
    known.addOn = { metadata: { resourceVersion: `${version}` } };
  };
  const again = (requeueAfterMs: number) => ({ requeueAfterMs });
  changes(1);
  expect(await reconcile()).toEqual(again(250));
  vi.advanceTimersByTime(200);
  expect(await reconcile()).toEqual(again(50));
  changes(2);
  vi.advanceTimersByTime(200);
  expect(await reconcile()).toEqual(again(250));
  vi.advanceTimersByTime(200);
  expect(await reconcile()).toEqual(again(50));
  expect(written).toEqual([]);
  vi.advanceTimersByTime(50);
  expect(await reconcile()).toBeUndefined();
  expect(written).toEqual([{ certificate: expect.any(String) }]);

  const restless = start(csr, authority);
  restless.known.owner = 'argocd/fleet';
  let reconciled = 0;
  do {
    restless.known.addOn = { metadata: { resourceVersion: `${reconciled}` } };
    vi.advanceTimersByTime(reconciled === 0 ? 0 : 200);
    reconciled += 1;
  } while ((await restless.reconcile()) !== undefined);
  expect(reconciled).toBe(11);
});

test('a request whose cluster stays unknown is denied after a while; an invalid request is denied at once', async () => {
  const authority = await createAuthority({ commonName: 'authority' });
  const late = start(await requestOf(cluster), authority);
  expect(await late.reconcile()).toEqual({ requeueAfterMs: 1_000 });
  vi.advanceTimersByTime(3_000);
  expect(await late.reconcile()).toBeUndefined();
  expect(late.written).toMatchObject([
    { conditions: [{ type: 'Denied', message: expect.stringContaining('no GitOpsCluster selects') }] },
  ]);
  const wrong = start(await requestOf('another'), authority);
  expect(await wrong.reconcile()).toBeUndefined();
  expect(wrong.written).toMatchObject([
    { conditions: [{ type: 'Denied', message: expect.stringContaining('common name') }] },
  ]);
});
