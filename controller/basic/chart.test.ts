import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';

const charts = join(import.meta.dirname, '../../charts');
const how = 'bring it up to date with: vitest run --project unit controller/basic/chart.test.ts --update';

/** The Argo CD of the basic pull model: the one that the advanced model delivers, with Helm's placeholders replaced. */
function argoCd(): KubeObject[] {
  const templates = new Templates();
  const objects = templates.render('argocd', {
    namespace: 'argocd',
    argoCDImage: 'ARGOCD_IMAGE',
    redisImage: 'REDIS_IMAGE',
    redisPassword: '',
    serverSecretKey: '',
    pullPolicy: 'PULL_POLICY',
    repoServerHost: 'argocd-repo-server',
    repoServerPort: '8081',
    knownHosts: templates.text('argocd/ssh_known_hosts'),
    // Clusters of the basic model may have the StatefulSet already, and its podManagementPolicy cannot be changed.
    orderedPods: true,
  });
  // The chart has the Secrets that its values name, and the Namespace may belong to somebody else.
  return objects.filter(({ kind }) => kind !== 'Secret' && kind !== 'Namespace');
}

test('the chart’s Argo CD is the one of the templates', async () => {
  // Helm reads YAML 1.1, where a bare `no` is a boolean.
  const version = '1.1' as const;
  const print = (object: KubeObject) => stringify(object, { version, aliasDuplicateObjects: false, lineWidth: 0 });
  const text = argoCd().map(print).join('---\n');
  expect(parseAllDocuments(text, { version }).map((document) => document.toJS())).toEqual(argoCd());
  await expect(text, how).toMatchFileSnapshot(join(charts, 'argocd-pull-integration/files/argocd.yaml'));
});

test('the SSH hosts of the hub’s Argo CD are those of the clusters', async () => {
  const hosts = new Templates().text('argocd/ssh_known_hosts');
  await expect(hosts, how).toMatchFileSnapshot(
    join(charts, 'argocd-agent-addon/charts/argocd-hub/files/ssh_known_hosts'),
  );
});

test.each(['applications', 'appprojects'])('the chart’s CRD %s is the hub’s', async (name) => {
  const crd = readFileSync(join(charts, 'argocd-agent-addon/charts/argocd-hub/files/crds', `${name}.yaml`), 'utf8');
  await expect(crd, how).toMatchFileSnapshot(join(charts, `argocd-pull-integration/files/crds/${name}.yaml`));
});
