import {
  boolFlag,
  durationFlag,
  FatalError,
  type FlagValues,
  positive,
  printable,
  printYaml,
  stringFlag,
} from '../../lib/ops/index.ts';
import type { HAStatusResponse } from '../../proto/gen/haadminapi/haadmin.ts';
import { type Ctl, ctlCommand } from '../ctl-command.ts';
import { withAdmin } from '../ha/admin-client.ts';
import { jsonText } from '../output.ts';
import { confirmed } from '../prompt.ts';

const address = stringFlag({
  usage: 'host:port of the principal, instead of forwarding the port of its pod',
  short: 'a',
});
const tlsFlags = {
  'tls-cert': stringFlag({ usage: 'file with your client certificate; with --tls-key and --tls-ca. Empty: no TLS' }),
  'tls-key': stringFlag({ usage: 'file with its private key' }),
  'tls-ca': stringFlag({ usage: "file with the CA that the principal's certificate must come from" }),
};
const timeout = (seconds: number) =>
  durationFlag({ usage: 'longest wait', default: seconds * 1_000, short: 't', check: positive });

/** The commands about a pair of principals. */
export const haCommands = [
  ctlCommand({
    name: 'ha status',
    summary: 'Show the state of a pair of principals',
    flags: {
      address,
      output: stringFlag({ usage: 'format: text, yaml or json', default: 'text', short: 'o' }),
      ...tlsFlags,
      timeout: timeout(10),
    },
    run: async (flags, ctl) => {
      const status = await withAdmin(ctl, wayIn(flags), (admin) =>
        admin.status().catch(prefixed('failed to get HA status')),
      );
      ctl.print(shownStatus(status, flags.output, Date.now()));
    },
  }),
  ctlCommand({
    name: 'ha promote',
    summary: 'Make this principal the active one',
    description:
      'Refused while the other one is active, and when objects were changed on this hub that cannot be put back; --force does it all the same.',
    flags: {
      address,
      force: boolFlag({ usage: 'neither ask nor check', short: 'f' }),
      ...tlsFlags,
      timeout: timeout(30),
    },
    run: async (flags, ctl) => {
      if (
        !flags.force &&
        !(await mayProceed(ctl, 'promote the principal to ACTIVE', 'Connected agents may need to reconnect.'))
      ) {
        return;
      }
      const state = await withAdmin(ctl, wayIn(flags), (admin) =>
        admin.promote(flags.force).catch(prefixed('promote failed')),
      );
      ctl.print(`Promoted. State is now: ${printable(state)}\n`);
    },
  }),
  ctlCommand({
    name: 'ha demote',
    summary: 'Make this principal the replica',
    flags: { address, force: boolFlag({ usage: 'do not ask', short: 'f' }), ...tlsFlags, timeout: timeout(30) },
    run: async (flags, ctl) => {
      if (
        !flags.force &&
        !(await mayProceed(ctl, 'demote the principal to REPLICA', 'All connected agents will be disconnected.'))
      ) {
        return;
      }
      const state = await withAdmin(ctl, wayIn(flags), (admin) => admin.demote().catch(prefixed('demote failed')));
      ctl.print(`Demoted. State is now: ${printable(state)}\n`);
    },
  }),
];

function wayIn(flags: FlagValues<typeof tlsFlags> & { readonly address: string; readonly timeout: number }) {
  const files = { cert: flags['tls-cert'], key: flags['tls-key'], ca: flags['tls-ca'] };
  return { address: flags.address, files, timeoutMs: flags.timeout };
}

function prefixed(what: string): (cause: Error) => never {
  return (cause) => {
    throw new FatalError(`${what}: ${cause.message}`, { cause });
  };
}

async function mayProceed(ctl: Ctl, what: string, consequence: string): Promise<boolean> {
  ctl.print(`WARNING: This will ${what}.\n${consequence}\n`);
  const may = await confirmed(ctl, '\nProceed? [y/N]: ');
  if (!may) {
    ctl.print('Operation cancelled.\n');
  }
  return may;
}

/** A status in a format. @throws FatalError for other formats */
export function shownStatus(status: HAStatusResponse, format: string, now: number): string {
  const { state, preferredRole, peerAddress, peerReachable, peerState } = status;
  const { connectedReplicas, connectedAgents, problems } = status;
  const [at, sequence] = [Number(status.lastEventTimestamp), Number(status.lastSequenceNum)];
  if (format === 'json') {
    const fields: Record<string, string | number | boolean | string[]> = {
      state,
      preferred_role: preferredRole,
      peer_address: peerAddress,
      peer_reachable: peerReachable,
      peer_state: peerState,
      connected_replicas: connectedReplicas,
      last_event_timestamp: at,
      last_sequence_num: sequence,
      connected_agents: connectedAgents,
      ...(problems.length === 0 ? {} : { problems }),
    };
    const filled = Object.entries(fields).filter(([, value]) => value !== '' && value !== 0 && value !== false);
    return jsonText(Object.fromEntries(filled), 2);
  }
  if (format === 'yaml') {
    return printYaml({
      state,
      preferredrole: preferredRole,
      peeraddress: peerAddress,
      peerreachable: peerReachable,
      peerstate: peerState,
      connectedreplicas: connectedReplicas,
      lasteventtimestamp: at,
      lastsequencenum: sequence,
      connectedagents: connectedAgents,
      ...(problems.length === 0 ? {} : { problems }),
    });
  }
  if (format !== 'text') {
    throw new FatalError(`unknown output format: ${format}`);
  }
  const line = (label: string, value: string) => `${label.padEnd(19)}${printable(value)}`;
  return `${[
    'HA Status',
    '---------',
    line('State:', state),
    line('Preferred Role:', preferredRole),
    ...(peerAddress === '' ? [] : [line('Peer Address:', peerAddress)]),
    state === 'active' ? `Connected Replicas: ${connectedReplicas}` : line('Replicating:', String(peerReachable)),
    line('Connected Agents:', String(connectedAgents)),
    ...(at > 0 ? [line('Last Event:', `${Math.floor(now / 1_000) - at}s ago`)] : []),
    ...(sequence > 0 ? [line('Last Sequence:', String(sequence))] : []),
    ...problems.map((problem) => line('Problem:', problem)),
  ].join('\n')}\n`;
}
