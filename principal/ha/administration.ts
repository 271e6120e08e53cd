import { mtlsMethod } from '../../lib/auth/index.ts';
import { type Logger, listenHost } from '../../lib/base/index.ts';
import { allSynced, type RunningProgram, startInformer } from '../../lib/bridge/index.ts';
import { OpenConnections } from '../../lib/credentials/index.ts';
import { configMaps, type Secret, secrets } from '../../lib/kube/index.ts';
import { FatalError, followFiles, parseKeyPair, parseTrust, Reloadable } from '../../lib/ops/index.ts';
import { type HaAdminService, type ServerTls, serveHaAdmin } from '../../lib/wire/index.ts';
import { type PrincipalCredentials, serverCredentials, trustSecret } from '../credentials.ts';
import { credentialsTimeoutMs, serverTls } from '../sessions/agent-server.ts';
import { Blocklist, blocklistName } from '../sessions/blocklist.ts';
import type { PrincipalSettings } from '../settings.ts';
import { adminAccess } from './admin-access.ts';
import type { HaSettings } from './settings.ts';

/** What the administration proves itself with, and what its clients must prove. */
type Material = Pick<PrincipalCredentials, 'server' | 'clientTrust'>;

/** What {@link serveAdministration} needs. */
export interface AdministrationOptions {
  readonly settings: PrincipalSettings;
  readonly ha: HaSettings;
  /** Its client reads, and its signal ends what is followed here. */
  readonly program: Pick<RunningProgram, 'client' | 'signal' | 'failed'>;
  readonly service: HaAdminService;
  /** Whether an agent of that name has a cluster Secret. */
  isAgent(name: string): boolean;
  readonly logger: Logger;
}

/**
 * Serves the administration of a pair as long as the program runs, whatever role this principal has: its key material and the
 * blocklist do not depend on a role, as those of the other ports do.
 * @throws FatalError that names what is missing, or the port that cannot be used; the reason of the signal
 */
export async function serveAdministration(options: AdministrationOptions): Promise<{ close(): Promise<void> }> {
  const { settings, ha, service, logger } = options;
  const { signal } = options.program;
  const blocklist = new Blocklist(logger);
  const connections = new OpenConnections({ isBlocked: (fingerprint) => blocklist.has(fingerprint), logger });
  await followBlocklist(options, blocklist, () => connections.blocklistChanged());
  const material = ha.admin.files === undefined ? materialOfAgents(options) : materialIn(ha.admin.files, options);
  const wait = { timeoutMs: credentialsTimeoutMs, signal };
  const flag = (names: string) => `Create it, or name another one with --${names}`;
  await material.server?.ready({ ...wait, advice: flag('tls-secret-name or --ha-admin-tls-cert') });
  await material.clientTrust?.ready({ ...wait, advice: flag('tls-ca-secret-name or --ha-admin-ca') });
  if (ha.admin.auth === undefined) {
    logger.warn(
      { hint: 'set --ha-admin-auth (ARGOCD_PRINCIPAL_HA_ADMIN_AUTH)' },
      'argocd-agentctl ha is denied to everybody',
    );
  }
  const { auth } = settings;
  const address = listenHost(settings.flags['listen-host']);
  const server = await serveHaAdmin({
    ...(address === undefined ? {} : { address }),
    port: ha.admin.port,
    tls: tlsOf(settings, material),
    connections,
    authorize: adminAccess({
      auth: ha.admin.auth,
      method: auth.method === 'mtls' ? mtlsMethod(auth) : {},
      isAgent: ha.admin.files === undefined ? (name) => options.isAgent(name) : undefined,
    }),
    service,
    logger,
  }).catch((cause: Error) => {
    throw new FatalError(
      `cannot serve the administration on port ${ha.admin.port} (--ha-admin-port): ${cause.message}`,
      { cause },
    );
  });
  const reload = () => {
    try {
      server.setTls(tlsOf(settings, material));
    } catch (error) {
      logger.error({ error }, 'the new certificates cannot be served with, the former ones stay in use');
    }
  };
  material.server?.subscribe(reload);
  material.clientTrust?.subscribe(reload);
  // Changed while the port was being taken.
  reload();
  return { close: () => server.close() };
}

/** @throws Error when there is no TLS, which a pair never lacks */
function tlsOf(settings: PrincipalSettings, material: Material): ServerTls & { readonly clientCa: string } {
  const tls = serverTls(settings, material);
  const clientCa = tls === 'plaintext' ? undefined : tls.clientCa;
  if (tls === 'plaintext' || clientCa === undefined) {
    throw new Error('the administration needs a certificate, and the authorities of its clients');
  }
  return { ...tls, clientCa };
}

async function followBlocklist(
  { settings, program, logger }: AdministrationOptions,
  blocklist: Blocklist,
  changed: () => void,
): Promise<void> {
  const { namespace } = settings.flags;
  const fieldSelector = `metadata.name=${blocklistName}`;
  const informer = startInformer({ ...program, type: configMaps, namespace, fieldSelector, logger });
  blocklist.follow(informer, changed);
  await allSynced(
    { 'blocked certificates': informer },
    {
      timeoutMs: credentialsTimeoutMs,
      signal: program.signal,
      advice: 'may the principal list ConfigMaps, and is the API server well?',
    },
  );
}

/** The material of the port for agents. Only its Secrets are followed: each of many clusters has one, too. */
function materialOfAgents({ settings, program, logger }: AdministrationOptions): Material {
  const { flags } = settings;
  const names = [flags['tls-secret-name'], flags['tls-ca-secret-name'], trustSecret(flags['tls-ca-secret-name'])];
  const informers = [...new Set(names)].map((name) =>
    startInformer<Secret>({
      ...program,
      type: secrets,
      namespace: flags.namespace,
      fieldSelector: `metadata.name=${name}`,
      logger,
    }),
  );
  return serverCredentials(settings, {
    secrets: {
      subscribe: (handler) => {
        const ends = informers.map((informer) => informer.subscribe(handler));
        return () => {
          for (const end of ends) {
            end();
          }
        };
      },
    },
    logger,
    signal: program.signal,
  });
}

/** @throws FatalError when a file cannot be read */
function materialIn(
  files: NonNullable<HaSettings['admin']['files']>,
  { program: { signal }, logger }: AdministrationOptions,
): Material {
  const server = new Reloadable({ origin: `File ${files.cert}, ${files.key}`, parse: parseKeyPair, logger });
  followFiles({ 'tls.crt': files.cert, 'tls.key': files.key }, server, signal);
  const clientTrust = new Reloadable<string>({
    origin: `File ${files.ca}`,
    parse: (fields) => parseTrust(fields, ['ca.crt']),
    logger,
  });
  followFiles({ 'ca.crt': files.ca }, clientTrust, signal);
  return { server, clientTrust };
}
