import { join, resolve } from 'node:path';
import { builtProject } from '../programs/index.ts';
import type { ImageName } from './image-name.ts';

/** Something that an image puts at a path: a file or folder of this machine, or a script written for the container. */
export type ImageFile = { from: string } | { script: string };

/** What a container runtime takes from an image. */
export interface Image {
  /** The name of a real image in podman's storage: its containers are real ones. The rest tells what is in it. */
  podman?: string;
  /** The image's `USER`. Left out: root. */
  user?: { name: string; uid: number; gid: number };
  entrypoint?: string[];
  command?: string[];
  workingDir?: string;
  env?: Record<string, string>;
  /** By path in the container. */
  files?: Record<string, ImageFile>;
  /** Folders that belong to `user`. */
  folders?: string[];
}

/** The container that an image is made for. */
export interface ImageUse {
  name: ImageName;
  /** The pod's loopback address. All pods share the machine's network, so programs must listen here and nowhere else. */
  address: string;
  /**
   * A free port of 127.0.0.1 that stands for the container's port: for a program that calls itself on localhost, or that can
   * only listen on all addresses. Probes and Services that ask for `containerPort` get there.
   */
  substitutePort(containerPort: number): Promise<number>;
}

/** How one image repository is run, whatever the tag. */
export type ImageRecipe = (use: ImageUse) => Image | Promise<Image>;

/** By repository with its registry, `quay.io/argoproj/argocd`. An image that is not in the table cannot be pulled. */
export type ImageTable = Readonly<Record<string, ImageRecipe>>;

/** Gives the path of a tool of the testbed, building it if need be. */
export type ToolPath = (name: 'argocd' | 'helm' | 'redis-server') => Promise<string>;

const nodeModules = resolve(import.meta.dirname, '../../node_modules');

/** The folder of what the testbed adds to an image. */
const testbed = '/opt/testbed';
/** Node in a container, made to listen on the pod's address where a program asks for all addresses. */
const nodeCommand = (address: string) =>
  `POD_BIND_ADDRESS=${address} exec /usr/local/bin/node --import ${testbed}/bind-address.mjs`;
const nodeFiles: Record<string, ImageFile> = {
  '/usr/local/bin/node': { from: process.execPath },
  [`${testbed}/bind-address.mjs`]: { from: join(import.meta.dirname, 'bind-address.mjs') },
};

const programs = ['argocd-agent', 'gitops-controller'];
/** The folder of this project's programs in its image. */
const app = '/opt/argocd-fleet';

/** This project's own image: `argocd-agent` and `gitops-controller` on the PATH, built as for the real one. */
export const projectImage: ImageRecipe = async (use) => programsIn(await builtProject(), 'js', use);

/**
 * The image of another state of this project, run from its sources in a folder that has a `node_modules`, where `packages`
 * are seen.
 */
export const sourceImage =
  (folder: string, packages: string = nodeModules): ImageRecipe =>
  (use) => {
    const image = programsIn(folder, 'ts', use);
    return { ...image, files: { ...image.files, [`${app}/node_modules`]: { from: packages } } };
  };

function programsIn(folder: string, extension: 'js' | 'ts', { address }: ImageUse): Image {
  const onPath = programs.map((program) => [
    `/usr/local/bin/${program}`,
    { script: `${nodeCommand(address)} ${app}/bin/${program}.${extension} "$@"` },
  ]);
  return {
    user: { name: 'nonroot', uid: 65532, gid: 65532 },
    entrypoint: ['argocd-agent'],
    workingDir: '/',
    env: { NODE_ENV: 'production' },
    files: { ...nodeFiles, [app]: { from: folder }, ...Object.fromEntries(onPath) },
  };
}

/** This project's image as it was built from the Dockerfile, in podman's storage. */
export function builtImage(podman: string): ImageRecipe {
  return () => ({ podman, user: { name: 'nonroot', uid: 999, gid: 999 }, env: { NODE_ENV: 'production' } });
}

/**
 * Argo CD: the multi-call binary under the names that it has in its image.
 *
 * Differences from the image: no gpg, so signature checks are off; programs are told to listen on the pod's address; the server
 * and the repo server, which call themselves on localhost, listen there, at a port of their own: the repo server asks nobody who
 * they are. The server's metrics listen where its API does, whatever `--metrics-address` says. The application controller has no
 * flag for the address of its metrics: they are on all addresses.
 */
