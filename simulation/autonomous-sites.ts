import { resourcesFinalizer } from '../e2e/application-controller/rules.ts';
import { type Application, annotations, skipSyncLabel } from '../lib/argocd/index.ts';
import type { ObjectRef } from '../lib/sync/index.ts';
import { revisionOf } from './argo-cd.ts';
import { hasError } from './check.ts';
import type { Collection } from './cluster.ts';
import { agentNamespace } from './layout.ts';
import { held, hiddenBy, mirrorDifferences } from './mirror-check.ts';
import type { Scene, Site, Topic } from './world.ts';

const names = ['shop', 'web', 'jobs'];

interface Asked {
  /** Of the mirror, and of the agent's Application. */
  readonly uids: readonly [string | undefined, string | undefined];
  readonly site: Site;
}

/** Applications that autonomous agents own, and their mirrors on the hub. */
export class AutonomousSites implements Topic {
  readonly #scene: Scene;
  /** The last operation that was asked for on a mirror. */
  readonly #operations = new Map<string, Asked & { readonly revision: string }>();
  /** The last refresh that was asked for on a mirror, and how many there had been. */
  readonly #refreshes = new Map<string, Asked & { readonly before: number }>();
  /** Uids of Applications that are nobody's mirrors. */
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
    const hub = this.#hub;
    const name = this.#anyName();
    const ref = { namespace: site.name, name };
    const mirror = hub.get(ref);
    if (mirror === undefined) {
      if (!this.#scene.dice.chance(0.2)) {
        return 'nothing';
      }
      const mark = this.#scene.dice.chance(0.5) ? { annotations: { [annotations.sourceUid]: 'forged' } } : {};
      const { metadata } = hub.create({ metadata: { ...ref, ...mark }, spec: { source: { path: 'own' } } });
      if (!('annotations' in mark)) {
        this.#own.add(metadata.uid ?? '');
      }
      return `create ${ref.namespace}/${name}${'annotations' in mark ? ' with a forged mark' : ''}`;
    }
    switch (this.#scene.dice.integer(0, 13)) {
      case 0:
        hub.delete(ref, { propagation: 'Foreground' });
        return `delete in the foreground ${site.name}/${name}`;
      case 1:
      case 2:
        hub.delete(ref, { propagation: 'Background' });
        return `delete ${site.name}/${name}`;
      case 3:
        hub.patch(ref, {
          metadata: {
            annotations: {
              [annotations.sourceUid]: null,
              ...(this.#scene.dice.chance(0.2) ? { [annotations.lastUpdated]: null } : {}),
            },
          },
        });
        return `strip ${site.name}/${name}`;
      case 4:
        hub.patch(ref, { metadata: { finalizers: this.#scene.dice.chance(0.5) ? null : [held] } });
        return `finalizers of ${site.name}/${name}`;
      case 5:
      case 6:
        this.#refresh(site, ref, mirror);
        return `refresh ${site.name}/${name}`;
      case 7:
      case 8:
      case 9:
        this.#sync(site, ref, mirror);
        return `sync ${site.name}/${name} hub-${this.#count}`;
      case 10:
        if (mirror.operation !== undefined && mirror.status?.operationState?.phase === 'Running') {
          hub.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
        }
        return `terminate ${site.name}/${name}`;
      case 11:
        hub.patch(ref, {
          spec: { project: `p${this.#count++}`, destination: { name: 'elsewhere', server: 'https://x' } },
        });
        return `turn ${site.name}/${name}`;
      default:
        hub.patch(ref, { spec: { source: { path: `hub${++this.#count % 3}` } } });
        return `edit ${site.name}/${name}`;
    }
  }

  onSite(site: Site): string {
    const cluster = site.cluster.of('Application');
    const ref = { namespace: agentNamespace, name: this.#anyName() };
    const { name } = ref;
    const app = cluster.get(ref);
    if (app === undefined) {
      cluster.create(this.#newApplication(ref));
      return `create ${name}`;
    }
    const { unkind, values } = this.#scene;
    if (values.isOn && unkind.dice.chance(0.3)) {
      cluster.edit(ref, (now) => values.edit(now));
      return `edit values of ${name}`;
    }
    switch (this.#scene.dice.integer(0, 12)) {
      case 0:
        cluster.delete(ref, { propagation: 'Foreground' });
        return `delete in the foreground ${name}`;
      case 1:
        cluster.delete(ref, { propagation: 'Background' });
        return `delete ${name}`;
      case 2:
        if (app.metadata.deletionTimestamp === undefined && (app.metadata.finalizers ?? []).length === 0) {
          cluster.delete(ref, { propagation: 'Background' });
          cluster.create(this.#newApplication(ref));
        }
        return `re-create ${name}`;
      case 3:
        cluster.patch(ref, { metadata: { annotations: { [annotations.refresh]: 'hard' } } });
        return `refresh ${name}`;
      case 4:
      case 5:
        if (app.operation === undefined) {
          cluster.patch(ref, { operation: { sync: { revision: `local-${++this.#count}` } } });
        }
        return `sync ${name}`;
      case 6: {
        const isSkipped = app.metadata.labels?.[skipSyncLabel] === 'true';
        cluster.patch(ref, { metadata: { labels: { [skipSyncLabel]: isSkipped ? null : 'true' } } });
        // Whether it was asked before or after is open.
        this.#operations.delete(`${site.name}/${name}`);
        this.#refreshes.delete(`${site.name}/${name}`);
        return `${isSkipped ? 'take up' : 'leave out'} ${name}`;
      }
      case 7:
        cluster.patch(ref, {
          metadata: {
            labels: { team: `t${++this.#count}` },
            annotations: { note: `n${this.#count}`, [annotations.sourceUid]: 'of-another-time' },
          },
        });
        return `label ${name}`;
      case 8:
        cluster.patch(ref, { metadata: { labels: null, annotations: null, finalizers: null } });
        this.#refreshes.delete(`${site.name}/${name}`);
        return `clear ${name}`;
      default:
        cluster.patch(ref, {
          spec: { source: { path: this.#scene.dice.chance(0.3) ? 'apps' : `local${++this.#count % 3}` } },
        });
        return `edit ${name}`;
    }
  }

  problems(site: Site): string[] {
    const isHindered = (name: string) =>
      this.#scene.lasting.some((one) => one.cluster === site.cluster && one.name === name);
    return [
      ...mirrorDifferences(this.#hub, site, isHindered),
      ...this.#ownProblems(site),
      ...this.#requestProblems(site),
    ];
  }

  failing(site: Site): number {
    return hiddenBy(this.#hub, site).length;
  }

  get #hub(): Collection<Application> {
    return this.#scene.hub.of('Application');
  }

  /** What is nobody's mirror is not written to. */
  #ownProblems(site: Site): string[] {
    return this.#hub.list().flatMap(({ metadata, spec }) => {
      const { path } = (spec.source ?? {}) as { path?: string };
      const isTouched = path !== 'own' && path?.startsWith('hub') !== true;
      return metadata.namespace === site.name && this.#own.has(metadata.uid ?? '') && isTouched
        ? [`${site.name}/${metadata.name}: somebody's own Application was written to`]
        : [];
    });
  }

  #sync(site: Site, ref: ObjectRef, mirror: Application): void {
    const revision = `hub-${++this.#count}`;
    this.#hub.patch(ref, { operation: { sync: { revision } } });
    const uids = this.#uids(site, mirror);
    if (isShown(uids, mirror)) {
      this.#operations.set(`${site.name}/${ref.name}`, { site, uids, revision });
    } else {
      // It took the place of the one before.
      this.#operations.delete(`${site.name}/${ref.name}`);
    }
  }

  #refresh(site: Site, ref: ObjectRef, mirror: Application): void {
    const uids = this.#uids(site, mirror);
    const before = site.argoCD.refreshed.get(uids[1] ?? '') ?? 0;
    this.#hub.patch(ref, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
    // One that is asked for while another is not answered is the same.
    if (isShown(uids, mirror) && mirror.metadata.annotations?.[annotations.refresh] === undefined) {
      this.#refreshes.set(`${site.name}/${ref.name}`, { site, uids, before });
    }
  }

  #uids(site: Site, mirror: Application): Asked['uids'] {
    const { name } = mirror.metadata;
    return [mirror.metadata.uid, site.cluster.of('Application').get({ namespace: agentNamespace, name })?.metadata.uid];
  }

  /**
   * What a user asked for on a mirror last must have been done on the agent's cluster, and an operation once only while no
   * program lost its memory. A mirror that was deleted since, or an Application that was, takes its requests with it.
   */
  #requestProblems(site: Site): string[] {
    if (site.isGo) {
      // It may lose what was asked when the API server refuses, and overwrites one operation by the next.
      return [];
    }
    const problems: string[] = [];
    // What is still to be seen on the mirror waits for the agent's API server, or the mirror says that it was refused.
    const waits = (id: string, isSeen: (mirror: Application) => boolean) => {
      const mirror = this.#hub.get({ namespace: site.name, name: id.slice(site.name.length + 1) });
      return this.#scene.lasting.length > 0 && mirror !== undefined && (isSeen(mirror) || hasError(mirror));
    };
    const stands = ({ uids, ...asked }: Asked, id: string) => {
      const mirror = this.#hub.get({ namespace: site.name, name: id.slice(site.name.length + 1) });
      const now = mirror === undefined ? [] : this.#uids(site, mirror);
      return (
        asked.site === site && mirror !== undefined && uids[0] === now[0] && uids[1] === now[1] && isShown(uids, mirror)
      );
    };
    for (const [revision, started] of site.argoCD.started) {
      // Nobody asked for it on the hub, so nobody there may repeat it.
      if (revision.startsWith('local-') && started > 1 && !this.#scene.restarted) {
        problems.push(`${site.name}: ${revision} was started ${started} times`);
      }
    }
    for (const [id, asked] of this.#operations) {
      const started = site.argoCD.started.get(asked.revision) ?? 0;
      const isUndone = started === 0 && !waits(id, ({ operation }) => revisionOf(operation) === asked.revision);
      if (stands(asked, id) && (isUndone || (started > 1 && !this.#scene.restarted))) {
        problems.push(`${id}: ${asked.revision} was started ${started} times`);
      }
    }
    for (const [id, asked] of this.#refreshes) {
      const isDone = (site.argoCD.refreshed.get(asked.uids[1] ?? '') ?? 0) > asked.before;
      const isAsked = ({ metadata }: Application) => metadata.annotations?.[annotations.refresh] !== undefined;
      if (stands(asked, id) && !isDone && !waits(id, isAsked)) {
        problems.push(`${id}: not refreshed`);
      }
    }
    return problems;
  }

  #anyName(): string {
    return this.#scene.dice.pick(names) ?? '';
  }

  #newApplication(ref: ObjectRef): Application {
    const { dice } = this.#scene;
    return {
      metadata: {
        ...ref,
        ...(dice.chance(0.5) ? { finalizers: [resourcesFinalizer] } : {}),
        ...(dice.chance(0.5) ? { labels: { team: 'a' } } : {}),
        ownerReferences: [{ kind: 'ApplicationSet', name: 'set' }],
      },
      spec: {
        ...(dice.chance(0.2) ? {} : { project: dice.chance(0.5) ? 'default' : 'team' }),
        source: { path: 'p0' },
        destination: { server: 'https://kubernetes.default.svc', namespace: ref.name },
      },
    };
  }
}

function isShown(uids: Asked['uids'], mirror: Application): boolean {
  return uids[1] !== undefined && mirror.metadata.annotations?.[annotations.sourceUid] === uids[1];
}
