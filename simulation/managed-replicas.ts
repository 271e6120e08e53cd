import {
  type AppProject,
  annotations,
  type GpgKeys,
  gpgKeysName,
  isProjectForAgent,
  isRepository,
  ownerOfMirror,
  projectForAgent,
  projectOfRepository,
  type RepositorySecret,
  skipSyncLabel,
} from '../lib/argocd/index.ts';
import { isEqual, type MergePatch } from '../lib/base/index.ts';
import type { Kinds, SimulatedObject } from './cluster.ts';
import { agentNamespace, principalNamespace } from './layout.ts';
import type { Scene, Site, Topic } from './world.ts';

const projects = ['team', 'infra'];
const repositories = ['git', 'helm'];
const typeLabel = 'argocd.argoproj.io/secret-type';

type ReplicatedKind = 'AppProject' | 'Secret' | 'ConfigMap';

/** What managed clusters get of the hub and never answer: projects, repositories, keys. */
export class ManagedReplicas implements Topic {
  readonly #scene: Scene;
  /** What users of a cluster made there, and did not delete, by uid. */
  readonly #own = new Map<string, { readonly site: Site; readonly kind: ReplicatedKind; readonly name: string }>();
  #count = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  concerns(site: Site): boolean {
    return site.mode === 'managed';
  }

  onHub(site: Site): string {
    const { dice, hub, unkind } = this.#scene;
    const { kind, name } = this.#any();
    const all = hub.of(kind);
    const ref = { namespace: principalNamespace, name };
    const label = `${kind} ${name}`;
    if (all.get(ref) === undefined) {
      all.create(this.#new(kind, name, principalNamespace, site.name) as never);
      return `create ${label}`;
    }
    if (kind === 'AppProject' && unkind.strikes('lockDown', 0.2)) {
      all.patch(ref, { spec: { sourceRepos: [], destinations: [], sourceNamespaces: [] } });
      return `lock down ${label}`;
    }
    switch (dice.integer(0, 8)) {
      case 0:
        all.delete(ref, { propagation: 'Background' });
        return `delete ${label}`;
      case 1:
        all.delete(ref, { propagation: 'Background' });
        all.create(this.#new(kind, name, principalNamespace, site.name) as never);
        return `re-create ${label}`;
      case 2:
      case 3:
        all.patch(ref, this.#turn(kind));
        return `turn ${label}`;
      case 4: {
        const isOut = all.get(ref)?.metadata.labels?.[skipSyncLabel] === 'true';
        all.patch(ref, { metadata: { labels: { [skipSyncLabel]: isOut ? null : 'true' } } });
        return `${isOut ? 'let in' : 'keep out'} ${label}`;
      }
      case 5:
        all.patch(ref, {
          metadata: { labels: { team: `t${++this.#count}` }, annotations: { note: `${this.#count}` } },
        });
        return `label ${label}`;
      default:
        all.patch(ref, this.#edit(kind));
        return `edit ${label}`;
    }
  }

  onSite(site: Site): string {
    const { kind, name } = this.#any();
    const all = site.cluster.of(kind);
    const ref = { namespace: agentNamespace, name };
    const label = `${kind} ${name}`;
    if (all.get(ref) === undefined) {
      const { metadata } = all.create(this.#new(kind, name, agentNamespace, site.name) as never);
      const uid = metadata.uid ?? '';
      this.#own.set(uid, { site, kind, name });
      // A restore may take it away.
      site.cluster.onRestored(() => all.get(ref)?.metadata.uid === uid || this.#own.delete(uid));
      return `create unmanaged ${label}`;
    }
    switch (this.#scene.dice.integer(0, 4)) {
      case 0:
        this.#own.delete(all.get(ref)?.metadata.uid ?? '');
        all.delete(ref, { propagation: 'Background' });
        return `delete ${label}`;
      case 1:
        all.patch(ref, { metadata: { annotations: { [annotations.sourceUid]: null, note: null } } });
        return `strip ${label}`;
      default:
        all.patch(ref, this.#edit(kind));
        return `edit ${label}`;
    }
  }

  problems(site: Site): string[] {
    return [
      ...this.#differencesOf(site, 'AppProject', (project) => this.#projectFor(project, site)),
      ...this.#differencesOf(site, 'Secret', (secret) => this.#repositoryFor(secret, site)),
      ...this.#differencesOf(site, 'ConfigMap', (configMap) => configMap),
      ...(this.#scene.unkind.has('lockDown') ? this.#lost(site) : []),
    ];
  }

  /** What the cluster had of its own, and has no more. */
  #lost({ name: agent, cluster }: Site): string[] {
    return Array.from(this.#own).flatMap(([uid, { site, kind, name }]) => {
      const now = cluster.of(kind).get({ namespace: agentNamespace, name });
      return site.name === agent && now?.metadata.uid !== uid
        ? [`${agent}: ${kind} ${name} was its own, and is lost`]
        : [];
    });
  }

  #projectFor(project: AppProject, site: Site): AppProject | undefined {
    const mapping = this.#scene.layout.projectMapping;
    const target = { agent: site.name, clusters: [] };
    return ownerOfMirror(project) === undefined && isProjectForAgent(project, target, mapping)
      ? projectForAgent(project, target, mapping)
      : undefined;
  }

  #repositoryFor(secret: RepositorySecret, site: Site): RepositorySecret | undefined {
    const name = projectOfRepository(secret) ?? '';
    const project = this.#scene.hub.of('AppProject').get({ namespace: principalNamespace, name });
    return isRepository(secret) && project !== undefined && this.#projectFor(project, site) !== undefined
      ? secret
      : undefined;
  }

  #differencesOf<K extends ReplicatedKind>(
    { name: agent, cluster }: Site,
    kind: K,
    wantedOf: (object: Kinds[K]) => Kinds[K] | undefined,
  ): string[] {
    const wanted = new Map<string, Kinds[K]>();
    for (const object of this.#scene.hub.of(kind).list()) {
      const copy = object.metadata.labels?.[skipSyncLabel] === 'true' ? undefined : wantedOf(object);
      if (copy !== undefined) {
        wanted.set(object.metadata.name, copy);
      }
    }
    const problems: string[] = [];
    for (const [name, object] of wanted) {
      const copy = cluster.of(kind).get({ namespace: agentNamespace, name });
      const [should, is] = [shown(object, object.metadata.uid), copy && shown(copy, undefined)];
      if (!isEqual(should, is)) {
        problems.push(`${agent}: ${kind} ${name}: should be ${JSON.stringify(should)}, is ${JSON.stringify(is)}`);
      }
    }
    for (const copy of cluster.of(kind).list()) {
      const { name, annotations: marks } = copy.metadata;
      if (marks?.[annotations.sourceUid] !== undefined && !wanted.has(name)) {
        problems.push(`${agent}: ${kind} ${name}: phantom`);
      }
    }
    return problems;
  }

  #any(): { kind: ReplicatedKind; name: string } {
    const { dice } = this.#scene;
    const choice = dice.integer(0, 5);
    if (choice < 3) {
      return { kind: 'AppProject', name: dice.pick(projects) ?? '' };
    }
    return choice < 5
      ? { kind: 'Secret', name: dice.pick(repositories) ?? '' }
      : { kind: 'ConfigMap', name: gpgKeysName };
  }

  #new(kind: ReplicatedKind, name: string, namespace: string, agent: string): AppProject | RepositorySecret | GpgKeys {
    const metadata = { namespace, name, labels: { team: 'a' } };
    switch (kind) {
      case 'AppProject':
        return { metadata, spec: { sourceRepos: ['*'], ...this.#forAgents(agent) } };
      case 'Secret':
        return {
          metadata: { ...metadata, labels: { ...metadata.labels, [typeLabel]: 'repository' } },
          data: { url: base64('https://git'), project: base64(this.#scene.dice.pick(projects) ?? '') },
        };
      case 'ConfigMap':
        return { metadata, data: { key: 'k' } };
    }
  }

  /** Who gets a project with these fields. */
  #forAgents(agent: string) {
    return { destinations: [{ name: agent, namespace: '*' }], sourceNamespaces: [agent] };
  }

  /** To other agents, or of another project. */
  #turn(kind: ReplicatedKind): MergePatch {
    const { dice, sites } = this.#scene;
    switch (kind) {
      case 'AppProject':
        return { spec: this.#forAgents(dice.pick([...sites.map(({ name }) => name), 'agent*', 'nobody']) ?? '') };
      case 'Secret':
        return { data: { project: base64(dice.pick([...projects, 'missing', '']) ?? '') } };
      case 'ConfigMap':
        return { data: { [`key${dice.integer(0, 2)}`]: dice.chance(0.3) ? null : 'turned' } };
    }
  }

  #edit(kind: ReplicatedKind): MergePatch {
    const value = `v${++this.#count}`;
    return kind === 'AppProject' ? { spec: { sourceRepos: [value] } } : { data: { url: base64(value) } };
  }
}

/** What a Secret was before it became a copy. */
const takenOverKey = 'argocd-agent-taken-over';

function shown({ metadata, ...content }: SimulatedObject & { data?: unknown }, uid: string | undefined): object {
  const { [annotations.sourceUid]: source, [annotations.takenOver]: _, ...others } = metadata.annotations ?? {};
  const data = Object.entries(content.data ?? {}).filter(([key]) => key !== takenOverKey);
  return {
    source: uid ?? source,
    labels: metadata.labels ?? {},
    others,
    content: content.spec ?? Object.fromEntries(data),
    isGoing: metadata.deletionTimestamp !== undefined,
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