export function argoCdImage(toolPath: ToolPath): ImageRecipe {
  return async ({ address, substitutePort }) => {
    const metrics = await substitutePort(8082);
    const api = await substitutePort(8080);
    const repository = await substitutePort(8081);
    const apiMetrics = await substitutePort(8083);
    const program = (name: string, flags: string) => ({
      script: `ARGOCD_BINARY_NAME=${name} exec /usr/local/bin/argocd "$@" ${flags}`,
    });
    return {
      user: { name: 'argocd', uid: 999, gid: 999 },
      workingDir: '/home/argocd',
      env: { HOME: '/home/argocd', USER: 'argocd', ARGOCD_GPG_ENABLED: 'false' },
      folders: ['/home/argocd', '/app/config/ssh', '/app/config/tls', '/app/config/gpg/source', '/app/config/gpg/keys'],
      files: {
        '/usr/local/bin/argocd': { from: await toolPath('argocd') },
        '/usr/local/bin/helm': { from: await toolPath('helm') },
        // From 3.5 on asked about every commit. Without a signature git says nothing, and ends with 1.
        '/usr/local/bin/git-verify-wrapper.sh': { script: 'git verify-commit "$1" 2>&1; [ $? -le 1 ]' },
        '/usr/local/bin/argocd-application-controller': program(
          'argocd-application-controller',
          `--metrics-port ${metrics}`,
        ),
        '/usr/local/bin/argocd-repo-server': program(
          'argocd-repo-server',
          `--address 127.0.0.1 --port ${repository} --metrics-address ${address}`,
        ),
        '/usr/local/bin/argocd-server': program(
          'argocd-server',
          `--address 127.0.0.1 --port ${api} --metrics-port ${apiMetrics}`,
        ),
        '/usr/local/bin/argocd-applicationset-controller': program(
          'argocd-applicationset-controller',
          `--metrics-addr ${address}:${api} --probe-addr ${address}:${repository} --webhook-addr ${address}:7000`,
        ),
      },
    };
  };
}

/** Redis. As in its image, arguments that are only flags go to `redis-server`. */
export function redisImage(toolPath: ToolPath): ImageRecipe {
  return async ({ address }) => ({
    entrypoint: ['docker-entrypoint.sh'],
    command: ['redis-server'],
    workingDir: '/data',
    folders: ['/data'],
    files: {
      '/opt/redis/redis-server': { from: await toolPath('redis-server') },
      '/usr/local/bin/redis-server': {
        script: `exec /opt/redis/redis-server "$@" --bind ${address} --protected-mode no`,
      },
      '/usr/local/bin/docker-entrypoint.sh': {
        script: 'case "$1" in -*) set -- redis-server "$@" ;; esac\nexec "$@"',
      },
    },
  });
}

/**
 * Any web server of a demonstration: answers every request with 200 on `port` (or `$PORT`), and stops at SIGTERM.
 */
export function webImage(port: number): ImageRecipe {
  return ({ address }) => ({
    entrypoint: ['web'],
    env: { PORT: String(port) },
    files: {
      ...nodeFiles,
      [`${testbed}/workload.mjs`]: { from: join(import.meta.dirname, 'workload.mjs') },
      '/usr/local/bin/web': { script: `${nodeCommand(address)} ${testbed}/workload.mjs "$@"` },
    },
  });
}

/** A container that does nothing until it is stopped. */
export const pauseImage: ImageRecipe = () => ({
  user: { name: 'pause', uid: 65535, gid: 65535 },
  entrypoint: ['/usr/local/bin/pause'],
  files: { '/usr/local/bin/pause': { script: 'exec sleep infinity' } },
});

/** A shell and the usual commands. */
export const shellImage: ImageRecipe = () => ({ command: ['sh'] });

/** The images that the testbed's clusters can pull. */
export function standardImages(toolPath: ToolPath): ImageTable {
  const redis = redisImage(toolPath);
  return {
    'quay.io/open-cluster-management/argocd-fleet': projectImage,
    'quay.io/argoproj/argocd': argoCdImage(toolPath),
    'docker.io/library/redis': redis,
    'public.ecr.aws/docker/library/redis': redis,
    'docker.io/library/nginx': webImage(80),
    'docker.io/library/busybox': shellImage,
    'registry.k8s.io/pause': pauseImage,
    'registry.k8s.io/e2e-test-images/agnhost': webImage(8080),
  };
}
