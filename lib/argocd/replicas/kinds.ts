import type { AppProject } from '../application.ts';
import { specChecksum } from '../checksums.ts';
import type { GpgKeys } from '../gpg-keys.ts';
import type { Metadata } from '../object.ts';
import type { ObjectMessage } from '../peer/kind-sync.ts';
import type { ResyncKind } from '../peer/messages.ts';
import type { RepositorySecret } from '../repository.ts';

/** An object of a kind that goes one way. */
export interface ReplicaObject {
  readonly metadata: Metadata;
}

/** A kind of object whose copies are made what their source is, and never speak back. */
export interface ReplicaKind<T extends ReplicaObject> {
  readonly kind: ResyncKind;
  readonly target: Exclude<ObjectMessage['target'], 'application'>;
  /** How log lines name one, and the field that has its name. */
  readonly noun: string;
  readonly field: string;
  /** What makes an object of this kind for an API server. */
  readonly type: { readonly apiVersion: string; readonly kind: string };
  /** What a copy takes over besides metadata, whole fields. */
  content(object: T): Readonly<Record<string, unknown>>;
  /** What a copy gets when it is made, and never again: an API server does not let it be changed. */
  initial(object: T): Readonly<Record<string, unknown>>;
  /** Whether copies get the source's finalizers. */
  readonly finalizers: boolean;
  /** The checksum that resync messages carry for an object. */
  checksum(object: T): string;
}

/** AppProjects. Argo CD, which is on both sides, answers their finalizer. */
export const appProjectKind: ReplicaKind<AppProject> = {
  kind: 'AppProject',
  target: 'appproject',
  noun: 'AppProject',
  field: 'appProject',
  type: { apiVersion: 'argoproj.io/v1alpha1', kind: 'AppProject' },
  content: ({ spec }) => ({ spec }),
  initial: () => ({}),
  finalizers: true,
  checksum: ({ spec }) => specChecksum(spec),
};

/**
 * Secrets of repositories. Finalizers stay where they are, unlike in argocd-agent: whoever set one on the hub does not take
 * it away on another cluster, where it would keep the copy for ever.
 */
export const repositoryKind: ReplicaKind<RepositorySecret> = {
  kind: 'Repository',
  target: 'repository',
  noun: 'repository Secret',
  field: 'repository',
  type: { apiVersion: 'v1', kind: 'Secret' },
  content: ({ data = {} }) => ({ data }),
  initial: ({ type }) => (type === undefined ? {} : { type }),
  finalizers: false,
  checksum: ({ data = {} }) => specChecksum(data),
};

/** The ConfigMap of GnuPG keys. Finalizers as with {@link repositoryKind}. */
export const gpgKeysKind: ReplicaKind<GpgKeys> = {
  kind: 'GPGKey',
  target: 'gpgkey',
  noun: 'GPG keys',
  field: 'gpgKey',
  type: { apiVersion: 'v1', kind: 'ConfigMap' },
  content: ({ data = {} }) => ({ data }),
  initial: () => ({}),
  finalizers: false,
  checksum: ({ data = {} }) => specChecksum(data),
};
