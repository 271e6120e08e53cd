import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../lib/base/index.ts';
import { parseKeyPair, Reloadable, type TlsKeyPair } from '../lib/ops/index.ts';
import { createAuthority, issueCertificate } from '../lib/pki/index.ts';

const name = 'argocd-agent-principal--generated';
const lifetimeMs = 2 * 3_600_000;

/**
 * A server certificate that clients cannot verify, made at the start and renewed while the principal runs (argocd-agent's
 * expires after an hour and is not): for `--insecure-tls-generate`.
 */
export function generatedCertificate(logger: Logger, signal: AbortSignal): Reloadable<TlsKeyPair> {
  const live = new Reloadable({ origin: 'the generated certificate', parse: parseKeyPair, logger });
  const renew = async () => {
    while (!signal.aborted) {
      const authority = await createAuthority({ commonName: name, lifetimeMs });
      const hosts = [name, '127.0.0.1'];
      const pair = await issueCertificate({ authority, commonName: name, hosts, usages: ['server'], lifetimeMs });
      live.offer({ 'tls.crt': pair.certificate, 'tls.key': pair.key });
      await delay(lifetimeMs / 2, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
  renew().catch((error: unknown) => logger.error({ error }, 'no certificate could be made'));
  return live;
}
