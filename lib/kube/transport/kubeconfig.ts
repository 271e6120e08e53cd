import { existsSync, readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { homedir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

const text = z.string().nullish();

const clusterSchema = z.looseObject({
  server: z.string().min(1),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': z.boolean().nullish(),
  'tls-server-name': text,
  'proxy-url': text,
});

const userSchema = z.looseObject({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  as: text,
  exec: z.unknown().optional(),
  'auth-provider': z.unknown().optional(),
});

const contextSchema = z.looseObject({ cluster: z.string(), user: text, namespace: text });

const fileSchema = z.looseObject({
  clusters: z.array(z.looseObject({ name: z.string(), cluster: clusterSchema })).nullish(),
  users: z.array(z.looseObject({ name: z.string(), user: userSchema.nullish() })).nullish(),
  contexts: z.array(z.looseObject({ name: z.string(), context: contextSchema })).nullish(),
  'current-context': text,
});

/** A cluster of a kubeconfig, with the keys that it has there; paths are absolute. */
export type KubeconfigCluster = z.infer<typeof clusterSchema>;

/** A user of a kubeconfig, with the keys that it has there; paths are absolute. */
export type KubeconfigUser = z.infer<typeof userSchema>;

/** One context of a kubeconfig: where the API server is and who we are. */
export interface KubeContext {
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
  /** Namespace of the context, or of the pod's service account. */
  readonly namespace: string | undefined;
}

const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Reads a kubeconfig file; `context` overrides its current context. Throws when either does not exist. */
export function contextFromFile(file: string, context?: string): KubeContext {
  return contextFromFiles([file], context);
}

/** The context that a pod gets from its service account. Throws outside of a pod. */
export function contextInCluster(environment = process.env, folder = serviceAccountFolder): KubeContext {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!isInCluster(environment, folder)) {
    throw new Error(
      'not running in a cluster: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT or the service account token is missing',
    );
  }
  const namespaceFile = path.join(folder, 'namespace');
  return {
    cluster: {
      server: `https://${isIPv6(host ?? '') ? `[${host}]` : host}:${port}`,
      'certificate-authority': path.join(folder, 'ca.crt'),
    },
    user: { tokenFile: path.join(folder, 'token') },
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8') : undefined,
  };
}

/** The search order of all our programs: the given file, KUBECONFIG, the pod's service account, ~/.kube/config. */
export function contextFromEnvironment(options: { kubeconfig?: string; context?: string } = {}): () => KubeContext {
  const { kubeconfig, context } = options;
  if (kubeconfig) {
    return () => contextFromFile(kubeconfig, context);
  }
  const files = (process.env.KUBECONFIG ?? '').split(path.delimiter).filter((file) => file !== '');
  if (files.length > 0) {
    return () => contextFromFiles(files.length > 1 ? files.filter((file) => existsSync(file)) : files, context);
  }
  if (isInCluster()) {
    return () => contextInCluster();
  }
  const home = path.join(homedir(), '.kube', 'config');
  if (existsSync(home)) {
    return () => contextFromFile(home, context);
  }
  throw new Error('no Kubernetes configuration: give --kubeconfig or KUBECONFIG, or run in a cluster');
}

function isInCluster(environment = process.env, folder = serviceAccountFolder): boolean {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  return Boolean(host && port && existsSync(path.join(folder, 'token')));
}

/** Merges files as kubectl does: the first one that defines a name, or a current context, wins. */
function contextFromFiles(files: readonly string[], chosen?: string): KubeContext {
  const configs = files.map(readFile);
  const named = files.join(path.delimiter);
  const wanted = chosen ?? configs.map((config) => config['current-context']).find(Boolean) ?? '';
  const context = find(
    configs.map(({ contexts }) => contexts),
    wanted,
  )?.context;
  if (chosen !== undefined && context === undefined) {
    throw new Error(`kubeconfig ${named}: there is no context "${chosen}"`);
  }
  const cluster = find(
    configs.map(({ clusters }) => clusters),
    context?.cluster,
  )?.cluster;
  if (cluster === undefined) {
    throw new Error(`kubeconfig ${named}: the current context ${JSON.stringify(wanted)} names no cluster`);
  }
  const user = find(
    configs.map(({ users }) => users),
    context?.user,
  )?.user;
  return { cluster, user: user ?? {}, namespace: context?.namespace ?? undefined };
}

/** The first entry with a name. */
function find<T extends { name: string }>(lists: readonly (T[] | null | undefined)[], name: unknown): T | undefined {
  return lists.flatMap((list) => list ?? []).find((entry) => entry.name === name);
}

function parseFile(file: string): unknown {
  try {
    return parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n', 1);
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new Error(`kubeconfig ${file} ${isMissing ? 'does not exist' : `cannot be read: ${reason}`}`);
  }
}

/** Parses one file; relative paths in it start from its folder. */
function readFile(file: string): z.infer<typeof fileSchema> {
  const parsed = fileSchema.safeParse(parseFile(file) ?? {});
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path: keys, message }) => [z.core.toDotPath(keys), message].join(': '));
    throw new Error(`kubeconfig ${file}: ${problems.join('; ')}`);
  }
  const folder = path.dirname(path.resolve(file));
  const resolveIn = (entry: Record<string, unknown> | null | undefined, keys: readonly string[]) => {
    for (const key of keys) {
      const value = entry?.[key];
      if (entry && typeof value === 'string' && value !== '') {
        entry[key] = path.resolve(folder, value);
      }
    }
  };
  for (const { cluster } of parsed.data.clusters ?? []) {
    resolveIn(cluster, ['certificate-authority']);
  }
  for (const { user } of parsed.data.users ?? []) {
    resolveIn(user, ['client-certificate', 'client-key', 'tokenFile']);
  }
  return parsed.data;
}
