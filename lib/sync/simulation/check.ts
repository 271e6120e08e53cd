import { type Application, annotations, isEqual } from '../../argocd/index.ts';
import type { Cluster } from './cluster.ts';

/** What is not as it should be between the hub and one managed cluster, once all is quiet. */
export function differences(hub: Cluster, agent: string, managed: Cluster, principalUid: string): string[] {
  const problems: string[] = [];
  const wanted = new Map(
    hub
      .list()
      .filter(({ metadata }) => metadata.namespace === agent)
      .map((app) => [app.metadata.name, app]),
  );
  for (const [name, app] of wanted) {
    const copy = managed.get({ namespace: 'argocd', name });
    if (app.metadata.deletionTimestamp !== undefined) {
      problems.push(`${name}: still being deleted on the hub`);
    } else if (copy === undefined) {
      problems.push(`${name}: missing on the managed cluster`);
    } else {
      problems.push(...compare(name, app, copy, principalUid));
    }
  }
  for (const copy of managed.list()) {
    if (copy.metadata.annotations?.[annotations.sourceUid] !== undefined && !wanted.has(copy.metadata.name)) {
      problems.push(`${copy.metadata.name}: phantom on the managed cluster`);
    }
  }
  return problems;
}

function compare(name: string, app: Application, copy: Application, principalUid: string): string[] {
  const differ = (what: string, hub: unknown, managed: unknown) =>
    isEqual(hub, managed) ? [] : [`${name}: ${what}: hub ${JSON.stringify(hub)}, managed ${JSON.stringify(managed)}`];
  const { note, ...others } = copy.metadata.annotations ?? {};
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
    ...differ('refresh', app.metadata.annotations?.[annotations.refresh], undefined),
    ...differ('status', app.status ?? {}, copy.status ?? {}),
    ...differ('operation', app.operation, copy.operation),
  ];
}
