import type { Logger } from '../../lib/base/index.ts';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  type KubeClient,
  rfc3339,
} from '../../lib/kube/index.ts';
import {
  certifyClient,
  fingerprintsOf,
  inspectCertificate,
  lifetimes,
  PkiError,
  readSigningRequest,
  type SigningRequest,
} from '../../lib/pki/index.ts';
import {
  addOnName,
  agentSubject,
  type Caches,
  deliveredSecretName,
  fieldManager,
  type HubEvents,
  isDetaching,
  keys,
  managedClusterAddOns,
  type RequestReasons,
} from '../hub/index.ts';
import type { Ownership } from '../ownership/index.ts';
import type { Foundation } from '../spec/index.ts';
import { planClientCertificate } from './client-certificate.ts';
import { isApproved, isDone, reasonToDeny } from './client-requests.ts';
import { issuedAnnotation } from './issued-certificate.ts';

/** How soon a request is reconciled again while its foundation is not published yet, in milliseconds. */
const notYetMs = 1_000;
/**
 * How long a request waits before it is denied because its cluster lacks something, in milliseconds. Informers of different
 * kinds are not in step, and a cluster may send its request before the caches show the controller's own writes.
 */
const cacheLagMs = 3_000;
const maxRemembered = 10_000;
/** How long the add-on must not have changed before its cluster gets a certificate, in milliseconds; see {@link Held}. */
const restMs = 250;
/** How long a certificate waits for that, in milliseconds. */
const maxRestMs = 2_000;
const minLifetimeMs = 600_000;

/** What the signer works with. */
export interface SignerDeps {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly events: Pick<HubEvents, 'warning'>;
  readonly caches: Caches;
  readonly ownership: Pick<Ownership, 'ownerOf'>;
  /** By key of the GitOpsCluster. */
  readonly foundations: ReadonlyMap<string, Foundation>;
  readonly now: () => Date;
}

/**
 * A certificate that its cluster has not got yet. OCM's registration agent sets a condition of the add-on when it gets a
 * certificate. If the add-on has changed meanwhile, that write fails, and the agent drops the certificate and makes another
 * request; after ten requests it gives up. The record of a certificate is a change of the add-on, and so is the condition
 * that follows. So the cluster gets the certificate when the add-on has come to rest.
 */
interface Held {
  readonly certificate: string;
  readonly until: string;
  readonly since: number;
  /** The add-on's resourceVersion, and when it was first seen (`performance.now()`). */
  version: string | undefined;
  seenAt: number;
}

/**
 * Signs the certificates that clusters request. It approves requests of a cluster's registration
 * agent, and denies every other request to our signer with a reason.
 */
export class Signer {
  readonly #deps: SignerDeps;
  /** When a request was first reconciled without its cluster being ready, by the request's name (`performance.now()`). */
  readonly #lackingSince = new Map<string, number>();
  /** By the request's name. */
  readonly #held = new Map<string, Held>();

  constructor(deps: SignerDeps) {
    this.#deps = deps;
  }

  /** Reconciles one request. */
  async reconcile(name: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const csr = this.#deps.caches.requests.get({ name });
    if (csr === undefined || isDone(csr)) {
      this.#lackingSince.delete(name);
      this.#held.delete(name);
      return undefined;
    }
    const cluster = csr.metadata.labels?.[keys.requestCluster] ?? '';
    const found = this.#foundationFor(cluster);
    if (found === 'not yet') {
      return { requeueAfterMs: notYetMs };
    }
    const request = await read(csr);
    const reason = request instanceof PkiError ? request.message : reasonToDeny(csr, request, this.#deps.now());
    if (reason !== undefined) {
      return this.#refuse(csr, reason, signal);
    }
    if (typeof found === 'string') {
      if (this.#isWithinCacheLag(name)) {
        return { requeueAfterMs: notYetMs };
      }
      return this.#refuse(csr, found, signal);
    }
    const held = this.#held.get(name) ?? (await this.#sign(csr, cluster, request as SigningRequest, found, signal));
    const requeueAfterMs = isApproved(csr) ? this.#observeAddOn(cluster, held) : restMs;
    if (requeueAfterMs > 0) {
      return { requeueAfterMs };
    }
    await this.#patch(csr, 'status', { certificate: Buffer.from(held.certificate).toString('base64') }, signal);
    this.#deps.logger.info({ cluster, request: name, until: held.until }, 'signed a client certificate');
    return undefined;
  }

  #isWithinCacheLag(name: string): boolean {
    const since = this.#lackingSince.get(name) ?? performance.now();
    remember(this.#lackingSince, name, since);
    return performance.now() - since < cacheLagMs;
  }

  /** Notes the add-on's version, and returns how long the certificate waits for it to rest, in milliseconds; 0: not at all. */
  #observeAddOn(cluster: string, held: Held): number {
    const now = performance.now();
    const version = this.#deps.caches.addOns.get({ namespace: cluster, name: addOnName })?.metadata.resourceVersion;
    if (version !== held.version) {
      held.version = version;
      held.seenAt = now;
    }
    return Math.max(0, Math.ceil(Math.min(held.seenAt + restMs, held.since + maxRestMs) - now));
  }

