import { sleep } from '../../lib/base/index.ts';
import { boolFlag } from '../../lib/ops/index.ts';
import { ctlCommand } from '../ctl-command.ts';
import { type ClusterState, type FleetState, fleetOf } from '../fleet/fleet.ts';
import { followFleet, readFleet } from '../fleet/hub-objects.ts';
import { inFormat, outputFlag, textTable } from '../output.ts';

/** Changes that come faster are shown together, in ms. */
const gatherMs = 200;
const day = 24 * 3_600_000;

/** `status`: the fleet at a glance. */
export const statusCommand = ctlCommand({
  name: 'status',
  summary: 'The fleet at a glance: connections, Applications, certificates',
  description:
    'Shows each cluster that the hub knows: whether its agent is connected and since when, mode, Applications that are out of\nsync or not healthy, the end of its certificate, and what is wrong first. With --watch the view follows the hub.',
  flags: {
    output: outputFlag('wide'),
    watch: boolFlag({ usage: 'show it again whenever something changes', short: 'w' }),
  },
  run: async ({ output, watch }, ctl) => {
    if (!watch) {
      ctl.print(shownFleet(fleetOf(await readFleet(ctl.principal(), ctl.signal)), output, new Date()));
      return;
    }
    let wake = Promise.withResolvers<void>();
    const current = await followFleet(ctl.principal(), () => wake.resolve(), ctl.signal);
    const isTerminal = process.stdout.isTTY === true;
    let last = '';
    const aborted = new Promise<void>((resolve) =>
      ctl.signal.addEventListener('abort', () => resolve(), { once: true }),
    );
    while (!ctl.signal.aborted) {
      const text = shownFleet(fleetOf(current()), output, new Date());
      if (text !== last) {
        if (isTerminal) {
          ctl.clear();
        }
        ctl.print(isTerminal || last === '' ? text : `\n${text}`);
        last = text;
      }
      await Promise.race([wake.promise, aborted]);
      await sleep(gatherMs, ctl.signal).catch(() => undefined);
      wake = Promise.withResolvers<void>();
    }
  },
});

/** A fleet in a format. */
export function shownFleet(fleet: FleetState, output: string, now: Date): string {
  return inFormat(fleet, output, () => fleetText(fleet, now, output === 'wide'));
}

function fleetText(fleet: FleetState, now: Date, isWide: boolean): string {
  const head = ['CLUSTER', 'STATE', 'MODE', 'SINCE', 'APPS', 'OUT OF SYNC', 'UNHEALTHY', 'FAILING', 'CERTIFICATE'];
  const rows = fleet.clusters.map((cluster) => row(cluster, now, isWide));
  const table = textTable([[...head, ...(isWide ? ['VERSION', 'PRINCIPAL', 'SERVER'] : []), 'PROBLEM'], ...rows]);
  const connected = fleet.clusters.filter(({ state }) => state === 'connected').length;
  const certificates = fleet.certificates.map(({ secret, expires }) => `${secret} ${until(expires, now)}`).join(', ');
  const broken = fleet.fleets.filter(({ problem }) => problem !== '');
  return [
    fleet.clusters.length === 0
      ? 'No clusters: no cluster Secret in the namespace of the principal (-n) names an agent.\n'
      : `${table}\n${connected} of ${fleet.clusters.length} connected\n`,
    certificates === '' ? '' : `Certificates end: ${certificates}\n`,
    broken.length === 0 ? '' : `\n${textTable(broken.map(({ name, problem }) => [`GitOpsCluster ${name}:`, problem]))}`,
  ].join('');
}

function row(cluster: ClusterState, now: Date, isWide: boolean): string[] {
  const { certificateExpires, problem } = cluster;
  const number = (count: number) => String(count);
  const wide = [cluster.version || '-', cluster.holder || '-', cluster.server];
  return [
    cluster.cluster,
    cluster.state,
    cluster.mode || '-',
    ago(cluster.since, now),
    number(cluster.applications),
    number(cluster.outOfSync),
    number(cluster.unhealthy),
    number(cluster.failing),
    until(certificateExpires, now),
    ...(isWide ? wide : []),
    problem.length > 100 && !isWide ? `${problem.slice(0, 97)}...` : problem || '-',
  ];
}

/** How long a moment is ago: `5m`, `3h`, `12d`. */
export function ago(time: string, now: Date): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? '-' : shortDuration(Math.max(0, now.getTime() - at));
}

function until(time: string, now: Date): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) {
    return '-';
  }
  return at < now.getTime() ? 'expired' : `in ${shortDuration(at - now.getTime())}`;
}

function shortDuration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) {
    return `${seconds}s`;
  }
  if (seconds < 3_600) {
    return `${Math.floor(seconds / 60)}m`;
  }
  return ms < 2 * day ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(ms / day)}d`;
}
