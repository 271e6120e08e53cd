import { type Application, agentErrorCondition, annotations, skipSyncLabel } from '../lib/argocd/index.ts';
import { wellKnown } from '../lib/base/index.ts';
import type { Collection } from './cluster.ts';
import { canonical } from './json.ts';
import { clusterOf } from './layout.ts';
import type { Site } from './world.ts';

/** A finalizer that users put on mirrors. */
export const held = 'example.com/hold';

/**
 * What is not as it should be between an autonomous agent's cluster and its mirrors on the hub, once all is quiet.
 * @param isHindered whether the cluster's API server does not let requests come to the Applications of this name
 */
export function mirrorDifferences(
  hub: Collection<Application>,
  site: Site,
  isHindered: (name: string) => boolean,
): string[] {
  const problems: string[] = [];
  const foreign = hiddenBy(hub, site);
  const wanted = new Set<string>();
  for (const app of site.cluster.of('Application').list()) {
    const { name, labels } = app.metadata;
    const mirror = hub.get({ namespace: site.name, name });
    if (app.metadata.deletionTimestamp !== undefined) {
      problems.push(`${site.name}/${name}: still being deleted on the agent's cluster`);
    }
    if (labels?.[skipSyncLabel] === 'true' || foreign.includes(name)) {
      continue;
    }
    wanted.add(name);
    problems.push(
      ...(mirror === undefined
        ? [`${site.name}/${name}: has no mirror`]
        : compare(app, mirror, site.name, isHindered(name))),
    );
  }
  for (const object of hub.list()) {
    const { namespace, name } = object.metadata;
    if (namespace === site.name && !wanted.has(name)) {
      if (isMarked(object)) {
        problems.push(`${namespace}/${name}: phantom on the hub`);
      }
    }
  }
  return problems;
}

/** Names of the site's Applications that cannot be mirrored because somebody has an Application of that name on the hub. */
export function hiddenBy(hub: Collection<Application>, site: Site): string[] {
  return site.cluster
    .of('Application')
    .list()
    .filter(({ metadata: { name, labels } }) => {
      const object = hub.get({ namespace: site.name, name });
      return labels?.[skipSyncLabel] !== 'true' && object !== undefined && !isMarked(object);
    })
    .map(({ metadata }) => metadata.name);
}

function isMarked({ metadata }: Application): boolean {
  const marks = metadata.annotations;
  return marks?.[annotations.sourceUid] !== undefined || marks?.[annotations.lastUpdated] !== undefined;
}

/** @param keepsRequests what is asked for on the mirror stays there */
function compare(app: Application, mirror: Application, agent: string, keepsRequests: boolean): string[] {
  const name = `${agent}/${app.metadata.name}`;
  const differ = (what: string, source: unknown, hub: unknown) =>
    canonical(source) === canonical(hub)
      ? []
      : [`${name}: ${what}: agent ${JSON.stringify(source)}, hub ${JSON.stringify(hub)}`];
  const { project = 'default', destination } = app.spec;
  const {
    [annotations.sourceUid]: uid,
    [annotations.lastUpdated]: time,
    [wellKnown.skipReconcileAnnotation]: skipsHub,
    [annotations.reportedOperation]: reported,
    [annotations.takenOver]: _found,
    ...all
  } = mirror.metadata.annotations ?? {};
  const { [annotations.sourceUid]: _, ...own } = app.metadata.annotations ?? {};
  const { [annotations.refresh]: __, ...unasked } = all;
  const others = keepsRequests ? unasked : all;
  return [
    ...differ(
      'spec',
      {
        ...app.spec,
        project: `${agent}-${project}`,
        destination: { name: clusterOf(agent), namespace: destination?.namespace },
      },
      mirror.spec,
    ),
    ...differ('labels', app.metadata.labels ?? {}, mirror.metadata.labels ?? {}),
    // Changes of these are corrected with the agent's next report.
    ...differ('finalizers', [], strangers(mirror.metadata.finalizers, [...(app.metadata.finalizers ?? []), held])),
    ...differ('annotations', own, others),
    ...differ('identity', app.metadata.uid, uid),
    ...differ('time stamp', true, time !== undefined),
    ...differ('skipped by the hub', 'true', skipsHub),
    ...differ('reported operation', app.status?.operationState?.startedAt ?? '', reported),
    ...differ('owners', undefined, mirror.metadata.ownerReferences),
    ...differ('deletion', undefined, mirror.metadata.deletionTimestamp),
    ...differ(
      'status',
      withChildrenIn(app.status, agent),
      keepsRequests ? withoutErrors(mirror.status) : (mirror.status ?? {}),
    ),
    ...(keepsRequests ? [] : differ('operation', app.operation, mirror.operation)),
  ];
}

function strangers(finalizers: readonly string[] | undefined, known: readonly string[]): string[] {
  return (finalizers ?? []).filter((one) => !known.includes(one));
}

/** Without what says that a request cannot be done. */
function withoutErrors(status: Application['status']): unknown {
  const { conditions = [], ...others } = status ?? {};
  const own = conditions.filter(({ type }) => type !== agentErrorCondition);
  return own.length > 0 ? { ...others, conditions: own } : others;
}

function withChildrenIn(status: Application['status'], namespace: string): unknown {
  if (!Array.isArray(status?.resources)) {
    return status ?? {};
  }
  const resources = status.resources.map((one: { kind: string }) =>
    one.kind === 'Application' ? { ...one, namespace } : one,
  );
  return { ...status, resources };
}
