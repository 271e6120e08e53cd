import type { SimulatedCluster } from './cluster.ts';

/**
 * The hub has no Applications any more, and no program saw them go. Each of the functions brings one back, as a backup tool restores
 * it: without status, under another uid, unless somebody has made one of that name meanwhile. What was being deleted is in no backup.
 */
export function loseApplications(hub: SimulatedCluster): (() => void)[] {
  const applications = hub.of('Application');
  const lost = applications.list();
  const { objects } = hub.snapshot();
  hub.restore({ version: hub.version, objects: new Map(objects).set('Application', new Map()) });
  const backup = lost.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return backup.map(({ metadata, status: _, ...content }) => () => {
    const { uid: __, resourceVersion: ___, ...kept } = metadata;
    if (applications.get({ namespace: kept.namespace ?? '', name: kept.name }) === undefined) {
      applications.create({ ...content, metadata: kept });
    }
  });
}
