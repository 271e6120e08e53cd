import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { Templates } from '../render/templates.ts';

const charts = join(import.meta.dirname, '../../charts');
const how = 'bring it up to date with: vitest run --project unit controller/basic/chart.test.ts --update';

/** The Argo CD that clusters of the basic pull model get: that of the agents' clusters, in words that Helm replaces. */
function argoCd(): string {
  const templates = new Templates();
  const objects = templates.render('argocd', {
    namespace: 'argocd',
    argoCDImage: 'ARGOCD_IMAGE',
    redisImage: 'REDIS_IMAGE',
    redisPassword: '',
    serverSecretKey: '',
    pullPolicy: 'PULL_POLICY',
    knownHosts: templates.text('argocd/ssh_known_hosts'),
  });
  // Secrets are made by Helm, and the Namespace may be anybody's.
  const mine = objects.filter(({ kind }) => kind !== 'Secret' && kind !== 'Namespace');
  const print = (object: KubeObject) => stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 });
  return mine.map(print).join('---\n');
}

test('the chart’s Argo CD is the one of the templates', async () => {
  await expect(argoCd(), how).toMatchFileSnapshot(join(charts, 'argocd-pull-integration/files/argocd.yaml'));
});

test.each(['applications', 'appprojects'])('the chart’s CRD %s is the hub’s', async (name) => {
  const crd = readFileSync(join(charts, 'argocd-agent-addon/charts/argocd-hub/files/crds', `${name}.yaml`), 'utf8');
  await expect(crd, how).toMatchFileSnapshot(join(charts, `argocd-pull-integration/files/crds/${name}.yaml`));
});
