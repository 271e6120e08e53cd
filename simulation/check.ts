import { type Application, agentErrorCondition, annotations } from '../lib/argocd/index.ts';
import { type ObjectRef, refOf } from '../lib/sync/index.ts';
import type { Collection } from './cluster.ts';
import { canonical } from './json.ts';
import { agentNamespace, type Layout, principalNamespace } from './layout.ts';
import type { Site } from './world.ts';

/**
 * What is not as it should be between the hub and one managed cluster, once all is quiet. What cannot be in step is shown.
 * @param principalUid the principal's identity: what another one made, and the hub does not have, stays
 * @param isHindered whether the cluster's API server does not let the copies of this name be as they should
 * @param isLeaving whether another cluster has a copy of this that cannot leave: so the hub's object says
 */
export function differencesOf(
  hub: Collection<Application>,
  { name: agent, cluster }: Site,
  layout: Layout,
  principalUid: string,
  isHindered: (name: string) => boolean,
  isLeaving: (app: Application) => boolean,
): string[] {
  const managed = cluster.of('Application');
  const problems: string[] = [];
  const wanted = new Map(
    hub
      .list()
      .filter((app) => layout.agentOf(app) === agent)
      .map((app) => [placeOf(layout.toLocal(refOf(app))), app]),
  );
  for (const [name, app] of wanted) {
    const shown = isLeaving(app) ? withoutRemovals(app) : app;
    const copy = managed.get(layout.toLocal(refOf(app)));
    const differences = differencesOfOne(name, shown, copy, principalUid);
    if (!isHindered(app.metadata.name)) {
      problems.push(...differences);
    } else if (differences.length > 0 && !hasError(app) && !(isDeleting(app) && isDeleting(copy))) {
      problems.push(...differences.map((one) => `not shown: ${one}`));
    }
  }
  for (const copy of managed.list()) {
    const name = placeOf(refOf(copy));
    const { [annotations.sourceUid]: source, [annotations.principalUid]: madeBy = principalUid } =
      copy.metadata.annotations ?? {};
    const isCopy = source !== undefined && madeBy === principalUid;
    // There is nothing left to show it on.
    if (isCopy && !wanted.has(name) && !isHindered(copy.metadata.name)) {
      problems.push(`${name}: phantom on the managed cluster`);
    }
  }
  return problems;
}

function differencesOfOne(
  name: string,
  app: Application,
  copy: Application | undefined,
  principalUid: string,
): string[] {
  if (app.metadata.deletionTimestamp !== undefined) {
    return [`${name}: still being deleted on the hub`];
  }
  return copy === undefined ? [`${name}: missing on the managed cluster`] : compare(name, app, copy, principalUid);
}

/** It says so itself. */
function isDeleting(app: Application | undefined): boolean {
  return app?.metadata.deletionTimestamp !== undefined;
}

/** Without what the hub says of other clusters, from which it is still being removed. */
function withoutRemovals({ status, ...app }: Application): Application {
  const { conditions = [], ...others } = status ?? {};
  const left = conditions.filter(({ message }) => message?.includes('is removing what was deployed there') !== true);
  return { ...app, status: { ...others, ...(left.length > 0 && { conditions: left }) } };
}

/** Whether the hub's object says that its agent could not do what it should. */
export function hasError({ status }: Application): boolean {
  return status?.conditions?.some(({ type }) => type === agentErrorCondition) === true;
}

function compare(name: string, app: Application, copy: Application, principalUid: string): string[] {
  const differ = (what: string, hub: unknown, managed: unknown) =>
    canonical(hub) === canonical(managed)
      ? []
      : [`${name}: ${what}: hub ${JSON.stringify(hub)}, managed ${JSON.stringify(managed)}`];
  const {
    note,
    [annotations.namespaceRemapped]: mark,
    [annotations.notified]: _,
    [annotations.takenOver]: _found,
    ...others
  } = copy.metadata.annotations ?? {};
  const remapped = app.metadata.namespace === principalNamespace && copy.metadata.namespace === agentNamespace;
  return [
    ...differ(
      'spec',
      { ...app.spec, destination: { name: 'in-cluster', namespace: app.spec.destination?.namespace } },
      copy.spec,
    ),
    ...differ('labels', app.metadata.labels ?? {}, copy.metadata.labels ?? {}),
    ...differ('finalizers', app.metadata.finalizers ?? [], copy.metadata.finalizers ?? []),
    ...differ('annotation', app.metadata.annotations?.note, note),
    ...differ(
      'identity',
      { [annotations.sourceUid]: app.metadata.uid, [annotations.principalUid]: principalUid },
      others,
    ),
    // Whoever takes it away gets it back with the next change.
    ...(mark === undefined ? [] : differ('mark', remapped, mark === 'true')),
    ...differ('refresh', app.metadata.annotations?.[annotations.refresh], undefined),
    ...differ('hydrate', app.metadata.annotations?.[annotations.hydrate], undefined),
    ...differ('status', app.status ?? {}, copy.status ?? {}),
    ...differ('operation', app.operation, copy.operation),
    // Argo CD is through with all that it carries out; what else seems to run would do so for ever.
    ...differ('operation that never ends', undefined, copy.operation),
    ...differ('phase that never ends', false, isInProgress(copy.status?.operationState?.phase)),
  ];
}

function isInProgress(phase: string | undefined): boolean {
  return phase === 'Running' || phase === 'Terminating';
}

function placeOf({ namespace, name }: ObjectRef): string {
  return `${namespace}/${name}`;
}
