/** How one executable is built from the Go module in the folder of that name beside this file. */
export interface Recipe extends ToolVersion {
  /** Other versions, which an environment variable chooses by their names. */
  readonly choice?: { readonly variable: string; readonly versions: Readonly<Record<string, ToolVersion>> };
}

/**
 * What is built, from where. A folder is named after the Kubernetes whose libraries its programs share: what one has compiled,
 * the next ones have. `kubernetes-1.34` has all other libraries in the versions of `kubernetes-1.36`, for the same reason.
 */
export interface ToolVersion {
  readonly folder: string;
  readonly goPackage: string;
  /** Whose version is that of the tool, where the package is one of this project's. */
  readonly module?: string;
  /** Variables that the linker sets: what the tool says its version is, where `go build` alone would not set it. */
  readonly variables?: Readonly<Record<string, string>>;
  /** About how long the build takes on 2 cores after those before it in the catalogue, in seconds. */
  readonly seconds: number;
}

const kubernetesVersion = (minor: string, patch: string) => ({
  'k8s.io/component-base/version.gitVersion': `v1.${minor}.${patch}`,
  'k8s.io/component-base/version.gitMajor': '1',
  'k8s.io/component-base/version.gitMinor': minor,
  'k8s.io/component-base/version.gitTreeState': 'clean',
});

/** A program of Kubernetes, of the newest version and of the oldest that charts/argocd-agent-addon admits. */
const kubernetes = (program: string, seconds: number) => {
  const goPackage = `k8s.io/kubernetes/cmd/${program}`;
  const oldest = { folder: 'kubernetes-1.30', goPackage, variables: kubernetesVersion('30', '14'), seconds };
  return {
    folder: 'kubernetes-1.36',
    goPackage,
    variables: kubernetesVersion('36', '3'),
    seconds,
    choice: { variable: 'KUBE_VERSION', versions: { '1.30': oldest } },
  };
};

/** Helm of a major version. */
const helm = (major: 3 | 4, version: string) => ({
  folder: 'kubernetes-1.36',
  goPackage: `helm.sh/helm/v${major}/cmd/helm`,
  variables: { [`helm.sh/helm/v${major}/internal/version.version`]: version },
  seconds: 30,
});

/** Every executable that the testbed builds, in the order of building. */
export const catalogue = {
  supervise: { folder: 'supervise', goPackage: '.', seconds: 10 },
  etcd: { folder: 'kubernetes-1.36', goPackage: 'go.etcd.io/etcd/server/v3', seconds: 30 },
  'kube-apiserver': kubernetes('kube-apiserver', 190),
  'kube-controller-manager': kubernetes('kube-controller-manager', 50),
  kubectl: { folder: 'kubernetes-1.36', goPackage: './kubectl', variables: kubernetesVersion('36', '3'), seconds: 20 },
  helm: {
    ...helm(4, 'v4.2.4'),
    choice: { variable: 'HELM_VERSION', versions: { '3': helm(3, 'v3.21.4') } },
  },
  // For tests that install with both.
  'helm-3': helm(3, 'v3.21.4'),
  kustomize: { folder: 'kubernetes-1.36', goPackage: 'sigs.k8s.io/kustomize/kustomize/v5', seconds: 5 },
  argocd: {
    folder: 'kubernetes-1.34',
    goPackage: 'github.com/argoproj/argo-cd/v3/cmd',
    variables: { 'github.com/argoproj/argo-cd/v3/common.version': '3.2.6' },
    seconds: 150,
  },
  'argocd-oracle': {
    folder: 'kubernetes-1.34',
    goPackage: './argocd-oracle',
    module: 'github.com/argoproj/argo-cd/v3',
    seconds: 30,
  },
  ocm: { folder: 'kubernetes-1.32', goPackage: './ocm', module: 'open-cluster-management.io/ocm', seconds: 130 },
  gopeer: { folder: 'gopeer', goPackage: '.', seconds: 10 },
  'redis-server': { folder: 'redis', goPackage: '.', seconds: 10 },
} as const satisfies Record<string, Recipe>;

/** The name of an executable that {@link toolPath} knows. */
export type ToolName = keyof typeof catalogue;

/** All of them, in the order of building. */
export const toolNames = Object.keys(catalogue) as readonly ToolName[];
