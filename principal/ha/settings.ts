import { splitHostPort } from '../../lib/base/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import type { PrincipalFlags } from '../flags.ts';
import { type AdminAuth, parseAdminAuth } from './admin-access.ts';

const defaultAdminPort = 8405;
const defaultFirstAckMs = 300_000;

/** How a principal of a pair works. */
export interface HaSettings {
  readonly role: 'primary' | 'replica';
  /** `host:port`; undefined when there is no other principal to follow. */
  readonly peer: { readonly address: string; readonly host: string } | undefined;
  readonly admin: AdminSettings;
  readonly allowed: readonly string[];
  readonly firstAckMs: number;
  /** Undefined when nothing keeps both principals from being active at the same time. */
  readonly lease: LeaseSettings | undefined;
}

/** How the administration of a pair is served. */
export interface AdminSettings {
  readonly port: number;
  /** Who may use it; undefined when nobody may. */
  readonly auth: AdminAuth | undefined;
  /** Files with its own certificate, key and authorities of clients; undefined when they are those of the port for agents. */
  readonly files: { readonly cert: string; readonly key: string; readonly ca: string } | undefined;
}

/** The Lease that decides who is active. */
export interface LeaseSettings {
  readonly kubeconfig: string;
  readonly kubecontext: string;
  readonly namespace: string;
  readonly name: string;
  readonly durationMs: number;
  readonly renewDeadlineMs: number;
}

/**
 * Reads the `--ha-*` flags; undefined without `--ha-enabled`.
 * @throws FatalError that names the flag and what to do
 */
export function haSettings(
  flags: PrincipalFlags,
  { plaintext, method }: { readonly plaintext: boolean; readonly method: string },
): HaSettings | undefined {
  if (!flags['ha-enabled']) {
    return undefined;
  }
  if (plaintext || method !== 'mtls') {
    throw new FatalError(
      '--ha-enabled (ARGOCD_PRINCIPAL_HA_ENABLED) needs TLS and certificates, by which principals know each other: set --auth mtls:subject:CN=([^,]+), and no --insecure-plaintext',
    );
  }
  const role = flags['ha-preferred-role'] as HaSettings['role'];
  const address = flags['ha-peer-address'];
  if (role === 'replica' && address === '') {
    throw new FatalError(
      'peer address is required for replica role: set --ha-peer-address (ARGOCD_PRINCIPAL_HA_PEER_ADDRESS) to host:port of the other principal',
    );
  }
  const durationMs = flags['ha-lease-duration'];
  const renewDeadlineMs = flags['ha-lease-renew-deadline'];
  if (durationMs <= renewDeadlineMs) {
    throw new FatalError('--ha-lease-duration must be longer than --ha-lease-renew-deadline');
  }
  const kubeconfig = flags['ha-lease-kubeconfig'];
  return {
    role,
    peer: address === '' ? undefined : { address, host: splitHostPort(address)?.host ?? '' },
    admin: adminSettings(flags),
    allowed: flags['ha-allowed-replication-clients'].filter((name) => name !== ''),
    firstAckMs: flags['ha-replication-initial-ack-timeout'] || defaultFirstAckMs,
    lease:
      kubeconfig === ''
        ? undefined
        : {
            kubeconfig,
            kubecontext: flags['ha-lease-kubecontext'],
            namespace: flags['ha-lease-namespace'],
            name: flags['ha-lease-name'],
            durationMs,
            renewDeadlineMs,
          },
  };
}

function adminSettings(flags: PrincipalFlags): AdminSettings {
  const files = { cert: flags['ha-admin-tls-cert'], key: flags['ha-admin-tls-key'], ca: flags['ha-admin-ca'] };
  const given = Object.values(files).filter((path) => path !== '').length;
  if (given !== 0 && given !== 3) {
    throw new FatalError('--ha-admin-tls-cert, --ha-admin-tls-key and --ha-admin-ca have to be given together');
  }
  return {
    port: flags['ha-admin-port'] > 0 ? flags['ha-admin-port'] : defaultAdminPort,
    auth: parseAdminAuth(flags['ha-admin-auth']),
    files: given === 0 ? undefined : files,
  };
}
