import type { MergePatch } from '../../base/index.ts';
import type { AppProject } from '../application.ts';
import { specChecksum } from '../checksums.ts';
import type { GpgKeys } from '../gpg-keys.ts';
import { annotations } from '../names.ts';
import type { Metadata } from '../object.ts';
import type { ObjectMessage } from '../peer/kind-sync.ts';
import type { ResyncKind } from '../peer/messages.ts';
import type { RepositorySecret } from '../repository.ts';

/** An object of a kind that is copied in one direction only. */
export interface ReplicaObject {
  readonly metadata: Metadata;
}

/** A kind of object whose copies follow their source and report nothing back. */
export interface ReplicaKind<T extends ReplicaObject> {
  readonly kind: ResyncKind;
  readonly target: Exclude<ObjectMessage['target'], 'application'>;
  /** The noun in log messages, and the log field with an object's name. */
  readonly noun: string;
  readonly field: string;
  /** What identifies the kind for an API server. */
  readonly type: { readonly apiVersion: string; readonly kind: string };
  /** The top-level fields, besides metadata, that a copy takes from its source. */
  content(object: T): Readonly<Record<string, unknown>>;
  /** Fields that a copy gets at its creation only: an API server lets nobody change them. */
  initial(object: T): Readonly<Record<string, unknown>>;
  /** Whether copies get the source's finalizers. */
  readonly finalizers: boolean;
  /** What a copy was before it became one, as text; undefined: it was not there. */
  record(object: T): string | undefined;
  /** The patch that keeps such a record on a copy; undefined: that removes it. */
  recorded(text: string | undefined): MergePatch;
  /** The checksum that resync messages carry for an object. */
  checksum(object: T): string;
}

/** The record in an annotation. */
const inAnnotation = {
  record: ({ metadata }: ReplicaObject) => metadata.annotations?.[annotations.takenOver],
  recorded: (text: string | undefined): MergePatch => ({
    metadata: { annotations: { [annotations.takenOver]: text ?? null } },
  }),
};

/** The key in the data of a Secret under which its record is: it has credentials, and Argo CD reads no such key. */
const recordKey = 'argocd-agent-taken-over';

/** AppProjects. Argo CD runs on both sides and removes their finalizer. */
export const appProjectKind: ReplicaKind<AppProject> = {
  kind: 'AppProject',
  target: 'appproject',
  noun: 'AppProject',
  field: 'appProject',
  type: { apiVersion: 'argoproj.io/v1alpha1', kind: 'AppProject' },
  content: ({ spec }) => ({ spec }),
  initial: () => ({}),
  finalizers: true,
  ...inAnnotation,
  checksum: ({ spec }) => specChecksum(spec),
};

/**
 * Secrets of repositories. Their finalizers are not copied, unlike in argocd-agent: the controller that sets one on the hub
 * does not remove it on a managed cluster, so the copy could never be deleted.
 */
export const repositoryKind: ReplicaKind<RepositorySecret> = {
  kind: 'Repository',
  target: 'repository',
  noun: 'repository Secret',
  field: 'repository',
  type: { apiVersion: 'v1', kind: 'Secret' },
  content: ({ data }) => ({ data: withoutRecord(data) }),
  initial: ({ type }) => (type === undefined ? {} : { type }),
  finalizers: false,
  record: ({ data }) => {
    const text = data?.[recordKey];
    return text === undefined ? undefined : Buffer.from(text, 'base64').toString('utf8');
  },
  recorded: (text) => ({
    data: { [recordKey]: text === undefined ? null : Buffer.from(text, 'utf8').toString('base64') },
  }),
  checksum: ({ data }) => specChecksum(withoutRecord(data)),
};

function withoutRecord(data: RepositorySecret['data'] = {}): Readonly<Record<string, string>> {
  const { [recordKey]: _, ...others } = data;
  return others;
}

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
  ...inAnnotation,
  checksum: ({ data = {} }) => specChecksum(data),
};
