import { type AppProject, annotations, projectForHub, projectMirrorName } from '../lib/argocd/index.ts';
import { isEqual } from '../lib/base/index.ts';
import { agentNamespace, principalNamespace } from './layout.ts';
import type { Scene, Site, Topic } from './world.ts';

const names = ['tools', 'apps'];
const finalizer = 'resources-finalizer.argocd.argoproj.io';

/** AppProjects that autonomous agents own, and their mirrors on the hub. */
export class AutonomousProjects implements Topic {
  readonly #scene: Scene;
  /** Uids of projects that the hub has of its own, under a name that a mirror would have. */
  readonly #own = new Set<string>();
  #count = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  concerns(site: Site): boolean {
    return site.mode === 'autonomous';
  }

  /** Somebody does something to a mirror, or where one could be. */
  onHub(site: Site): string {
    const { dice, hub } = this.#scene;
    const all = hub.of('AppProject');
    const ref = { namespace: principalNamespace, name: projectMirrorName(site.name, dice.pick(names) ?? '') };
    const label = `AppProject ${ref.name}`;
    if (all.get(ref) === undefined) {
      if (!dice.chance(0.3)) {
        return 'nothing';
      }
      this.#own.add(all.create({ metadata: { ...ref }, spec: { description: 'own' } }).metadata.uid ?? '');
      return `create ${label}`;
    }
    switch (dice.integer(0, 5)) {
      case 0:
      case 1:
        all.delete(ref, { propagation: dice.chance(0.5) ? 'Foreground' : 'Background' });
        return `delete ${label}`;
      case 2:
        all.patch(ref, { metadata: { annotations: { [annotations.sourceUid]: null } } });
        return `strip ${label}`;
      case 3:
        all.patch(ref, { spec: { sourceNamespaces: ['*'] }, metadata: { labels: { mine: 'x' } } });
        return `turn ${label}`;
      default:
        all.patch(ref, { spec: { sourceRepos: [`hub${++this.#count}`] } });
        return `edit ${label}`;
    }
  }

  onSite(site: Site): string {
    const { dice } = this.#scene;
    const all = site.cluster.of('AppProject');
    const ref = { namespace: agentNamespace, name: dice.pick(names) ?? '' };
    const label = `AppProject ${ref.name}`;
    const project = all.get(ref);
    if (project === undefined) {
      all.create(this.#new(ref));
      return `create ${label}`;
    }
    switch (dice.integer(0, 6)) {
      case 0:
        all.delete(ref, { propagation: 'Background' });
        return `delete ${label}`;
      case 1:
        all.patch(ref, { metadata: { finalizers: null } });
        if (all.get(ref) !== undefined) {
          all.delete(ref, { propagation: 'Background' });
        }
        all.create(this.#new(ref));
        return `re-create ${label}`;
      case 2:
        all.patch(ref, { metadata: { finalizers: null } });
        return `finalizers of ${label} are answered`;
      case 3:
        all.patch(ref, { metadata: { labels: { team: `t${++this.#count}` } } });
        return `label ${label}`;
      default:
        all.patch(ref, { spec: { sourceRepos: [`site${++this.#count}`] } });
        return `edit ${label}`;
    }
  }

  failing(site: Site): number {
    return names.filter((name) => {
      const mirror = this.#scene.hub.of('AppProject').get({
        namespace: principalNamespace,
        name: projectMirrorName(site.name, name),
      });
      const source = site.cluster.of('AppProject').get({ namespace: agentNamespace, name });
      return source !== undefined && this.#own.has(mirror?.metadata.uid ?? '');
    }).length;
  }

  problems(site: Site): string[] {
    const hub = this.#scene.hub.of('AppProject');
    const problems: string[] = [];
    for (const name of names) {
      const source = site.cluster.of('AppProject').get({ namespace: agentNamespace, name });
      const mirror = hub.get({ namespace: principalNamespace, name: projectMirrorName(site.name, name) });
      const isOwn = mirror !== undefined && this.#own.has(mirror.metadata.uid ?? '');
      const place = { agent: site.name, cluster: { name: site.name, server: '' }, keepsGroups: false };
      const should = source && shown(projectForHub(source, place), source.metadata.uid);
      const is = mirror && shown(mirror, undefined);
      if (isOwn ? mirror.metadata.annotations?.[annotations.sourceUid] !== undefined : !isEqual(should, is)) {
        problems.push(
          `${site.name}: mirror of ${name}: should be ${JSON.stringify(isOwn ? 'own' : should)}, is ${JSON.stringify(is)}`,
        );
      }
    }
    return problems;
  }

  #new(ref: { readonly namespace: string; readonly name: string }): AppProject {
    return {
      metadata: {
        ...ref,
        labels: { team: 'a' },
        ...(this.#scene.dice.chance(0.5) ? { finalizers: [finalizer] } : {}),
      },
      spec: {
        sourceRepos: ['*'],
        destinations: [{ server: 'https://kubernetes.default.svc', namespace: '*' }],
        roles: [{ name: 'r', policies: [`p, proj:${ref.name}:r, applications, get, ${ref.name}/*, allow`] }],
      },
    };
  }
}

function shown({ metadata, spec }: AppProject, uid: string | undefined): object {
  const isGoing = uid === undefined && metadata.deletionTimestamp !== undefined;
  return { source: uid ?? metadata.annotations?.[annotations.sourceUid], labels: metadata.labels ?? {}, spec, isGoing };
}
