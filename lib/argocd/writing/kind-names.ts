import type { ObjectRef } from '../../sync/index.ts';
import { placeOf } from '../place.ts';

/** How texts and log lines name objects of one kind. */
export interface KindNames {
  readonly noun: string;
  readonly logFields: (ref: ObjectRef) => object;
}

/** The names of Applications. */
export const applicationNames: KindNames = {
  noun: 'Application',
  logFields: (ref) => ({ application: placeOf(ref) }),
};

/** The names of an autonomous agent's Applications on the hub: the namespace names the agent. */
export const mirrorNames: KindNames = {
  noun: 'Application',
  logFields: (ref) => ({ agent: ref.namespace, application: placeOf(ref) }),
};
