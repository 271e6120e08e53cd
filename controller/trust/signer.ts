import { type CertificateSigningRequest, certificateSigningRequests, rfc3339 } from '../../lib/kube/index.ts';
import {
  certifyClient,
  fingerprintsOf,
  inspectCertificate,
  lifetimes,
  PkiError,
  readSigningRequest,
  type SigningRequest,
} from '../../lib/pki/index.ts';
import { isDetaching } from '../cluster/cluster-health.ts';
import { addOnName, agentSubject, fieldManager, keys } from '../hub/names.ts';
import { managedClusterAddOns } from '../hub/resources.ts';
import type { Foundation } from '../spec/foundation.ts';
import type { World } from '../world.ts';
import { isApproved, isDone, reasonToDeny } from './client-requests.ts';
import { issuedAnnotation } from './issued-certificate.ts';

/** How soon a request is looked at again that came before what is known of its GitOpsCluster. */
const notYetMs = 1_000;
/**
 * For so long a request is not denied because of what its cluster lacks: news of different kinds come in any order, and the
 * cluster may have been told to ask before the controller has heard of what it wrote itself.
 */
const hearsayMs = 3_000;
const mostRemembered = 10_000;
const minLifetimeMs = 600_000;

/**
 * Signs the certificates that clusters ask for (client certificate mode CSR): approves what a cluster's registration agent
 * may have, denies everything else that is addressed to our signer, and says why.
 */
export class Signer {
  readonly #world: World;
  /** When requests were first looked at whose cluster lacked something, by name. */
  readonly #lackingSince = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Decides about one request, by its name. */
  async reconcile(name: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const csr = this.#world.caches.requests.get({ name });
    if (csr === undefined || isDone(csr)) {
      this.#lackingSince.delete(name);
      return undefined;
    }
    const cluster = csr.metadata.labels?.[keys.requestCluster] ?? '';
    const found = this.#foundationFor(cluster);
    if (found === 'not yet') {
      return { requeueAfterMs: notYetMs };
    }
    const request = await read(csr);
    const fault = request instanceof PkiError ? request.message : reasonToDeny(csr, request, this.#world.now());
    if (fault !== undefined) {
      return this.#refuse(csr, fault, signal);
    }
    if (typeof found === 'string') {
      if (this.#mayBeLate(name)) {
        return { requeueAfterMs: notYetMs };
      }
      return this.#refuse(csr, found, signal);
    }
    await this.#sign(csr, cluster, request as SigningRequest, found, signal);
    return undefined;
  }

  #mayBeLate(name: string): boolean {
    const since = this.#lackingSince.get(name) ?? performance.now();
    this.#lackingSince.set(name, since);
    const [oldest = name] = this.#lackingSince.keys();
    if (this.#lackingSince.size > mostRemembered) {
      this.#lackingSince.delete(oldest);
    }
    return performance.now() - since < hearsayMs;
  }

  /** What the certificates of a cluster are made from, or why it gets none. */
  #foundationFor(cluster: string): Foundation | string {
    const { fleets, foundations, caches } = this.#world;
    const { owner } = fleets.ownershipOf(cluster);
    const addOn = caches.addOns.get({ namespace: cluster, name: addOnName });
    if (owner === undefined) {
      return `no GitOpsCluster selects cluster ${cluster}`;
    }
    if (!addOn || isDetaching(addOn)) {
      return `cluster ${cluster} has no add-on ${addOnName}, or leaves`;
    }
    const foundation = foundations.get(owner)?.foundation;
    if (foundation === undefined) {
      return 'not yet';
    }
    if (foundation.addOn.clientCertificate !== 'CSR') {
      return `GitOpsCluster ${owner} does not let its clusters ask for certificates (spec.argoCDAgentAddon.clientCertificate is Generated)`;
    }
    return foundation;
  }

  async #refuse(csr: CertificateSigningRequest, why: string, signal: AbortSignal): Promise<undefined> {
    const { logger, events } = this.#world;
    // What somebody else has approved can no longer be denied: it fails.
    const [type, subresource] = isApproved(csr) ? (['Failed', 'status'] as const) : (['Denied', 'approval'] as const);
    await this.#patch(
      csr,
      subresource,
      { conditions: this.#with(csr, type, 'ArgoCDAgentRequestRefused', why) },
      signal,
    );
    const { name } = csr.metadata;
    logger.warn({ request: name, username: csr.spec?.username, reason: why }, 'refused to sign a certificate');
    events.warning(csr, 'RequestRefused', `No certificate for an agent of Argo CD is issued: ${why}`);
    return undefined;
  }

  async #sign(
    csr: CertificateSigningRequest,
    cluster: string,
    request: SigningRequest,
    { authority }: Foundation,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, logger } = this.#world;
    const now = this.#world.now();
    const asked = (csr.spec?.expirationSeconds ?? Number.POSITIVE_INFINITY) * 1_000;
    const lifetimeMs = Math.max(minLifetimeMs, Math.min(asked, lifetimes.requestedMs));
    const certificate = await certifyClient(request, agentSubject(cluster), { authority, lifetimeMs, now });
    const approved = isApproved(csr)
      ? csr
      : await this.#patch(
          csr,
          'approval',
          { conditions: this.#with(csr, 'Approved', 'ArgoCDAgentRequestApproved', `agent of cluster ${cluster}`) },
          signal,
        );
    // Remembered before it can be in use: what it is of stays trusted.
    const until = inspectCertificate(certificate).notAfter;
    const annotations = issuedAnnotation({
      authority: fingerprintsOf(authority.certificate)[0] ?? '',
      at: rfc3339(now),
      until: rfc3339(until),
    });
    const addOn = { namespace: cluster, name: addOnName };
    await client.mergePatch(managedClusterAddOns, addOn, { metadata: { annotations } }, { fieldManager, signal });
    await this.#patch(approved, 'status', { certificate: Buffer.from(certificate).toString('base64') }, signal);
    logger.info({ cluster, request: csr.metadata.name, until: rfc3339(until) }, 'signed a client certificate');
  }

  #with(csr: CertificateSigningRequest, type: string, reason: string, message: string) {
    const lastUpdateTime = rfc3339(this.#world.now());
    return [...(csr.status?.conditions ?? []), { type, status: 'True', reason, message, lastUpdateTime }];
  }

  #patch(
    { metadata: { name, resourceVersion } }: CertificateSigningRequest,
    subresource: 'approval' | 'status',
    status: NonNullable<CertificateSigningRequest['status']>,
    signal: AbortSignal,
  ): Promise<CertificateSigningRequest> {
    const patch = { metadata: { resourceVersion }, status };
    return this.#world.client.mergePatch(certificateSigningRequests, { name }, patch, {
      subresource,
      fieldManager,
      signal,
    });
  }
}

async function read(csr: CertificateSigningRequest): Promise<SigningRequest | PkiError> {
  try {
    return await readSigningRequest(Buffer.from(csr.spec?.request ?? '', 'base64').toString(), 'its request');
  } catch (error) {
    if (error instanceof PkiError) {
      return error;
    }
    throw error;
  }
}
