import { type OcmManifestWork, ocmManifestWorks } from '../../e2e/ocm/index.ts';
import { Informer, type KubeClient, parseKey, WorkQueue } from '../../lib/kube/index.ts';

/** Stand-ins of the work agents of a whole fleet. */
export interface WorkAgents {
  /** Works that there are now. */
  readonly works: number;
  /** How often a status was written so far. */
  readonly written: number;
  /** Gives the names of a cluster's works. */
  of(cluster: string): string[];
  /** Hears of each work that is added. */
  onAdded(hear: () => void): void;
  stop(): Promise<void>;
}

/** Acknowledges every work as a work agent does that applies it at once: applied, available, every workload ready. */
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
  const heard: (() => void)[] = [];
  informer.subscribe({
    added: ({ metadata }) => {
      queue.add(`${metadata.namespace}/${metadata.name}`);
      for (const hear of heard) {
        hear();
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
    onAdded: (hear) => void heard.push(hear),
    async stop() {
      ended.abort();
      await running;
    },
  };
}

/** Of what is delivered, kinds and names are enough here. */
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
