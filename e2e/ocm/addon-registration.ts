import { X509Certificate } from 'node:crypto';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  Informer,
  type KubeClient,
  keyOf,
  type ObjectKey,
  parseKey,
  type Requeue,
  secrets,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { createSigningRequest } from './signing-request.ts';
import { type AddOnRegistration, type OcmManagedClusterAddOn, ocmManagedClusterAddOns } from './types.ts';

/** No more requests of an add-on, in whatever state, than this. */
const maxRequests = 10;
/** How often OCM looks at everything again. */
const resyncMs = 300_000;
const labels = {
  cluster: 'open-cluster-management.io/cluster-name',
  addOn: 'open-cluster-management.io/addon-name',
};
const usages = ['digital signature', 'key encipherment', 'client auth'];

/** A key that waits for its certificate. */
interface Pending {
  request: string;
  key: string;
}

/**
 * Stands in for the part of OCM's registration agent that gets client certificates for add-ons, until the signal aborts:
 * for each registration of an add-on a key is made here, a CertificateSigningRequest on the hub, and what comes back is
 * put into a Secret of the add-on's namespace; renewed when a fifth to a quarter of its life is left, removed when the
 * registration or the add-on is gone.
 */
export async function runAddOnRegistration(options: {
  hub: KubeClient;
  spoke: KubeClient;
  cluster: string;
  signal: AbortSignal;
}): Promise<void> {
  const { hub, spoke, cluster, signal } = options;
  const logger = createLogger({ name: 'ocm-addon-registration', level: 'warn' });
  const addOns = new Informer({ client: hub, type: ocmManagedClusterAddOns, namespace: cluster, logger });
  const requests = new Informer({
    client: hub,
    type: certificateSigningRequests,
    labelSelector: `${labels.cluster}=${cluster}`,
    logger,
  });
  const pending = new Map<string, Pending>();
  const delivered = new Map<string, readonly string[]>();
  const renewAtShare = 0.2 + Math.random() * 0.05;

  async function reconcile(name: string): Promise<Requeue | undefined> {
    const addOn = addOns.get({ namespace: cluster, name });
    if (addOn?.metadata.deletionTimestamp) {
      return;
    }
    // The other signer is for agents that talk to the hub's API server; no add-on here does.
    const registrations = (addOn?.status?.registrations ?? []).filter(
      ({ signerName }) => signerName !== 'kubernetes.io/kube-apiserver-client',
    );
    const wanted = new Map(registrations.map((one) => [keyOf(secretOf(name, addOn, one)), one]));
    for (const key of delivered.get(name) ?? []) {
      if (!wanted.has(key)) {
        await spoke.delete(secrets, parseKey(key));
      }
    }
    delivered.set(name, [...wanted.keys()]);
    let again = resyncMs;
    for (const [key, registration] of wanted) {
      again = Math.min(again, await ensureCertificate(name, registration, parseKey(key)));
    }
    return addOn && { requeueAfterMs: again };
  }

  async function ensureCertificate(name: string, registration: AddOnRegistration, secret: ObjectKey): Promise<number> {
    const key = `${name}/${registration.signerName}`;
    const live = await spoke.get(secrets, secret);
    const dueIn = dueInMs(live?.data?.['tls.crt'], registration.subject?.user ?? '');
    const asked = pending.get(key);
    const answer = asked && requests.get({ name: asked.request });
    if (asked && answer?.status?.certificate) {
      const data = {
        'tls.crt': answer.status.certificate,
        'tls.key': Buffer.from(asked.key).toString('base64'),
        'cluster-name': Buffer.from(cluster).toString('base64'),
      };
      const { namespace = '', name: secretName } = secret;
      await spoke.apply(
        secrets,
        { metadata: { namespace, name: secretName }, data },
        { fieldManager: 'registration-agent', force: true },
      );
      pending.delete(key);
      return resyncMs;
    }
    if (answer && isRefused(answer)) {
      logger.warn({ addOn: name, conditions: answer.status?.conditions }, 'the certificate was refused');
      pending.delete(key);
      return resyncMs;
    }
    if (asked || dueIn > 0) {
      return Math.min(dueIn > 0 ? dueIn : resyncMs, resyncMs);
    }
    const mine = requests.list().filter(({ metadata }) => metadata.labels?.[labels.addOn] === name);
    if (mine.length >= maxRequests) {
      return resyncMs;
    }
    pending.set(key, await ask(name, registration));
    return resyncMs;
  }

  async function ask(name: string, { signerName, subject }: AddOnRegistration): Promise<Pending> {
    const { request, key } = await createSigningRequest({
      commonName: subject?.user ?? '',
      organizations: subject?.groups ?? [],
      dnsNames: [`${name}.addon.open-cluster-management.io`],
    });
    const created = await hub.create(certificateSigningRequests, {
      metadata: {
        generateName: `addon-${cluster}-${name}-`,
        labels: { [labels.cluster]: cluster, [labels.addOn]: name },
      } as CertificateSigningRequest['metadata'],
      spec: { request: Buffer.from(request).toString('base64'), signerName, usages },
    });
    return { request: created.metadata.name, key };
  }

  /** Milliseconds until a certificate has to be renewed; 0 when there is none that is of use. */
  function dueInMs(base64: string | undefined, commonName: string): number {
    if (base64 === undefined) {
      return 0;
    }
    const { validFromDate, validToDate, subject } = new X509Certificate(Buffer.from(base64, 'base64'));
    if (!subject.split('\n').includes(`CN=${commonName}`)) {
      return 0;
    }
    const life = validToDate.getTime() - validFromDate.getTime();
    return Math.max(0, validToDate.getTime() - life * renewAtShare - Date.now());
  }

  const queue = new WorkQueue({
    name: 'ocm-addon-registration',
    logger,
    handler: (key) => reconcile(parseKey(key).name),
  });
  const enqueue = ({ metadata }: { metadata: { name: string } }) => queue.add(metadata.name);
  addOns.subscribe({ added: enqueue, updated: (_, now) => enqueue(now), deleted: enqueue });
  const answered = ({ metadata }: CertificateSigningRequest) => queue.add(metadata.labels?.[labels.addOn] ?? '');
  requests.subscribe({ added: answered, updated: (_, now) => answered(now) });
  await Promise.all([addOns.run(signal), requests.run(signal), queue.run(signal)]);
}

function isRefused({ status }: CertificateSigningRequest): boolean {
  return status?.conditions?.some(({ type }) => type === 'Denied' || type === 'Failed') ?? false;
}

function secretOf(
  name: string,
  addOn: OcmManagedClusterAddOn | undefined,
  { signerName }: AddOnRegistration,
): ObjectKey {
  const namespace = addOn?.status?.namespace ?? '';
  return { namespace, name: `${name}-${signerName.replaceAll('/', '-')}-client-cert` };
}
