import { randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import type { AppProject } from '../../../lib/argocd/index.ts';
import { OpenConnections } from '../../../lib/credentials/index.ts';
import type { ConfigMap, Secret } from '../../../lib/kube/index.ts';
import { PageAccess } from '../access/page-access.ts';
import type { TrustedProxies } from '../access/page-viewers.ts';
import { FleetPage, type FleetPageOptions } from '../fleet-page.ts';
import type { ApplicationCounts, ClusterSigns } from '../model/cluster-facts.ts';
import { FleetModel } from '../model/fleet-model.ts';
import { PageLenses } from '../page-lenses.ts';
import { type PageServer, servePages } from '../page-server.ts';
import type { ListedApplications } from '../view/cluster-page.ts';

/** Signs the sessions of {@link MadeUpFleet}. */
export const madeUpKey = 'a-key-that-signs-the-sessions-of-a-test';

/** By which Argo CD's server shows for which UI extension it asks {@link MadeUpFleet}. */
export const madeUpExtensionKeys = {
  application: 'the-key-of-the-extension-about-one-application',
  clusters: 'the-key-of-the-extension-about-all-clusters',
};

/** What a test says about a cluster; what it leaves out is well. */
export type MadeUpCluster = Partial<Omit<ClusterSigns, 'agent' | 'pendingSince' | 'refused'>>;

/** Names and texts that try to be more than text. */
export const hostileTexts = [
  `<script>document.title='pwned'</script>`,
  `"><img src=x onerror="document.title='pwned'">`,
  `' onmouseover='document.title="pwned"`,
  'javascript:document.title="pwned"',
  '\u202egnp.evil\u202c \u2067\u2066 right to left',
  'ملف-العنقود-الرئيسي',
  '👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿💥'.repeat(6),
  'Z̸̢̛̰̲̗̺͇̯̩̹͔̤͇͔̞̾̈́̄̓̓͋̑̍͛̚͝͝a̴̧̛͉̙̳̬̩̭̲̩̟͓̥̔̀̽͌̽̐̄̎̂l̶̡̢̛̛̙̱̜̺̜̹̘̟̱̒̐̃̾̂̄̓g̸̛̮̮̖̮̝̞̗̣̣̙͕̈́̌̃̓̀̀͋͌͝o̷̗̲̝̙͈̭̥̗͈̰̮̿̎͊̈̌̿̇̾',
  'x'.repeat(400),
  'null\u0000bell\u0007escape\u001b[31mline\nbreak\u2028tab\t',
  '{{7*7}} </style></title></textarea>--><!-- &lt;b&gt;',
] as const;

/** A fleet of which a test says everything, with the real page before it. */
export interface MadeUpFleet {
  readonly model: FleetModel;
  readonly server: PageServer;
  readonly url: string;
  /** Changes a cluster, or adds it; undefined removes it. */
  set(agent: string, cluster: MadeUpCluster | undefined): void;
  /** A session of an account. */
  session(account?: string, claims?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Replaces Argo CD's policy. */
  policy(data: Readonly<Record<string, string>>): void;
  /** Adds an AppProject, or replaces it. */
  project(project: AppProject): void;
  close(): Promise<void>;
}

/** Serves a fleet without TLS at a free port of the loopback interface. */
export async function serveMadeUpFleet(
  clusters: Readonly<Record<string, MadeUpCluster>>,
  options: {
    policy?: Readonly<Record<string, string>>;
    proxies?: TrustedProxies;
    path?: string;
    applications?: (agent: string) => ListedApplications;
    way?: FleetPageOptions['way'];
    isRevoked?: (id: string) => Promise<boolean>;
  } = {},
): Promise<MadeUpFleet> {
  const known = new Map(Object.entries(clusters));
  let messages = 0;
  const model = new FleetModel({
    agents: () => known.keys(),
    messages: async () => (messages += 40 + Math.round(30 * Math.sin(messages / 400))),
    signs: (agent) => {
      const cluster = known.get(agent);
      return cluster && { ...wellSigns(agent), ...cluster };
    },
  });
  const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const namespace = 'argocd';
  const settings = madeUpCache<ConfigMap>({
    metadata: { name: 'argocd-cm', namespace },
    data: {
      url: 'https://argocd.example.com',
      'accounts.alice': 'login',
      'accounts.robot': 'apiKey',
      'accounts.bob': 'login',
    },
  });
  const policy = madeUpCache<ConfigMap>({
    metadata: { name: 'argocd-rbac-cm', namespace },
    data: { ...options.policy },
  });
  const secrets = madeUpCache<Secret>({
    metadata: { name: 'argocd-secret', namespace },
    data: {
      'server.secretkey': Buffer.from(madeUpKey).toString('base64'),
      'fleet-page.extension.application': Buffer.from(madeUpExtensionKeys.application).toString('base64'),
      'fleet-page.extension.clusters': Buffer.from(madeUpExtensionKeys.clusters).toString('base64'),
      'accounts.robot.tokens': Buffer.from(JSON.stringify([{ id: 'robot-1', iat: 1 }])).toString('base64'),
    },
  });
  const projects = madeUpCache<AppProject>({ metadata: { name: 'default', namespace }, spec: {} });
  const access = new PageAccess({
    namespace,
    configMaps: { settings: settings.cache, policy: policy.cache },
    secrets: secrets.cache,
    projects: projects.cache,
    isRevoked: options.isRevoked ?? (async () => false),
    proxies: options.proxies ?? { loopback: false, names: new Set() },
    logger,
  });
  const lenses = new PageLenses(model, access, (agent) => [{ server: `https://${agent}.example.com`, project: '' }]);
  const ending = new AbortController();
  const path = options.path ?? '/';
  const page = new FleetPage({
    access,
    lenses,
    way: options.way ?? (async () => undefined),
    path,
    applications: options.applications ?? (() => ({ shown: [], more: 0, withheld: 0 })),
    loginUrl: '',
    logger,
    signal: ending.signal,
  });
  const server = await servePages({
    address: { host: '127.0.0.1', port: 0 },
    path,
    tls: 'plaintext',
    handler: (request, response) => page.handle(request, response),
    certified: new OpenConnections({ logger }).port('fleet page'),
    logger,
  });
  return {
    model,
    server,
    url: `http://127.0.0.1:${server.port}${path}`,
    set(agent, cluster) {
      if (cluster === undefined) {
        known.delete(agent);
      } else {
        known.set(agent, { ...known.get(agent), ...cluster });
      }
      model.touch(agent);
    },
    session: (account = 'admin', claims = {}) =>
      new SignJWT({ sub: `${account}:login`, jti: randomUUID(), ...claims })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer('argocd')
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(new TextEncoder().encode(madeUpKey)),
    project: (project) => projects.set(project),
    policy: (data) => policy.set({ metadata: { name: 'argocd-rbac-cm', namespace }, data: { ...data } }),
    async close() {
      ending.abort();
      model.close();
      await server.close();
    },
  };
}

/** Applications that are all healthy and in sync but some. */
export function madeUpCounts(
  total: number,
  bad: Readonly<Record<string, number>> = {},
  outOfSync = 0,
): ApplicationCounts {
  const unwell = Object.values(bad).reduce((sum, count) => sum + count, 0);
  return {
    total,
    health: { ...bad, Healthy: total - unwell },
    sync: { ...(outOfSync === 0 ? {} : { OutOfSync: outOfSync }), Synced: total - outOfSync },
  };
}

function wellSigns(agent: string): Omit<ClusterSigns, 'pendingSince' | 'refused'> {
  return {
    agent,
    title: agent,
    mode: 'managed',
    version: '0.1.0',
    connectedSince: new Date(Date.now() - 5 * 3_600_000),
    lastSeen: undefined,
    pending: 0,
    certificate: { from: new Date(), ends: new Date(Date.now() + 60 * 24 * 3_600_000) },
    applications: madeUpCounts(12),
  };
}

function ignore(): undefined {
  return undefined;
}

function madeUpCache<T extends { metadata: { name: string } }>(first: T) {
  let now = first;
  const handlers = new Set<{ added?(now: T): void; updated?(old: T, now: T): void }>();
  return {
    cache: {
      get: ({ name }: { name: string }) => (name === now.metadata.name ? now : undefined),
      subscribe(handler: { added?(now: T): void; updated?(old: T, now: T): void }) {
        handlers.add(handler);
        handler.added?.(now);
        return () => handlers.delete(handler);
      },
    },
    set(next: T) {
      const old = now;
      now = next;
      for (const handler of handlers) {
        handler.updated?.(old, next);
      }
    },
  };
}
