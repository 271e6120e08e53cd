import { annotations } from '../argocd/index.ts';
import { isEqual } from '../base/index.ts';
import type { ConnectionRecord } from '../clusters/index.ts';
import { keyOf } from '../kube/index.ts';
import type { ShownApplication } from './shown-application.ts';

/** One station of a change: done, or what it waits for. */
export type Station = {
  readonly station: string;
  readonly isDone: boolean;
  /** RFC 3339; empty when it is not known. */
  readonly at: string;
  readonly text: string;
};

/** What is known of an Application's change. */
export interface Way {
  readonly hub: ShownApplication;
  readonly agent: string | undefined;
  /** Why the agent gets nothing of it: nothing is told of the cluster then. Default: it does. */
  readonly refusal?: string | undefined;
  readonly record: ConnectionRecord | undefined;
  /** On the cluster: undefined when it was not looked at, `missing` when it is not there. */
  readonly copy: ShownApplication | 'missing' | undefined;
}

/** The stations of the last change of an Application, in order. After the first that is not done, nothing is known to be. */
export function stationsOf({ hub, agent, refusal, record, copy }: Way): Station[] {
  const done = (station: string, text: string, at = ''): Station => ({ station, isDone: true, at: short(at), text });
  const waits = (station: string, text: string, at = ''): Station => ({ station, isDone: false, at: short(at), text });
  const { generation = 0, creationTimestamp = '' } = hub.metadata;
  const changed = changeOf(hub, 'f:spec') || creationTimestamp;
  const stations: Station[] = [done('hub', `${keyOf(hub)}, generation ${generation}`, changed)];
  if (agent === undefined) {
    const text =
      'no agent gets it: spec.destination.name, or its namespace, must be the name of an enrolled cluster, or spec.destination.server the URL of one alone';
    return [...stations, waits('agent', text)];
  }
  if (refusal !== undefined) {
    return [...stations, waits('agent', refusal)];
  }
  if (record === undefined) {
    stations.push(waits('agent', `${agent} has never connected: argocd-agentctl doctor ${agent}`));
  } else if (record.isConnected) {
    stations.push(done('agent', `${agent} is connected (${record.mode || 'mode unknown'})`, record.since));
  } else {
    stations.push(waits('agent', `${agent} is not connected: argocd-agentctl doctor ${agent}`, record.lastSeen));
  }
  if (copy === 'missing') {
    return [...stations, waits('copy', 'the cluster does not have it yet: look at the log of the agent')];
  }
  if (copy !== undefined) {
    stations.push(copyStation(hub, copy, done, waits));
  }
  return [...stations, ...argoStations(copy ?? hub, changed, done, waits), ...reported(hub, copy, done, waits)];
}

type Make = (station: string, text: string, at?: string) => Station;

/** What the agent copies; the destination and the project are rewritten for the cluster. */
function sourceOf({ spec = {} }: ShownApplication): unknown {
  const { destination: _, project: __, ...rest } = spec as Record<string, unknown>;
  return rest;
}

function copyStation(hub: ShownApplication, copy: ShownApplication, done: Make, waits: Make): Station {
  const at = changeOf(copy, 'f:spec') || copy.metadata.creationTimestamp;
  const place = `${keyOf(copy)}, generation ${copy.metadata.generation ?? 0}`;
  const uid = copy.metadata.annotations?.[annotations.sourceUid];
  const isOurs = uid === undefined || uid === (hub.metadata.annotations?.[annotations.sourceUid] ?? hub.metadata.uid);
  if (!isOurs) {
    return waits('copy', `${place} is the copy of another Application (${annotations.sourceUid} ${uid})`, at);
  }
  return isEqual(sourceOf(hub), sourceOf(copy))
    ? done('copy', place, at)
    : waits('copy', `${place} does not have the hub's specification yet`, at);
}

function argoStations(application: ShownApplication, changed: string, done: Make, waits: Make): Station[] {
  const { status = {} } = application;
  const { reconciledAt = '', sync, health, operationState: operation } = status;
  // Argo CD never takes back that a deletion failed, and may write it on an Application that has come again since.
  const isDeleted = application.metadata.deletionTimestamp !== undefined;
  const conditions = (status.conditions ?? []).filter(
    ({ type }) => /Error$/.test(type) && (isDeleted || type !== 'DeletionError'),
  );
  const errors = conditions.map(({ type, message }) => `${type}: ${message}`).join('; ');
  const isLooked = reconciledAt !== '' && Date.parse(reconciledAt) >= Date.parse(changed) - 1_000;
  const compared = isLooked
    ? done('compared', sync?.revision ? `at revision ${sync.revision}` : 'by Argo CD', reconciledAt)
    : waits('compared', errors || 'Argo CD has not compared it since the change', reconciledAt);
  const phase = operation?.phase ?? '';
  const isBad = ['Failed', 'Error'].includes(phase);
  const at = operation?.finishedAt ?? operation?.startedAt ?? '';
  const isSynced = sync?.status === 'Synced' && !isBad && phase !== 'Running';
  const reason = isBad || phase === 'Running' ? `${phase}: ${operation?.message ?? ''}` : sync?.status || 'Unknown';
  const hint = phase === '' && sync?.status === 'OutOfSync' ? '; without automated sync somebody must start it' : '';
  const synced = isSynced ? done('synced', phase || 'Synced', at) : waits('synced', `${reason}${hint}`, at);
  const since = health?.lastTransitionTime ?? '';
  const state = health?.status || 'Unknown';
  const healthy =
    state === 'Healthy'
      ? done('healthy', state, since)
      : waits('healthy', `${state}: ${health?.message ?? 'no message'}`, since);
  return [errors !== '' && isLooked ? waits('compared', errors, reconciledAt) : compared, synced, healthy];
}

function reported(
  hub: ShownApplication,
  copy: ShownApplication | 'missing' | undefined,
  done: Make,
  waits: Make,
): Station[] {
  if (copy === undefined || copy === 'missing') {
    return [];
  }
  const told = ({ status }: ShownApplication) => [
    status?.sync?.status,
    status?.health?.status,
    status?.operationState?.phase,
  ];
  const at = changeOf(hub, 'f:status');
  return [
    isEqual(told(hub), told(copy))
      ? done('reported', 'the hub shows what the cluster has', at)
      : waits('reported', `the hub shows ${told(hub).join(', ')}; the cluster has ${told(copy).join(', ')}`, at),
  ];
}

/** When a part of an object was last written, as the API server recorded it; empty when it did not. */
function changeOf(application: ShownApplication, part: string): string {
  const entries = (application.metadata.managedFields ?? []) as readonly { time?: string; fieldsV1?: object }[];
  return entries
    .flatMap(({ time, fieldsV1 }) => (time !== undefined && fieldsV1 !== undefined && part in fieldsV1 ? [time] : []))
    .sort()
    .reduce((_, time) => time, '');
}

const short = (time: string) => time.replace(/\.\d+Z$/, 'Z');
