/** How one executable is built from the Go module in the folder of that name beside this file. */
export interface Recipe extends ToolVersion {
  /** Other versions, which an environment variable chooses by their names. */
  readonly choice?: { readonly variable: string; readonly versions: Readonly<Record<string, ToolVersion>> };
}

/** What is built, from where. */
export interface ToolVersion {
  readonly folder: string;
  readonly goPackage: string;
  /** Variables that the linker sets: what the tool says its version is, where `go build` alone would not set it. */
  readonly variables?: Readonly<Record<string, string>>;
  /** About how long the build takes on 2 cores with empty caches, in seconds. */
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
    folder: 'kubernetes',
    goPackage,
    variables: kubernetesVersion('36', '3'),
    seconds,
    choice: { variable: 'KUBE_VERSION', versions: { '1.30': oldest } },
  };
};

/** Every executable that the testbed builds, in the order of building. */
export const catalogue = {
  supervise: { folder: 'supervise', goPackage: '.', seconds: 10 },
  etcd: { folder: 'etcd', goPackage: 'go.etcd.io/etcd/server/v3', seconds: 30 },
  'kube-apiserver': kubernetes('kube-apiserver', 190),
  'kube-controller-manager': kubernetes('kube-controller-manager', 50),
  kubectl: { folder: 'kubectl', goPackage: '.', variables: kubernetesVersion('36', '3'), seconds: 60 },
  helm: {
    folder: 'helm',
    goPackage: 'helm.sh/helm/v4/cmd/helm',
    variables: { 'helm.sh/helm/v4/internal/version.version': 'v4.3.1' },
    seconds: 100,
    choice: {
      variable: 'HELM_VERSION',
      versions: {
        '3': {
          folder: 'helm-3',
          goPackage: 'helm.sh/helm/v3/cmd/helm',
          variables: { 'helm.sh/helm/v3/internal/version.version': 'v3.22.0' },
          seconds: 100,
        },
      },
    },
  },
  // In kubectl's module, which has it as a library: most of it is compiled already.
  kustomize: { folder: 'kubectl', goPackage: 'sigs.k8s.io/kustomize/kustomize/v5', seconds: 5 },
  argocd: {
    folder: 'argocd',
    goPackage: 'github.com/argoproj/argo-cd/v3/cmd',
    variables: { 'github.com/argoproj/argo-cd/v3/common.version': '3.2.6' },
    seconds: 210,
  },
  ocm: { folder: 'ocm', goPackage: '.', seconds: 165 },
  gopeer: { folder: 'gopeer', goPackage: '.', seconds: 20 },
  'redis-server': { folder: 'redis', goPackage: '.', seconds: 10 },
} as const satisfies Record<string, Recipe>;

/** The name of an executable that {@link toolPath} knows. */
export type ToolName = keyof typeof catalogue;

/** All of them, in the order of building. */
export const toolNames = Object.keys(catalogue) as readonly ToolName[];
