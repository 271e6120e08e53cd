import type { ShellLine } from './shell.ts';

/**
 * Commands of the pages that no test runs, by the start of the line, each with the reason and, where there is one, the test
 * that does the same. Programs, commands, flags and files of these are checked all the same (checks.ts).
 */
export const notRun: readonly (readonly [start: string, reason: string])[] = [
  [
    'npm run',
    'a script of this project, which would start tests, benches or builds inside a test; package.json has it',
  ],
  ['npm test', 'likewise'],
  ['PRINCIPAL_CMD=', 'likewise'],
  ['npx vitest', 'likewise; project and file exist'],
  ['node setup.mjs vitest', 'likewise'],
  ['PREVIOUS=', 'likewise'],
  ['OCM_BIN=', 'likewise'],
  ['docker', 'needs a container engine and a registry; e2e/image runs the image'],
  ['skopeo', 'needs a registry'],
  ['cosign', 'needs a release, and for its own identity the internet'],
  ['velero', 'needs Velero and an object store; e2e/ecosystem/velero.slow.it.test.ts'],
  ['sha256sum', 'needs a release; release/release.test.ts'],
  ['argocd-agentctl conformance', 'needs agents or a principal at a public name; ctl/tests/conformance.it.test.ts'],
  ['argocd-agentctl ha', 'reaches the principals in their pods, which needs nodes; ctl/tests/ha.test.ts'],
  ['argocd-agent migrate', 'needs an Argo CD on both clusters and a connected agent; e2e/hub/migrate.slow.it.test.ts'],
  ['gitops-controller adopt', 'needs a hub of argocd-pull-integration; controller/tests/adopt.slow.it.test.ts'],
  ['gitops-controller release', 'likewise'],
  ['helm install OLD', "needs argocd-pull-integration's own chart; controller/tests/adopt.slow.it.test.ts"],
  ['kubectl -n argocd port-forward', 'needs a node'],
  ['curl', 'needs the port-forward'],
  ['kubectl --namespace argocd port-forward', 'needs a node'],
  ['kubectl --kubeconfig cluster1.kubeconfig', 'needs principal, agent and node; e2e/live/kubectl.slow.it.test.ts'],
  ['kubectl -n open-cluster-management-agent-addon logs', 'needs a node'],
  ['kubectl -n argocd logs', 'needs a node'],
];

/** Why a line is not run; undefined for one that is. */
export function reasonNotToRun({ text }: Pick<ShellLine, 'text'>): string | undefined {
  return notRun.find(([start]) => text.startsWith(start))?.[1];
}
