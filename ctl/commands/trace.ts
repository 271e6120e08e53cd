import { annotations } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { type ConnectionRecord, connectionRecord, connectionSelector } from '../../lib/clusters/index.ts';
import { Informer, leases, secrets } from '../../lib/kube/index.ts';
import { boolFlag, ExitError, FatalError, InterruptedError, printable } from '../../lib/ops/index.ts';
import { type ShownApplication, type Station, shownApplications, stationsOf } from '../../lib/way/index.ts';
import { asFatal } from '../authority.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { agentOf, hubAgents } from '../fleet/fleet.ts';
import { inFormat, outputFlag, textTable } from '../output.ts';
import { ago } from './status.ts';

/** `trace`: where the last change of an Application is. */
export const traceCommand = ctlCommand({
  name: 'trace',
  summary: 'Where the last change of an Application is on its way, and what it waits for',
  description:
    'APPLICATION is [NAMESPACE/]NAME on the hub. With --agent-context its copy on the cluster is looked at, too.\nExit code 0 when it has arrived, 1 while it waits, 130 when --follow is interrupted before.',
  arguments: ['APPLICATION'],
  flags: {
    output: outputFlag(),
    follow: boolFlag({ usage: 'go on until it has arrived', short: 'f' }),
  },
  run: async ({ output, follow }, ctl) => {
    const [given = ''] = ctl.args;
    const key = await keyOfApplication(ctl, given);
    let last = '';
    const show = async (): Promise<boolean> => {
      const stations = await look(ctl, key);
      const text = shownWay(stations, output, new Date());
      const stamp = JSON.stringify(stations);
      if (stamp !== last) {
        ctl.print(`${last === '' ? '' : '\n'}${text}`);
        last = stamp;
      }
      return stations.every(({ isDone }) => isDone);
    };
    if (await show()) {
      return;
    }
    if (!follow) {
      throw new ExitError(1);
    }
    await followUntil(ctl, key, show);
  },
});

type Key = { readonly namespace: string; readonly name: string };

/** @throws FatalError when there is none, or more than one */
async function keyOfApplication(ctl: Ctl, given: string): Promise<Key> {
  const slash = given.indexOf('/');
  if (slash > 0) {
    return { namespace: given.slice(0, slash), name: given.slice(slash + 1) };
  }
  const { client } = ctl.principal();
  const fieldSelector = `metadata.name=${given}`;
  const found = await client
    .list(shownApplications, { fieldSelector, signal: ctl.signal })
    .catch(asFatal('Applications cannot be read'));
  const [first, second] = found;
  if (first === undefined) {
    throw new FatalError(`there is no Application ${given} on the hub`);
  }
  if (second !== undefined) {
    const list = found.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(', ');
    throw new FatalError(`there is more than one Application ${given}: name one of ${list}`);
  }
  return { namespace: first.metadata.namespace ?? '', name: given };
}

/** Looks once, at both sides. */
async function look(ctl: Ctl, key: Key): Promise<Station[]> {
  const { client, namespace } = ctl.principal();
  const { signal } = ctl;
  const labelSelector = `${wellKnown.secretTypeLabel}=cluster`;
  const [hub, clusters, records] = await Promise.all([
    client.get(shownApplications, key, signal),
    client.list(secrets, { namespace, labelSelector, signal }),
    client.list(leases, { namespace, labelSelector: connectionSelector, signal }),
  ]).catch(asFatal('the hub cannot be read'));
  if (hub === undefined) {
    throw new FatalError(`there is no Application ${key.namespace}/${key.name} on the hub`);
  }
  const agent = agentOf(hub, hubAgents(clusters));
  const record = records.map(connectionRecord).find((one): one is ConnectionRecord => one?.agent === agent);
  return stationsOf({ hub, agent, record, copy: await copyOf(ctl, key, hub.metadata.uid) });
}

/**
 * The copy: in the agent's namespace, or in the same one with destination-based mapping. When there is one of another Application in
 * either, the one that is made from this counts.
 */
export async function copyOf(
  ctl: Pick<Ctl, 'targets' | 'agent' | 'signal'>,
  { namespace, name }: Key,
  sourceUid: string | undefined,
): Promise<ShownApplication | 'missing' | undefined> {
  if (ctl.targets.agent.context === '') {
    return undefined;
  }
  const side = ctl.agent();
  const places = [...new Set([side.namespace, namespace])];
  const found = await Promise.all(
    places.map((place) => side.client.get(shownApplications, { namespace: place, name }, ctl.signal)),
  ).catch(asFatal('the cluster cannot be read'));
  const copies = found.filter((one) => one !== undefined);
  return (
    copies.find((one) => one.metadata.annotations?.[annotations.sourceUid] === sourceUid) ?? copies[0] ?? 'missing'
  );
}

/** Looks again whenever something on the way has changed. */
async function followUntil(ctl: Ctl, key: Key, show: () => Promise<boolean>): Promise<void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([ctl.signal, stop.signal]);
  let wake = Promise.withResolvers<void>();
  const handler = { added: () => wake.resolve(), updated: () => wake.resolve(), deleted: () => wake.resolve() };
  const { client, namespace } = ctl.principal();
  const fieldSelector = `metadata.name=${key.name}`;
  const informers = [
    new Informer({ client, type: shownApplications, namespace: key.namespace, fieldSelector }),
    new Informer({ client, type: leases, namespace, labelSelector: connectionSelector }),
    ...(ctl.targets.agent.context === ''
      ? []
      : [new Informer({ client: ctl.agent().client, type: shownApplications, fieldSelector })]),
  ];
  signal.addEventListener('abort', () => wake.resolve(), { once: true });
  for (const informer of informers) {
    informer.subscribe(handler);
    void informer.run(signal).catch(() => undefined);
  }
  try {
    for (;;) {
      await wake.promise;
      wake = Promise.withResolvers<void>();
      const hasArrived = await show().catch((error: unknown) => {
        throw signal.aborted ? new InterruptedError('it has not arrived yet', { cause: error }) : error;
      });
      if (hasArrived) {
        return;
      }
    }
  } finally {
    stop.abort();
  }
}

/** Stations in a format. The times between them are those of the machines that wrote them. */
export function shownWay(stations: readonly Station[], output: string, now: Date): string {
  const waiting = stations.find(({ isDone }) => !isDone);
  const document = { arrived: waiting === undefined, waitsAt: waiting?.station ?? '', stations };
  return inFormat(document, output, () => wayText(stations, waiting, now));
}

function wayText(stations: readonly Station[], waiting: Station | undefined, now: Date): string {
  const [start] = stations;
  const rows = stations.map(({ station, isDone, at, text }) => [
    isDone ? '✓' : '…',
    station,
    at || '-',
    at === '' || !start?.at ? '-' : `+${Math.max(0, (Date.parse(at) - Date.parse(start.at)) / 1_000)}s`,
    text,
  ]);
  const end =
    waiting === undefined
      ? 'It has arrived.'
      : `It waits at ${waiting.station}: ${printable(waiting.text)} (${ago(start?.at ?? '', now)})`;
  return `${textTable([['', 'STATION', 'TIME', 'AFTER', ''], ...rows])}\n${end}\n`;
}
