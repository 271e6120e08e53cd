import { type AuthChoice, AuthError, checkPairing, parseAuth } from '../lib/auth/index.ts';
import { withoutBrackets } from '../lib/base/index.ts';
import { FatalError } from '../lib/ops/index.ts';
import { type RedisSettings, redisSettings } from '../lib/redis/index.ts';
import { type SpireSettings, spireSettings } from '../lib/spiffe/index.ts';
import { parseTlsSettings, type TlsSettings } from '../lib/wire/index.ts';
import { type PrincipalFlags, principalFlags } from './flags.ts';
import { type HaSettings, haSettings } from './ha/settings.ts';
import { type NamespaceCreation, namespaceCreation } from './namespaces.ts';
import type { ReplicaTiming } from './replicas/index.ts';

/** The settings that follow from the flags. */
export interface PrincipalSettings {
  readonly flags: PrincipalFlags;
  readonly auth: AuthChoice;
  readonly tls:
    | 'plaintext'
    | {
        readonly from: 'generated' | 'files' | 'secret' | 'workload';
        readonly requireClientCertificate: boolean;
        readonly settings: TlsSettings;
      };
  readonly redis: RedisSettings;
  /** Undefined when the certificates for agents come from Secrets or files. */
  readonly spire: SpireSettings | undefined;
  /** Undefined unless this principal is one of a pair. */
  readonly ha: HaSettings | undefined;
  /** Which namespaces may be created, undefined for none. */
  readonly namespaceCreation: NamespaceCreation | undefined;
  /** How agents register their clusters themselves, undefined when they may not. */
  readonly selfRegistration: { readonly address: string; readonly identitySecret: string } | undefined;
}

/**
 * Checks the flags against each other; `given` are those of the command line.
 * @throws FatalError that names the flag and what to do
 */
export function principalSettings(flags: PrincipalFlags, given: ReadonlySet<string> = new Set()): PrincipalSettings {
  if (flags.namespace === '') {
    throw new FatalError(
      "namespace is required for principal identity: set --namespace (ARGOCD_PRINCIPAL_NAMESPACE) to Argo CD's namespace",
    );
  }
  const plaintext = flags['insecure-plaintext'];
  const spire = spireSettings(flags);
  const auth = authOf(flags.auth || (spire === undefined ? '' : spireAuth[spire.method]), plaintext);
  const generated = flags['insecure-tls-generate'];
  const files = flags['tls-cert'] !== '' || flags['tls-key'] !== '';
  if (!generated && files && (flags['tls-cert'] === '' || flags['tls-key'] === '')) {
    throw new FatalError('Both --tls-cert and --tls-key have to be given');
  }
  if ((flags['redis-proxy-server-tls-cert'] === '') !== (flags['redis-proxy-server-tls-key'] === '')) {
    throw new FatalError('Both --redis-proxy-server-tls-cert and --redis-proxy-server-tls-key have to be given');
  }
  const settings = tlsSettings(flags);
  checkEnrolment(flags, auth);
  checkReplicas(flags);
  checkSpire(flags, auth, spire);
  const ha = haSettings(flags, { plaintext, method: auth.method });
  return {
    flags,
    auth,
    tls: plaintext
      ? 'plaintext'
      : {
          from: spire !== undefined ? 'workload' : generated ? 'generated' : files ? 'files' : 'secret',
          settings,
          requireClientCertificate: flags['require-client-certs'] || auth.method === 'mtls',
        },
    redis: redisSettings({
      address: { flag: 'redis-server-address', value: flags['redis-server-address'] },
      username: '',
      password: flags['redis-password'],
      credentialsFolder: flags['redis-creds-dir-path'],
      tls: {
        enabled: flags['redis-tls-enabled'],
        insecure: { flag: 'redis-tls-insecure', value: flags['redis-tls-insecure'] },
        caPath: { flag: 'redis-ca-path', value: flags['redis-ca-path'] },
        caSecretName: {
          flag: 'redis-ca-secret-name',
          value: flags['redis-ca-secret-name'],
          isGiven: given.has('redis-ca-secret-name'),
        },
      },
    }),
    spire,
    ha,
    namespaceCreation: namespaceCreation(flags),
    selfRegistration: selfRegistration(flags),
  };
}

/** What `--auth` is unless it is given, as with argocd-agent: the path of the SPIFFE ID is the agent's name, in any trust domain. */
const spireAuth: Readonly<Record<SpireSettings['method'], string>> = {
  mtls: 'mtls:uri:spiffe://[^/]+/(.+)',
  jwt: 'spiffe-jwt:spiffe://[^/]+/(.+)',
};

function checkSpire(flags: PrincipalFlags, auth: AuthChoice, spire: SpireSettings | undefined): void {
  if (spire === undefined) {
    if (auth.method === 'spiffe-jwt') {
      throw new FatalError(
        '--auth (ARGOCD_PRINCIPAL_AUTH): spiffe-jwt needs --spire-agent-socket, from which the keys of JWT-SVIDs come',
      );
    }
    return;
  }
  if (auth.method === 'mtls' && auth.source !== 'uri') {
    throw new FatalError(
      '--spire-agent-socket needs agents that are named by SPIFFE IDs: set --auth mtls:uri:^spiffe://…$, or leave it empty',
    );
  }
  const others = ['root-ca-path', 'tls-cert', 'insecure-tls-generate', 'enable-enrolment', 'ha-enabled'] as const;
  const other = others.find((name) => flags[name] !== '' && flags[name] !== false);
  if (other !== undefined) {
    throw new FatalError(`--spire-agent-socket cannot be used with --${other}: remove one of them`);
  }
}

