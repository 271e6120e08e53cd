import type { Logger } from '../lib/base/index.ts';
import type { Informer, Secret } from '../lib/kube/index.ts';
import { followFiles, followSecret, parseKeyPair, parseTrust, Reloadable, type TlsKeyPair } from '../lib/ops/index.ts';
import { type X509Source, x509Source } from '../lib/spiffe/index.ts';
import type { AgentSettings } from './settings.ts';

/** The agent's TLS material, reloaded while it runs. A part that is not needed is undefined. */
export interface AgentCredentials {
  readonly clientCertificate: Reloadable<TlsKeyPair> | undefined;
  readonly trust: Reloadable<string> | undefined;
  /** Proves who the principal is, instead of its host name; undefined where the host name counts. */
  readonly workload?: X509Source;
}

/**
 * Finds the client certificate and the CA at the SPIFFE Workload API or in the files that the flags name, else in the Secrets of
 * the agent's namespace.
 * @throws FatalError when a named file cannot be read
 */
export function agentCredentials(
  { flags, tls, spire }: AgentSettings,
  context: { secrets: Informer<Secret>; logger: Logger; signal: AbortSignal },
): AgentCredentials {
  if (tls === 'plaintext') {
    return { clientCertificate: undefined, trust: undefined };
  }
  const { secrets, logger, signal } = context;
  if (spire !== undefined) {
    const workload = x509Source({ endpoint: spire.endpoint, logger, signal });
    const clientCertificate = spire.method === 'mtls' ? workload.identity : undefined;
    return { clientCertificate, trust: workload.federatedTrust, workload };
  }
  const secretOrigin = (name: string) => `Secret ${flags.namespace}/${name}`;

  const clientCertificate = new Reloadable({
    origin: tls.files
      ? `Files ${flags['tls-client-cert']}, ${flags['tls-client-key']}`
      : secretOrigin(flags['tls-secret-name']),
    parse: parseKeyPair,
    logger,
  });
  if (tls.files) {
    const files = { 'tls.crt': flags['tls-client-cert'], 'tls.key': flags['tls-client-key'] };
    followFiles(files, clientCertificate, signal);
  } else {
    followSecret(secrets, flags['tls-secret-name'], clientCertificate);
  }
  if (!tls.verify) {
    return { clientCertificate, trust: undefined };
  }

  const caFile = flags['root-ca-path'];
  const trust = new Reloadable({
    origin: caFile === '' ? secretOrigin(flags['root-ca-secret-name']) : `File ${caFile}`,
    // The original requires every field to be a certificate; here a private key beside it is accepted.
    parse: (fields) =>
      parseTrust(
        fields,
        Object.keys(fields).filter((name) => name !== 'tls.key'),
      ),
    logger,
  });
  if (caFile === '') {
    followSecret(secrets, flags['root-ca-secret-name'], trust);
  } else {
    followFiles({ 'ca.crt': caFile }, trust, signal);
  }
  return { clientCertificate, trust };
}
