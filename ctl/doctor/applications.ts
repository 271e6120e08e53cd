import { type Mapping, skipSyncLabel } from '../../lib/argocd/index.ts';
import { type LabelTest, labelSelector } from '../../lib/base/index.ts';
import { connectionRecord } from '../../lib/clusters/index.ts';
import { isForbidden, isNotFound, type KubeObject } from '../../lib/kube/index.ts';
import { type ShownApplication, shownApplications } from '../../lib/way/index.ts';
import type { Side } from '../ctl-command.ts';
import { agentOf, hubAgents } from '../fleet/fleet.ts';
import type { Facts } from './facts.ts';
import { paramsOf } from './hub-checks.ts';

const patienceMs = 1_000;
/** What was written later may still be on its way. */
const settledMs = 10_000;

/** How a hub maps Applications to agents, as its ConfigMap says. */
export function mappingOf(hub: Facts): Mapping {
  return paramsOf(hub)['principal.destination-based-mapping'] === 'true' ? 'destination' : 'namespace';
}

/** What the principal synchronises, by labels. A selector that cannot be read selects everything: no principal starts with it. */
export function selectorOf(hub: Facts): LabelTest {
  try {
    return labelSelector(paramsOf(hub)['principal.label-selector'] ?? '');
  } catch {
    return () => true;
  }
}

/** The mode of an agent, as it says itself or as the hub knows it; empty when neither does. */
export function modeOfAgent(hub: Facts, facts: Facts, agent: string): string {
  const record = hub.leases.map(connectionRecord).find((one) => one?.agent === agent);
  return paramsOf(facts)['agent.mode'] ?? record?.mode ?? '';
}

/** Whether nobody has written an object for a while, by the clock of its API server. */
export function isSettled({ now, skewMs = 0 }: Facts, { metadata }: KubeObject): boolean {
  const entries = (metadata.managedFields ?? []) as readonly { time?: string }[];
  const times = [metadata.creationTimestamp, ...entries.map(({ time }) => time)];
  const last = Math.max(...times.map((time) => Date.parse(time ?? '') || 0));
  return now.getTime() + skewMs - last > settledMs;
}

/** The Applications of a hub that go to an agent, or that mirror its own. */
export function applicationsOf(hub: Facts, agent: string): ShownApplication[] {
  const isByNamespace = mappingOf(hub) === 'namespace';
  const agents = hubAgents(hub.secrets);
  const selects = selectorOf(hub);
  return hub.applications
    .filter(({ metadata }) => metadata.labels?.[skipSyncLabel] !== 'true' && selects(metadata.labels ?? {}))
    .filter((application) =>
      isByNamespace ? application.metadata.namespace === agent : agentOf(application, agents) === agent,
    );
}

/**
 * Adds the Applications of both sides of an agent. Of a hub that has many, as many as come in time; of a cluster all, or it
 * is unknown what it has.
 */
export async function withApplications(
  { hub, agent, cluster }: { readonly hub: Facts; readonly agent: Facts; readonly cluster: string },
  sides: { readonly hub: Side; readonly agent: Side },
  signal: AbortSignal,
): Promise<{ hub: Facts; agent: Facts }> {
  const isByNamespace = mappingOf(hub) === 'namespace';
  const [ofHub, ofCluster] = await Promise.all([
    readApplications(hub, sides.hub, isByNamespace ? cluster : undefined, signal),
    readApplications(agent, sides.agent, isByNamespace ? agent.namespace : undefined, signal),
  ]);
  return {
    hub: withUnknown(hub, ofHub, ofHub.why === 'silent' ? undefined : ofHub.why),
    agent: withUnknown(agent, ofCluster, ofCluster.why),
  };
}

interface Read {
  readonly applications: readonly ShownApplication[];
  /** Why some are missing; undefined when none is. */
  readonly why: 'refused' | 'silent' | undefined;
}

function withUnknown(facts: Facts, { applications }: Read, why: Read['why']): Facts {
  const unknown = why === undefined ? facts.unknown : new Map([...facts.unknown, [shownApplications.plural, why]]);
  return { ...facts, applications, unknown };
}

async function readApplications(
  facts: Facts,
  { client }: Side,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<Read> {
  const applications: ShownApplication[] = [];
  if (facts.unreachable !== undefined) {
    return { applications, why: undefined };
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
  let next: string | undefined;
  try {
    do {
      const page = await client.listPage(shownApplications, {
        ...(namespace === undefined ? {} : { namespace }),
        limit: 500,
        continue: next,
        signal: limit,
      });
      applications.push(...page.items);
      next = page.continue;
    } while (next !== undefined);
    return { applications, why: undefined };
  } catch (error) {
    signal.throwIfAborted();
    if (isForbidden(error)) {
      return { applications: [], why: 'refused' };
    }
    if (isNotFound(error)) {
      return { applications: [], why: undefined };
    }
    if (limit.aborted) {
      return { applications, why: 'silent' };
    }
    throw error;
  }
}
