import type { ServerResponse } from 'node:http';
import type { FleetLens } from './model/fleet-lens.ts';
import type { FleetCluster } from './model/fleet-model.ts';
import { ViewerStream } from './viewer-stream.ts';

/** Clusters in one message. */
const batch = 100;
/** A cluster's page has a list, which is made anew for each change. */
const clusterPageMs = 1_000;

/** What a viewer of the whole fleet is shown. */
export interface FleetContent {
  /** Of one cluster. */
  entry(cluster: FleetCluster): unknown;
  /** Of all together: each is sent when it has become another text. */
  readonly regions: Readonly<Record<string, () => string>>;
}

/**
 * Tells a viewer of the whole fleet what changes after a revision, or first everything. Undefined: too much has happened, load
 * it anew.
 */
export function streamOverview(options: {
  response: ServerResponse;
  lens: FleetLens;
  content: FleetContent;
  since: number | 'nothing';
  signal: AbortSignal;
}): ViewerStream | undefined {
  const { response, lens, content, since, signal } = options;
  const dirty =
    since === 'nothing'
      ? new Set([...lens.clusters()].map(({ facts }) => facts.agent))
      : lens.model.changedSince(since);
  if (dirty === undefined) {
    return undefined;
  }
  // At most one entry per cluster, however slow the viewer is.
  const sent = new Map<string, string>();
  let isDue = true;
  const next = () => {
    if (!isDue && dirty.size === 0) {
      return undefined;
    }
    isDue = false;
    const entries: Record<string, unknown> = {};
    for (const agent of [...dirty].slice(0, batch)) {
      dirty.delete(agent);
      const cluster = lens.get(agent);
      entries[agent] = cluster === undefined ? null : content.entry(cluster);
    }
    const regions: Record<string, string> = {};
    for (const [name, region] of Object.entries(content.regions)) {
      const now = region();
      if (sent.get(name) !== now) {
        sent.set(name, now);
        regions[name] = now;
      }
    }
    return { revision: lens.model.revision, body: { entries, regions } };
  };
  const stream = new ViewerStream(response, next, signal);
  const unsubscribe = lens.subscribe({
    changed: (agents) => {
      for (const agent of agents) {
        dirty.add(agent);
      }
      stream.offer();
    },
    sampled: () => {
      isDue = true;
      stream.offer();
    },
    closed: () => stream.end(true),
  });
  stream.onClosed(unsubscribe);
  stream.offer();
  return stream;
}

/** Tells a viewer of a cluster's page what changes, at most once a second. */
export function streamCluster(options: {
  response: ServerResponse;
  lens: FleetLens;
  agent: string;
  /** The regions as they are now; undefined when the cluster is gone. */
  regions: () => Readonly<Record<string, string>> | undefined;
  signal: AbortSignal;
}): ViewerStream {
  const { response, lens, agent, signal } = options;
  const sent = new Map<string, string>();
  let isDue = true;
  let timer: NodeJS.Timeout | undefined;
  const next = () => {
    if (!isDue) {
      return undefined;
    }
    isDue = false;
    const now = options.regions();
    const regions: Record<string, string> = {};
    for (const [name, region] of Object.entries(now ?? {})) {
      if (sent.get(name) !== region) {
        sent.set(name, region);
        regions[name] = region;
      }
    }
    return { revision: lens.model.revision, body: { entries: {}, regions, gone: now === undefined } };
  };
  const stream = new ViewerStream(response, next, signal);
  const due = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      isDue = true;
      stream.offer();
    }, clusterPageMs);
  };
  const unsubscribe = lens.subscribe({
    changed: (agents) => agents.has(agent) && due(),
    sampled: due,
    rightsChanged: due,
    closed: () => stream.end(true),
  });
  stream.onClosed(() => {
    clearTimeout(timer);
    unsubscribe();
  });
  stream.offer();
  return stream;
}