  /** The foundation of a cluster's certificates, or why the cluster gets none. */
  #foundationFor(cluster: string): Foundation | string {
    const { ownership, foundations, caches } = this.#deps;
    const { owner } = ownership.ownerOf(cluster);
    const addOn = caches.addOns.get({ namespace: cluster, name: addOnName });
    if (owner === undefined) {
      return `no GitOpsCluster selects cluster ${cluster}`;
    }
    if (!addOn || isDetaching(addOn)) {
      return `cluster ${cluster} has no add-on ${addOnName}, or leaves`;
    }
    const foundation = foundations.get(owner);
    if (foundation === undefined) {
      return 'not yet';
    }
    const secret = caches.ownSecrets.get({ namespace: foundation.namespace, name: deliveredSecretName(cluster) });
    if (!planClientCertificate(caches, { cluster, foundation, now: this.#deps.now() }, secret).isRequested) {
      return `the hub delivers the key of cluster ${cluster}; set spec.argoCDAgentAddon.clientCertificate: CSR in GitOpsCluster ${owner} to let its clusters request certificates`;
    }
    return foundation;
  }

  async #refuse(csr: CertificateSigningRequest, why: string, signal: AbortSignal): Promise<undefined> {
    const { logger, events } = this.#deps;
    // An approved request cannot be denied any more. It is marked as failed instead.
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

  /** Approves a request, and makes and records its certificate. */
  async #sign(
    csr: CertificateSigningRequest,
    cluster: string,
    request: SigningRequest,
    { authority }: Foundation,
    signal: AbortSignal,
  ): Promise<Held> {
    const { client } = this.#deps;
    const now = this.#deps.now();
    const requestedMs = (csr.spec?.expirationSeconds ?? Number.POSITIVE_INFINITY) * 1_000;
    const lifetimeMs = Math.max(minLifetimeMs, Math.min(requestedMs, lifetimes.requestedMs));
    const certificate = await certifyClient(request, agentSubject(cluster), { authority, lifetimeMs, now });
    if (!isApproved(csr)) {
      const conditions = this.#with(csr, 'Approved', 'ArgoCDAgentRequestApproved', `agent of cluster ${cluster}`);
      await this.#patch(csr, 'approval', { conditions }, signal);
    }
    // The record is written before the certificate can be in use, so that its authority stays trusted.
    const until = rfc3339(inspectCertificate(certificate).notAfter);
    const annotations = issuedAnnotation({
      authority: fingerprintsOf(authority.certificate)[0] ?? '',
      at: rfc3339(now),
      until,
    });
    const addOn = { namespace: cluster, name: addOnName };
    await client.mergePatch(managedClusterAddOns, addOn, { metadata: { annotations } }, { fieldManager, signal });
    const at = performance.now();
    const held: Held = { certificate, until, since: at, version: undefined, seenAt: at };
    remember(this.#held, csr.metadata.name, held);
    return held;
  }

  #with<T extends keyof RequestReasons>(
    csr: CertificateSigningRequest,
    type: T,
    reason: RequestReasons[T],
    message: string,
  ) {
    const lastUpdateTime = rfc3339(this.#deps.now());
    return [...(csr.status?.conditions ?? []), { type, status: 'True', reason, message, lastUpdateTime }];
  }

  #patch(
    { metadata: { name, resourceVersion } }: CertificateSigningRequest,
    subresource: 'approval' | 'status',
    status: NonNullable<CertificateSigningRequest['status']>,
    signal: AbortSignal,
  ): Promise<CertificateSigningRequest> {
    const patch = { metadata: { resourceVersion }, status };
    return this.#deps.client.mergePatch(certificateSigningRequests, { name }, patch, {
      subresource,
      fieldManager,
      signal,
    });
  }
}

/** Sets an entry of a map that forgets the oldest ones when there are too many. */
function remember<T>(map: Map<string, T>, name: string, value: T): void {
  map.set(name, value);
  const [oldest = name] = map.keys();
  if (map.size > maxRemembered) {
    map.delete(oldest);
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
