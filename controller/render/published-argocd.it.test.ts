import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { addonChart, argoCdSource, helm, withoutHub } from '../../e2e/hub/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import { input } from '../testing/render-input.ts';
import { renderWorks } from './works.ts';

// Users set Argo CD's parameters in its ConfigMaps. Whatever its own manifests read from there, ours read as well.

const source = await argoCdSource();
const objectsOf = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as KubeObject | null);
const published = objectsOf(await readFile(join(source, 'manifests/install.yaml'), 'utf8'));
const delivered = renderWorks(new Templates(), { ...input, mode: 'autonomous' }).flatMap(
  ({ spec }) => spec.workload.manifests,
);
const enabled = 'hubArgoCD.applicationController.enabled=true';
const onHub = objectsOf(
  await helm(['template', 'hub', addonChart, '--namespace', 'addon', ...withoutHub(addonChart), '--set', enabled]),
);

/** What this test reads of a workload. */
interface Workload extends KubeObject {
  readonly spec: { readonly template: { readonly spec: Pod } };
}

interface Pod {
  readonly containers: readonly {
    readonly name: string;
    readonly env?: readonly {
      readonly name: string;
      readonly valueFrom?: { readonly configMapKeyRef?: { readonly name: string; readonly key: string } };
    }[];
  }[];
  readonly volumes?: readonly { readonly secret?: { readonly secretName: string } }[];
}

/** The parameters of a workload: variable, ConfigMap and key; and its volumes. */
function parametersOf(objects: readonly (KubeObject | null)[], name: string): string[] {
  const workload = objects.find(
    (object) => /^(Deployment|StatefulSet)$/.test(object?.kind ?? '') && object?.metadata.name === name,
  ) as Workload | undefined;
  const pod = workload?.spec.template.spec;
  const env = pod?.containers.find((container) => container.name === name)?.env ?? [];
  const fromMaps = env.flatMap(({ name: variable, valueFrom }) =>
    valueFrom?.configMapKeyRef
      ? [`${variable}=${valueFrom.configMapKeyRef.name}/${valueFrom.configMapKeyRef.key}`]
      : [],
  );
  expect(fromMaps.length, `${name} has parameters`).toBeGreaterThan(0);
  const secrets = (pod?.volumes ?? []).flatMap(({ secret }) => (secret ? [`secret ${secret.secretName}`] : []));
  return [...fromMaps, ...secrets];
}

const clusters = { where: 'a managed cluster', objects: delivered };
const hub = { where: 'the hub', objects: onHub };
it.each([
  { ...clusters, name: 'argocd-application-controller' },
  { ...clusters, name: 'argocd-repo-server' },
  { ...clusters, name: 'argocd-applicationset-controller' },
  { ...hub, name: 'argocd-repo-server' },
  { ...hub, name: 'argocd-applicationset-controller' },
])('$where: $name reads every parameter that the published one reads', ({ objects, name }) => {
  expect(parametersOf(objects, name)).toEqual(expect.arrayContaining(parametersOf(published, name)));
});

it('the hub: argocd-application-controller reads every parameter but the namespaces of Applications, which are its own', () => {
  const name = 'argocd-application-controller';
  const wanted = parametersOf(published, name).filter((one) => !one.endsWith('/application.namespaces'));
  expect(parametersOf(onHub, name)).toEqual(expect.arrayContaining(wanted));
});

it('the hub: argocd-server reads every parameter but the address of Redis, which is the principal', () => {
  const wanted = parametersOf(published, 'argocd-server').filter((one) => !/redis\.server$|dex/.test(one));
  expect(parametersOf(onHub, 'argocd-server')).toEqual(expect.arrayContaining(wanted));
});
