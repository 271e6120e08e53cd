import { mkdir, readdir, symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { needs } from '../e2e/needs/index.ts';
import { onPath } from '../e2e/tools/index.ts';

const all = [...needs.values()];

/** Programs that the README does not ask for: those that tests need, and those that a test could find by chance. */
export const hiddenPrograms: ReadonlySet<string> = new Set([
  ...all.flatMap(({ programs = [] }) => programs),
  ...['chromium-browser', 'google-chrome', 'redis-cli', 'docker', 'crun', 'skopeo', 'cosign', 'kind', 'clusteradm'],
  ...['kubectl', 'helm', 'kustomize', 'argocd', 'etcd', 'kube-apiserver', 'kube-controller-manager'],
  ...['cc', 'curl', 'gcc', 'gpg', 'openssl', 'python3', 'ssh', 'wget'],
]);

/** Environment variables that choose what tests run with, or where it is found. */
export const hiddenVariables: ReadonlySet<string> = new Set([
  ...all.flatMap(({ variables = [] }) => variables),
  ...['ARGOCD_BIN', 'ARGOCD_SOURCE', 'HELM_VERSION', 'KIND_LOGS', 'OCM_BIN', 'PULL_INTEGRATION_BIN'],
  ...['CONTAINER_HOST', 'DOCKER_HOST', 'KUBECONFIG', 'PAGE', 'THOROUGH'],
]);

/** What is to be hidden and can be seen: names of programs and of variables. */
export function visible(environment: NodeJS.ProcessEnv = process.env): string[] {
  return [
    ...[...hiddenPrograms].filter((program) => onPath(program, environment.PATH) !== undefined),
    ...[...hiddenVariables].filter((variable) => environment[variable] !== undefined),
  ];
}

/**
 * The environment of a machine with what the README asks for. A folder of `PATH` with a program that is to be hidden is
 * replaced by one with links to all others.
 * @param links an empty folder, for the links
 */
export async function bareEnvironment(environment: NodeJS.ProcessEnv, links: string): Promise<NodeJS.ProcessEnv> {
  const folders = new Set((environment.PATH ?? '').split(delimiter));
  const path: string[] = [];
  for (const folder of folders) {
    const names = await readdir(folder).catch((): string[] => []);
    if (!names.some((name) => hiddenPrograms.has(name))) {
      path.push(folder);
      continue;
    }
    const replacement = join(links, `${path.length}`);
    await mkdir(replacement);
    const kept = names.filter((name) => !hiddenPrograms.has(name));
    await Promise.all(kept.map((name) => symlink(join(folder, name), join(replacement, name))));
    path.push(replacement);
  }
  const kept = Object.entries(environment).filter(([name]) => !hiddenVariables.has(name));
  return { ...Object.fromEntries(kept), PATH: path.join(delimiter) };
}
