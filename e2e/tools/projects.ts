import { posix } from 'node:path';
import { publishedSha256 } from './checksums.ts';
import { mostProgramBytes } from './download.ts';
import { type GetOptions, type HttpAnswer, httpGet, networkReason } from './http.ts';
import { onMirror, type PinnedReleases } from './releases.ts';

/** The names of the programs that have releases. */
export type ReleasedName = keyof typeof projects;

type Pinned = NonNullable<PinnedReleases[ReleasedName]>;

/** Where a project publishes a program, and what it says of it. */
interface Project {
  readonly repository: string;
  url(version: string, architecture: string): string;
  /** In the archive. */
  member?(version: string, architecture: string): string;
  checksums(version: string, architecture: string): string;
}

const kubernetes = (program: string): Project => {
  const url = (version: string, architecture: string) =>
    `https://dl.k8s.io/release/${version}/bin/linux/${architecture}/${program}`;
  return {
    repository: 'kubernetes/kubernetes',
    url,
    checksums: (version, architecture) => `${url(version, architecture)}.sha256`,
  };
};

const github = (repository: string, version: string, file: string) =>
  `https://github.com/${repository}/releases/download/${version}/${file}`;

const helm = (version: string, architecture: string) =>
  `https://get.helm.sh/helm-${version}-linux-${architecture}.tar.gz`;

/** Those of whose releases checksums are pinned. */
export const projects = {
  etcd: {
    repository: 'etcd-io/etcd',
    url: (version, architecture) => github('etcd-io/etcd', version, `etcd-${version}-linux-${architecture}.tar.gz`),
    member: (version, architecture) => `etcd-${version}-linux-${architecture}/etcd`,
    checksums: (version) => github('etcd-io/etcd', version, 'SHA256SUMS'),
  },
  'kube-apiserver': kubernetes('kube-apiserver'),
  'kube-controller-manager': kubernetes('kube-controller-manager'),
  kubectl: kubernetes('kubectl'),
  helm: {
    repository: 'helm/helm',
    url: helm,
    member: (_version, architecture) => `linux-${architecture}/helm`,
    checksums: (version, architecture) => `${helm(version, architecture)}.sha256sum`,
  },
  argocd: {
    repository: 'argoproj/argo-cd',
    url: (version, architecture) => github('argoproj/argo-cd', version, `argocd-linux-${architecture}`),
    checksums: (version) => github('argoproj/argo-cd', version, 'cli_checksums.txt'),
  },
} as const satisfies Record<string, Project>;

/** What a project publishes of a version of a program, asked now. @throws Error that names what could not be read */
export async function publishedRelease(
  name: ReleasedName,
  version: string,
  mirror: string | undefined,
): Promise<Pinned> {
  const project: Project = projects[name];
  const file = async (architecture: string) => {
    const url = project.url(version, architecture);
    const published = project.checksums(version, architecture);
    const sha256 = await ask(published, mirror, {}, async (answer) =>
      publishedSha256(posix.basename(url), await textOf(answer)),
    );
    const bytes = await ask(url, mirror, { headers: { range: 'bytes=0-0' } }, sizeOf);
    const member = project.member?.(version, architecture);
    return { url, ...(member && { member }), sha256, published, bytes };
  };
  return { version, files: { 'linux-amd64': await file('amd64'), 'linux-arm64': await file('arm64') } };
}

/** The version that a project calls its latest. @throws Error when it does not say one */
export async function latestVersion(name: ReleasedName, mirror: string | undefined): Promise<string> {
  const url = `https://github.com/${projects[name].repository}/releases/latest`;
  return await ask(url, mirror, { follow: false }, async ({ headers }) => {
    const [, version] = /\/releases\/tag\/(v\d+\.\d+\.\d+)$/.exec(headers.location ?? '') ?? [];
    if (version === undefined) {
      throw new Error(`it leads to ${headers.location} and not to a version`);
    }
    return version;
  });
}

async function ask<T>(
  url: string,
  mirror: string | undefined,
  options: GetOptions,
  use: (answer: HttpAnswer) => Promise<T>,
): Promise<T> {
  try {
    return await httpGet(onMirror(url, mirror), options, use);
  } catch (error) {
    throw new Error(`${url}: ${networkReason(error)}`, { cause: error });
  }
}

/** No file of checksums is larger. */
const mostText = 1_000_000;

async function textOf({ status, body }: HttpAnswer): Promise<string> {
  if (status !== 200) {
    throw new Error(`it answered ${status}`);
  }
  let text = '';
  for await (const chunk of body) {
    text += chunk;
    if (text.length > mostText) {
      throw new Error(`it has more than ${mostText} characters`);
    }
  }
  return text;
}

async function sizeOf({ status, headers }: HttpAnswer): Promise<number> {
  const [, size] = /^bytes 0-0\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  const bytes = Number(size);
  if (status !== 206 || !(bytes > 0 && bytes <= mostProgramBytes)) {
    throw new Error(`asked for one byte, it answered ${status} and no size that a program may have`);
  }
  return bytes;
}
