import type { Logger } from '../lib/base/index.ts';
import type { Informer, Secret } from '../lib/kube/index.ts';
import { followFiles, followSecret, parseKeyPair, parseTrust, Reloadable, type TlsKeyPair } from '../lib/ops/index.ts';
import { followWorkload, type WorkloadFields } from '../lib/spiffe/index.ts';
import type { AgentSettings } from './settings.ts';

/** The agent's TLS material, reloaded while it runs. A part that is not needed is undefined. */
export interface AgentCredentials {
  readonly clientCertificate: Reloadable<TlsKeyPair> | undefined;
  readonly trust: Reloadable<string> | undefined;
}

/**
 * Finds the client certificate and the CA in the files that the flags name, else in the Secrets of the agent's namespace.
 * @throws FatalError when a named file cannot be read
 */
export function agentCredentials(
  { flags, tls }: AgentSettings,
  context: { secrets: Informer<Secret>; logger: Logger; signal: AbortSignal },
): AgentCredentials {
  if (tls === 'plaintext') {
    return { clientCertificate: undefined, trust: undefined };
  }
  const { secrets, logger, signal } = context;
  const endpoint = flags['spiffe-endpoint-socket'];
  const secretOrigin = (name: string) => `Secret ${flags.namespace}/${name}`;

  const clientCertificate = new Reloadable({
    origin: endpoint
      ? `SPIFFE Workload API ${endpoint}`
      : tls.files
        ? `Files ${flags['tls-client-cert']}, ${flags['tls-client-key']}`
        : secretOrigin(flags['tls-secret-name']),
    parse: parseKeyPair,
    logger,
  });
  if (endpoint) {
    const offer = (fields: WorkloadFields) => clientCertificate.offer({ ...fields });
    void followWorkload({ endpoint, offer, logger, signal });
  } else if (tls.files) {
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
