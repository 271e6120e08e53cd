import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import { moduleFolder } from '../tools/index.ts';

const ocmApi = { folder: 'ocm-api', module: 'open-cluster-management.io/api' };

const publishers = {
  argocd: {
    folder: 'kubernetes-1.34',
    module: 'github.com/argoproj/argo-cd/v3',
    files: ['application', 'applicationset', 'appproject'].map((kind) => `manifests/crds/${kind}-crd.yaml`),
  },
  'argocd-operator': {
    folder: 'argocd-operator',
    module: 'github.com/argoproj-labs/argocd-operator',
    files: ['config/crd/bases/argoproj.io_argocds.yaml'],
  },
  'argo-rollouts': {
    folder: 'argo-rollouts',
    module: 'github.com/argoproj/argo-rollouts',
    files: ['manifests/crds/rollout-crd.yaml'],
  },
  'gateway-api': {
    folder: 'gateway-api',
    module: 'sigs.k8s.io/gateway-api',
    files: ['gatewayclasses', 'gateways', 'tlsroutes'].map(
      (plural) => `config/crd/standard/gateway.networking.k8s.io_${plural}.yaml`,
    ),
  },
  'prometheus-operator': {
    folder: 'prometheus-operator',
    module: 'github.com/prometheus-operator/prometheus-operator',
    files: ['podmonitors', 'prometheusrules', 'servicemonitors'].map(
      (plural) => `example/prometheus-operator-crd/monitoring.coreos.com_${plural}.yaml`,
    ),
  },
  'ocm-hub': {
    ...ocmApi,
    files: [
      'addon/v1beta1/0000_00_addon.open-cluster-management.io_clustermanagementaddons.crd.yaml',
      'addon/v1beta1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml',
      'addon/v1beta1/0000_02_addon.open-cluster-management.io_addondeploymentconfigs.crd.yaml',
      'addon/v1alpha1/0000_03_addon.open-cluster-management.io_addontemplates.crd.yaml',
      'cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml',
      'cluster/v1beta2/0000_00_clusters.open-cluster-management.io_managedclustersets.crd.yaml',
      'cluster/v1beta2/0000_01_clusters.open-cluster-management.io_managedclustersetbindings.crd.yaml',
      'cluster/v1beta1/0000_02_clusters.open-cluster-management.io_placements.crd.yaml',
      'cluster/v1beta1/0000_03_clusters.open-cluster-management.io_placementdecisions.crd.yaml',
      'cluster/v1alpha1/0000_05_clusters.open-cluster-management.io_addonplacementscores.crd.yaml',
      'work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml',
    ],
  },
  'ocm-managed': {
    ...ocmApi,
    files: [
      'cluster/v1alpha1/0000_02_clusters.open-cluster-management.io_clusterclaims.crd.yaml',
      'work/v1/0000_01_work.open-cluster-management.io_appliedmanifestworks.crd.yaml',
    ],
  },
};

/** Whose CRDs {@link publishedCrds} knows. */
export type CrdPublisher = keyof typeof publishers;

/**
 * CRDs as their projects publish them, with complete schemas, from the Go modules that e2e/tools requires. Go downloads a
 * module on its first use.
 * @throws ToolError when Go is missing or the module cannot be downloaded.
 */
export async function publishedCrds(publisher: CrdPublisher): Promise<CustomResourceDefinition[]> {
  const { folder, module, files } = publishers[publisher];
  const root = publisher === 'argocd' ? await argoCdSource() : await moduleFolder(folder, module);
  const texts = await Promise.all(files.map((file) => readFile(join(root, file), 'utf8')));
  return texts.map((text) => parse(text) as CustomResourceDefinition);
}

/**
 * The folder of Argo CD's source: the one that `ARGOCD_SOURCE` names, or the Go module that e2e/tools requires.
 * @throws ToolError as {@link publishedCrds} does.
 */
export async function argoCdSource(): Promise<string> {
  const { folder, module } = publishers.argocd;
  return process.env.ARGOCD_SOURCE || (await moduleFolder(folder, module));
}
