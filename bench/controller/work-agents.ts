import { type OcmManifestWork, ocmManifestWorks } from '../../e2e/ocm/index.ts';
import { Informer, type KubeClient, parseKey, WorkQueue } from '../../lib/kube/index.ts';

/** Stand-ins of the work agents of a whole fleet. */
export interface WorkAgents {
  /** Current number of works. */
  readonly works: number;
  /** Number of status writes so far. */
  readonly written: number;
  /** The names of a cluster's works. */
  of(cluster: string): string[];
  /** Calls the handler for each added work. */
  onAdded(handler: () => void): void;
  stop(): Promise<void>;
}

/** Reports every work as a work agent would that applies it at once: applied, available, every workload ready. */
export async function startWorkAgents(client: KubeClient): Promise<WorkAgents> {
  const ended = new AbortController();
  const acknowledged = new Map<string, number>();
  let written = 0;
  const queue = new WorkQueue({
    name: 'works',
    concurrency: 8,
    handler: async (key) => {
      const work = informer.get(parseKey(key));
      if (work === undefined) {
        return;
      }
      const generation = work.metadata.generation ?? 0;
      if (acknowledged.get(key) === generation) {
        return;
      }
      await client.mergePatch(ocmManifestWorks, work.metadata, { status: statusOf(work) }, { subresource: 'status' });
      acknowledged.set(key, generation);
      written += 1;
    },
  });
  const informer = new Informer<OcmManifestWork>({ client, type: ocmManifestWorks, transform: slim });
  const handlers: (() => void)[] = [];
  informer.subscribe({
    added: ({ metadata }) => {
      queue.add(`${metadata.namespace}/${metadata.name}`);
      for (const handler of handlers) {
        handler();
      }
    },
    updated: (old, { metadata }) => {
      if (old.metadata.generation !== metadata.generation) {
        queue.add(`${metadata.namespace}/${metadata.name}`);
      }
    },
    deleted: ({ metadata }) => acknowledged.delete(`${metadata.namespace}/${metadata.name}`),
  });
  const running = Promise.all([informer.run(ended.signal), queue.run(ended.signal)]);
  await informer.synced(ended.signal);
  return {
    get works() {
      return informer.size;
    },
    get written() {
      return written;
    },
    of: (cluster) => informer.list(cluster).map(({ metadata }) => metadata.name),
    onAdded: (handler) => void handlers.push(handler),
    async stop() {
      ended.abort();
      await running;
    },
  };
}

/** Keeps only kinds and names of the manifests. */
function slim(work: OcmManifestWork): OcmManifestWork {
  const manifests = (work.spec.workload?.manifests ?? []).map(({ apiVersion = '', kind = '', metadata }) => ({
    apiVersion,
    kind,
    metadata: { name: metadata.name, ...(metadata.namespace ? { namespace: metadata.namespace } : {}) },
  }));
  const { namespace = '', name, generation = 0, resourceVersion = '' } = work.metadata;
  return { metadata: { namespace, name, generation, resourceVersion }, spec: { workload: { manifests } } };
}

function statusOf(work: OcmManifestWork): NonNullable<OcmManifestWork['status']> {
  const base = { status: 'True' as const, reason: 'Bench', message: '', lastTransitionTime: new Date().toISOString() };
  const observedGeneration = work.metadata.generation ?? 0;
  const integer = (name: string) => ({ name, fieldValue: { type: 'Integer' as const, integer: 1 } });
  const manifests = (work.spec.workload?.manifests ?? []).map(({ apiVersion = '', kind = '', metadata }, ordinal) => ({
    resourceMeta: {
      ordinal,
      group: apiVersion.includes('/') ? apiVersion.replace(/\/.*/, '') : '',
      version: apiVersion.replace(/.*\//, ''),
      kind,
      resource: `${kind.toLowerCase()}s`,
      name: metadata.name,
      namespace: metadata.namespace ?? '',
    },
    conditions: [{ type: 'Applied', ...base }],
    statusFeedback: {
      values: /Deployment|StatefulSet/.test(kind) ? [integer('Replicas'), integer('ReadyReplicas')] : [],
    },
  }));
  return {
    conditions: ['Applied', 'Available'].map((type) => ({ type, ...base, observedGeneration })),
    resourceStatus: { manifests },
  };
}