/**
 * A warning when others than a proxy may reach the port where agents name themselves in a header; undefined when only programs
 * of the same pod reach it, or agents authenticate in another way.
 */
export function headerWarning({ auth, flags }: Pick<PrincipalSettings, 'auth' | 'flags'>): string | undefined {
  const host = withoutBrackets(flags['listen-host']);
  if (auth.method !== 'header' || host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host)) {
    return undefined;
  }
  return `--auth header: whoever reaches port ${flags['listen-port']} can claim to be any agent by the header ${auth.header}: listen beside the proxy alone (--listen-host 127.0.0.1), or let a NetworkPolicy admit only the proxy, and have it replace the header that clients send`;
}

/**
 * A warning when the expression takes the same name from JWT-SVIDs of several trust domains; undefined when it names one, or agents
 * are named otherwise. Certificates are of the principal's own trust domain alone.
 */
export function spireWarning({ auth }: Pick<PrincipalSettings, 'auth'>): string | undefined {
  if (auth.method !== 'spiffe-jwt' || /^\^spiffe:\/\/([\w-]|\\?\.)+\//.test(auth.pattern.source)) {
    return undefined;
  }
  return `--auth spiffe-jwt: the expression ${auth.pattern} does not begin with ^spiffe:// and one trust domain: whoever issues SVIDs of a trust domain that SPIRE federates with can name any agent. Write it like ^spiffe://example\\.org/agent/([^/]+)$`;
}

function checkEnrolment(flags: PrincipalFlags, { method }: AuthChoice): void {
  const needs = '--enable-enrolment (ARGOCD_PRINCIPAL_ENABLE_ENROLMENT) needs';
  if (flags['enable-enrolment'] && method !== 'mtls') {
    throw new FatalError(`${needs} agents that authenticate by certificates: set --auth mtls:subject:CN=([^,]+)`);
  }
  if (flags['enable-enrolment'] && flags['root-ca-path'] !== '') {
    throw new FatalError(`${needs} the authority in Secret ${flags['tls-ca-secret-name']}: remove --root-ca-path`);
  }
}

/** How replicas show that they live. */
export function replicaTimes(flags: PrincipalFlags): ReplicaTiming {
  return {
    renewMs: flags['replica-renew-interval'],
    deadlineMs: flags['replica-renew-deadline'],
    durationMs: flags['replica-lease-duration'],
  };
}

function checkReplicas(flags: PrincipalFlags): void {
  const interval = flags['replica-renew-interval'];
  const deadline = flags['replica-renew-deadline'];
  const duration = flags['replica-lease-duration'];
  if (flags['enable-replicas'] && flags['insecure-jwt-generate'] && flags['jwt-key'] === '') {
    throw new FatalError(
      '--enable-replicas (ARGOCD_PRINCIPAL_ENABLE_REPLICAS) needs one key for tokens: name its Secret with --jwt-secret-name instead of --insecure-jwt-generate',
    );
  }
  if (duration % 1_000 !== 0 || deadline >= duration || interval * 1.2 >= deadline) {
    throw new FatalError(
      `--replica-lease-duration (${duration} ms, in whole seconds) must be more than --replica-renew-deadline (${deadline} ms), and that more than 1.2 times --replica-renew-interval (${interval} ms)`,
    );
  }
}

function selfRegistration(flags: PrincipalFlags): PrincipalSettings['selfRegistration'] {
  if (!flags['enable-self-cluster-registration']) {
    return undefined;
  }
  const needs = '--enable-self-cluster-registration (ARGOCD_PRINCIPAL_ENABLE_SELF_CLUSTER_REGISTRATION) needs';
  if (!flags['enable-resource-proxy']) {
    throw new FatalError(`${needs} the resource proxy: set --enable-resource-proxy`);
  }
  const identitySecret = flags['self-registration-client-cert-secret'];
  if (identitySecret === '') {
    throw new FatalError(
      `${needs} --self-registration-client-cert-secret, a Secret with tls.crt, tls.key and ca.crt for clients of the resource proxy`,
    );
  }
  const address = flags['resource-proxy-address'];
  if (!/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?$/.test(address)) {
    throw new FatalError(`--resource-proxy-address must be host:port, not ${JSON.stringify(address)}`);
  }
  return { address, identitySecret };
}

function tlsSettings(flags: PrincipalFlags): TlsSettings {
  try {
    return parseTlsSettings({
      // An empty lowest version means the default, as in the original.
      minVersion: flags['tls-min-version'] || principalFlags['tls-min-version'].default,
      maxVersion: flags['tls-max-version'],
      cipherSuites: flags['tls-ciphersuites'],
    });
  } catch (error) {
    if (!(error instanceof RangeError)) {
      throw error;
    }
    throw new FatalError(`--tls-min-version, --tls-max-version, --tls-ciphersuites: ${error.message}`, {
      cause: error,
    });
  }
}

function authOf(text: string, plaintext: boolean): AuthChoice {
  try {
    const choice = parseAuth(text);
    checkPairing(choice, { plaintext });
    return choice;
  } catch (error) {
    if (!(error instanceof AuthError)) {
      throw error;
    }
    const example = 'for example mtls:subject:CN=([^,]+)';
    throw new FatalError(`--auth (ARGOCD_PRINCIPAL_AUTH): ${error.message}; ${example}`, { cause: error });
  }
}
