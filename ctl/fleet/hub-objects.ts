import { wellKnown } from '../../lib/base/index.ts';
import { connectionSelector } from '../../lib/clusters/index.ts';
import {
  Informer,
  isForbidden,
  isNotFound,
  type KubeObject,
  leases,
  type ResourceType,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import { shownApplications } from '../../lib/way/index.ts';
import { asFatal, names } from '../authority.ts';
import type { Side } from '../ctl-command.ts';
import { addOnKind, fleetKind } from '../kinds.ts';
import type { FleetObjects } from './fleet.ts';

/** Name of the add-on of this project. */
const addOnName = 'argocd-agent-addon';

interface Source<T extends KubeObject> {
  readonly type: ResourceType<T>;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** A hub may not have the kind, or its user not the right to see it. */
  readonly isOptional?: boolean;
}

/** Keeps of a Secret only what is shown: one without an agent, and no certificate of the hub, holds nothing to show. */
function slim(secret: Secret): Secret {
  const isShown =
    secret.metadata.labels?.[wellKnown.agentNameLabel] !== undefined ||
    [names.authority, names.principalTls, names.resourceProxyTls].some((name) => name === secret.metadata.name);
  return isShown ? secret : { ...secret, data: {} };
}

const sourcesOf = (namespace: string) => ({
  secrets: { type: secrets, namespace } as Source<Secret>,
  leases: { type: leases, namespace, labelSelector: connectionSelector },
  applications: { type: shownApplications, isOptional: true } as Source<FleetObjects['applications'][number]>,
  fleets: { type: fleetKind, isOptional: true } as Source<FleetObjects['fleets'][number]>,
  addOns: {
    type: addOnKind,
    fieldSelector: `metadata.name=${addOnName}`,
    isOptional: true,
  } as Source<FleetObjects['addOns'][number]>,
});

/** Reads the objects of a hub once. @throws FatalError when it refuses */
export async function readFleet({ client, namespace }: Side, signal: AbortSignal): Promise<FleetObjects> {
  const read = async <T extends KubeObject>({ type, isOptional, ...selection }: Source<T>): Promise<T[]> => {
    try {
      return await client.list(type, { ...selection, signal });
    } catch (error) {
      if (isOptional && (isNotFound(error) || isForbidden(error))) {
        return [];
      }
      return asFatal(`${type.plural} cannot be read`)(error);
    }
  };
  const from = sourcesOf(namespace);
  const [found, records, applications, fleets, addOns] = await Promise.all([
    read(from.secrets),
    read(from.leases),
    read(from.applications),
    read(from.fleets),
    read(from.addOns),
  ]);
  return { secrets: found, leases: records, applications, fleets, addOns };
}

/** Follows the objects of a hub; `changed` is called after each change, once the first lists are complete. */
export async function followFleet(
  { client, namespace }: Side,
  changed: () => void,
  signal: AbortSignal,
): Promise<() => FleetObjects> {
  let isComplete = false;
  const report = () => isComplete && changed();
  const start = async <T extends KubeObject>(source: Source<T>, transform?: (object: T) => T): Promise<() => T[]> => {
    const { type, isOptional, ...selection } = source;
    const isServed = isOptional !== true || (await client.resolve(`${type.group}/${type.version}`, type.kind, signal));
    if (!isServed) {
      return () => [];
    }
    const informer = new Informer<T>({ client, type, ...selection, ...(transform === undefined ? {} : { transform }) });
    informer.subscribe({ added: report, updated: report, deleted: report });
    // It ends with the signal alone.
    void informer.run(signal).catch(() => undefined);
    await informer.settled(signal);
    return () => [...informer.list()];
  };
  const from = sourcesOf(namespace);
  const [found, records, applications, fleets, addOns] = await Promise.all([
    start(from.secrets, slim),
    start(from.leases),
    start(from.applications),
    start(from.fleets),
    start(from.addOns),
  ]);
  isComplete = true;
  return () => ({
    secrets: found(),
    leases: records(),
    applications: applications(),
    fleets: fleets(),
    addOns: addOns(),
  });
}
