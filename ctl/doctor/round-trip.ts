import { request } from 'node:https';
import { isIP } from 'node:net';
import { text } from 'node:stream/consumers';
import { principalObjects, trusting, wellKnown } from '../../lib/base/index.ts';
import { clusterConfigIn, identityIn, tokenOf } from '../../lib/clusters/index.ts';
import { isForbidden, type Pod, pods, type Secret } from '../../lib/kube/index.ts';
import { decodeSecret, describeError } from '../../lib/ops/index.ts';
import type { Side } from '../ctl-command.ts';
import { forwardPort } from '../ha/port-forward.ts';
import type { Facts } from './facts.ts';
import { type Diagnosis, findingsAbout } from './finding.ts';
import { paramsOf } from './hub-checks.ts';

/** How long a request to the cluster and back took, or why none was sent. */
export type RoundTrip = { readonly ms: number } | { readonly notTaken: string };

/** A round trip that was tried, and what is wrong when it failed. */
export interface TriedRoundTrip {
  readonly roundTrip: RoundTrip;
  readonly findings: readonly Diagnosis[];
}

const patienceMs = 2_000;
/** The port that the resource proxy listens on by default, and its name in the pod. */
const proxyPort = { name: 'resource-proxy', number: 9090 };

/**
 * Asks the API server of an agent's cluster for its version, as the hub's Argo CD does: through the resource proxy of the
 * principal and the agent's connection. It reads nothing else and writes nothing.
 */
export async function tryRoundTrip(
  side: Side,
  hub: Facts,
  agent: string,
  signal: AbortSignal,
): Promise<TriedRoundTrip> {
  const notTaken = (why: string): TriedRoundTrip => ({ roundTrip: { notTaken: why }, findings: [] });
  const secret = hub.secrets.find(
    ({ metadata: { labels = {} } }) =>
      labels[wellKnown.agentNameLabel] === agent && labels[wellKnown.secretTypeLabel] === 'cluster',
  );
  const server = URL.parse(secret === undefined ? '' : (decodeSecret(secret).server ?? ''));
  if (secret === undefined || server === null) {
    return notTaken('no cluster Secret says how Argo CD reaches the cluster');
  }
  if (paramsOf(hub)['principal.resource-proxy.enable'] === 'false') {
    return notTaken('the resource proxy is off (principal.resource-proxy.enable)');
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
  const way = await wayTo(side, server, limit).catch((error: unknown) => {
    signal.throwIfAborted();
    return { why: isForbidden(error) ? 'you may not see or reach the pods of the principal' : describeError(error) };
  });
  if ('why' in way) {
    return notTaken(way.why);
  }
  const began = performance.now();
  try {
    await ask(way, server, secret, limit);
    return { roundTrip: { ms: Math.round(performance.now() - began) }, findings: [] };
  } catch (error) {
    signal.throwIfAborted();
    const failure = way.failure();
    if (failure !== undefined && isForbidden(failure)) {
      return notTaken('you may not forward a port of the pods of the principal');
    }
    const why = limit.aborted ? `no answer within ${patienceMs / 1_000} s` : describeError(failure ?? error);
    const what = `a request of Argo CD does not come back from the cluster: ${why}`;
    const mend = `kubectl --namespace ${hub.namespace} logs deployment/argocd-agent-principal; on the cluster: kubectl --namespace argocd logs deployment/argocd-agent-agent`;
    const where = `${server.host}, as Secret ${hub.namespace}/${secret.metadata.name} says`;
    return {
      roundTrip: { notTaken: 'it failed' },
      findings: [findingsAbout(agent)('round-trip-failed', what, where, mend)],
    };
  } finally {
    way.close();
  }
}

interface Way {
  readonly host: string;
  readonly port: number;
  /** Why the way ended, when it did. */
  failure(): Error | undefined;
  close(): void;
}

/** An address outside of the hub is asked itself; the Service of the resource proxy through the API server, by a pod behind it. */
async function wayTo(
  { client, namespace }: Side,
  server: URL,
  signal: AbortSignal,
): Promise<Way | { readonly why: string }> {
  const host = server.hostname.replaceAll(/[[\]]/g, '');
  const isOutside = isIP(host) !== 0 || (host.includes('.') && !/\.svc(\.|$)/.test(host));
  if (isOutside) {
    return { host, port: Number(server.port) || 443, failure: () => undefined, close: () => undefined };
  }
  const { labelSelector } = principalObjects;
  const found = await client.list(pods, { namespace, labelSelector, signal });
  const pod = found.find(isReady);
  if (pod === undefined) {
    return { why: 'no pod of the principal is ready' };
  }
  const named = pod.spec?.containers
    .flatMap(({ ports = [] }) => ports as readonly { name?: string; containerPort: number }[])
    .find(({ name }) => name === proxyPort.name);
  const { name } = pod.metadata;
  const forwarded = await forwardPort(
    client,
    { namespace, name, port: named?.containerPort ?? proxyPort.number },
    signal,
  );
  const { port } = forwarded;
  return { host: '127.0.0.1', port, failure: () => forwarded.failure, close: () => forwarded.close() };
}

const isReady = ({ status }: Pod) =>
  status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;

/** Resolves when the cluster has answered. @throws Error that says why it did not */
async function ask({ host, port }: Way, server: URL, secret: Secret, signal: AbortSignal): Promise<void> {
  const { certificate, key, ca } = identityIn(secret);
  const token = tokenOf(secret);
  const { insecure, serverName } = (clusterConfigIn(secret).tlsClientConfig ?? {}) as Record<string, unknown>;
  const name = typeof serverName === 'string' && serverName !== '' ? serverName : server.hostname;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sent = request(
    {
      host,
      port,
      path: `/version${server.search}`,
      agent: false,
      ...(certificate === '' ? {} : { cert: certificate, key }),
      ...trusting(ca || undefined),
      ...(isIP(name) === 0 ? { servername: name } : {}),
      rejectUnauthorized: insecure !== true,
      headers: { accept: 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
      signal,
    },
    (response) => {
      text(response)
        .then((body) => {
          const { statusCode = 0 } = response;
          if (statusCode !== 200) {
            throw new Error(`${statusCode}: ${messageIn(body)}`);
          }
          resolve();
        })
        .catch(reject);
    },
  );
  sent.on('error', reject);
  sent.end();
  await promise;
}

/** The message of a Kubernetes Status, or the text as it is. */
function messageIn(body: string): string {
  try {
    const { message } = JSON.parse(body) as { message?: unknown };
    return typeof message === 'string' ? message : body;
  } catch {
    return body.trim().slice(0, 200);
  }
}
