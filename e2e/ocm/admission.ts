import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { KubeClient, KubeObject } from '../../lib/kube/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { applyObjects } from './rbac.ts';
import type { OcmManifestWork } from './types.ts';

const limitBytes = 500 * 1024;

/** Why OCM's admission webhook refuses a ManifestWork; undefined when it accepts it. */
export function admissionRefusal(work: OcmManifestWork): string | undefined {
  const manifests = work.spec?.workload?.manifests ?? [];
  if (manifests.length === 0) {
    return 'Workload manifests should not be empty';
  }
  const size = Buffer.byteLength(JSON.stringify(manifests));
  if (size > limitBytes) {
    return `the size of manifests is ${size} bytes which exceeds the ${limitBytes} limit`;
  }
  const seen = new Set<string>();
  for (const { apiVersion, kind, metadata } of manifests) {
    if (metadata?.generateName) {
      return 'manifest with generateName is not supported';
    }
    if (!metadata?.name) {
      return `manifest ${kind} has no name`;
    }
    const identity = [apiVersion, kind, metadata.namespace, metadata.name].join('/');
    if (seen.has(identity)) {
      return `duplicated manifest ${identity}`;
    }
    seen.add(identity);
  }
  return undefined;
}

/**
 * Stands in for OCM's work webhook until the signal aborts: refuses empty, oversized and duplicate payloads. It
 * registers itself with the hub.
 */
export async function runWorkWebhook(hub: KubeClient, signal: AbortSignal): Promise<void> {
  const authority = await createAuthority({ commonName: 'work-webhook-ca' });
  const request = { commonName: 'work-webhook', hosts: ['127.0.0.1'], usages: ['server'] as const };
  const { key, certificate } = await issueCertificate({ ...request, authority });
  const server = createServer({ key, cert: certificate, minVersion: 'TLSv1.2' }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(chunks).toString()) as {
        request: { uid: string; object: KubeObject & OcmManifestWork };
      };
      const message = admissionRefusal(review.request.object);
      const verdict = {
        uid: review.request.uid,
        allowed: message === undefined,
        ...(message && { status: { message } }),
      };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: verdict }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  signal.addEventListener('abort', () => server.close(() => undefined), { once: true });
  signal.addEventListener('abort', () => server.closeAllConnections(), { once: true });
  const { port } = server.address() as AddressInfo;
  const webhook = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'manifestworkvalidators.admission.work.open-cluster-management.io' },
    webhooks: [
      {
        name: 'manifestworkvalidators.admission.work.open-cluster-management.io',
        clientConfig: {
          url: `https://127.0.0.1:${port}/validate-work-open-cluster-management-io-v1-manifestwork`,
          caBundle: Buffer.from(authority.certificate).toString('base64'),
        },
        rules: [
          {
            apiGroups: ['work.open-cluster-management.io'],
            apiVersions: ['*'],
            resources: ['manifestworks'],
            operations: ['CREATE', 'UPDATE'],
          },
        ],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        // A stand-in that was killed must not take the hub's works hostage.
        failurePolicy: 'Ignore',
        timeoutSeconds: 10,
      },
    ],
  };
  await applyObjects(hub, [webhook]);
}
