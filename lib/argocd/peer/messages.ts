import type { Application, AppProject } from '../application.ts';
import type { GpgKeys } from '../gpg-keys.ts';
import type { RepositorySecret } from '../repository.ts';

interface Addressed {
  /** CloudEvents extension `resourceid`. */
  readonly resourceId: string;
  /** CloudEvents extension `eventid`. */
  readonly eventId: string;
}

/** A message about an Application. The type is the last part of the wire's event type. */
export interface ApplicationMessage extends Addressed {
  readonly target: 'application';
  readonly type: 'create' | 'spec-update' | 'delete' | 'set-operation' | 'terminate-operation' | 'status-update';
  /** Extension `principaluid`; only from a principal. */
  readonly principalUid?: string;
  readonly object: Application;
}

/** A message about an AppProject, from its source. */
export interface AppProjectMessage extends Addressed {
  readonly target: 'appproject';
  readonly type: 'create' | 'spec-update' | 'delete';
  readonly principalUid?: string;
  readonly object: AppProject;
}

/** A message about the Secret of a repository or of credentials; principal to managed agent only. */
export interface RepositoryMessage extends Addressed {
  readonly target: 'repository';
  readonly type: 'create' | 'spec-update' | 'delete';
  readonly principalUid?: string;
  readonly object: RepositorySecret;
}

/** A message about the ConfigMap of GnuPG keys; principal to managed agent only. */
export interface GpgKeyMessage extends Addressed {
  readonly target: 'gpgkey';
  readonly type: 'create' | 'spec-update' | 'delete';
  readonly principalUid?: string;
  readonly object: GpgKeys;
}

/** The agent could not or may not do what the principal asked for an Application. */
export interface ErrorMessage extends Addressed {
  readonly target: 'application';
  readonly type: 'error';
  readonly error: { readonly resourceName: string; readonly resourceNamespace: string; readonly message: string };
}

/** An event of the peer about an object that cannot be read. It was refused. */
export interface UnreadableMessage {
  readonly target: 'application' | 'appproject' | 'repository' | 'gpgkey';
  readonly name: string;
  readonly namespace: string;
  /** Names the field, if one is the reason. */
  readonly reason: string;
}

/** The kinds that resync messages name. */
export type ResyncKind = 'Application' | 'AppProject' | 'Repository' | 'GPGKey';

/** Reports the sender's copy, so that the source sends a difference. `checksum` is base64, null when there is no copy. */
export interface RequestUpdate {
  readonly kind: ResyncKind;
  readonly name: string;
  readonly namespace?: string;
  /** UID of the source's object, empty when the sender has no copy. */
  readonly uid: string;
  readonly checksum: string | null;
  /** Extension that Go peers ignore: digest of all that the principal writes ({@link managedCopyDigest}). */
  readonly digest?: string;
  /** Extension that Go peers ignore: the principal that the copy was made for. */
  readonly principalUid?: string;
}

/** A message of the resync family, its payload in the wire's JSON form. */
export type ResyncMessage =
  | (Addressed & {
      readonly target: 'resourceResync';
      readonly type: 'request-update';
      readonly payload: RequestUpdate;
    })
  | (Addressed & {
      readonly target: 'resourceResync';
      readonly type: 'request-synced-resource-list';
      readonly payload: {
        readonly checksum: string | null;
        /** Extension that Go peers ignore: all copies of the sender were reported and acknowledged before. */
        readonly complete?: boolean;
      };
    })
  | (Addressed & {
      readonly target: 'resourceResync';
      readonly type: 'response-synced-resource';
      readonly payload: {
        readonly name: string;
        readonly namespace?: string;
        readonly uid: string;
        readonly kind: ResyncKind;
      };
    })
  | (Addressed & {
      readonly target: 'resourceResync';
      readonly type: 'request-resource-resync';
      readonly payload: Readonly<Record<string, never>>;
    });

/** All messages between principal and agent that synchronise objects. */
export type Message =
  | ApplicationMessage
  | AppProjectMessage
  | RepositoryMessage
  | GpgKeyMessage
  | ErrorMessage
  | ResyncMessage;

/** A connected peer, as the sync classes see it. The program maps messages to wire events. */
export interface PeerConnection {
  /** Sends a message that the peer acknowledges. False: nothing was taken, `writable()` will be called later. */
  send(message: Message): boolean;
  /**
   * Acknowledges a processed message of the peer. `refusal`: why this side cannot do what it says, for the peer's people; it is
   * kept here and tried again. Never refused: acknowledgements are small and bounded by the inbox.
   */
  acknowledge(message: Message, refusal?: string): void;
}
