import { ExitError, printableLines, stringFlag } from '../../lib/ops/index.ts';
import { ctlCommand } from '../ctl-command.ts';
import type { Diagnosis } from '../doctor/finding.ts';
import type { RoundTrip } from '../doctor/round-trip.ts';
import { inFormat, outputFlag } from '../output.ts';

/** `doctor`: what is wrong, the cause first. */
export const doctorCommand = ctlCommand({
  name: 'doctor',
  summary: 'Find what is wrong with a hub and its agents, the cause first',
  description:
    'Looks at the hub and, with --agent-context, at the cluster: names, ports, TLS, certificates, clocks, rights, versions,\nmodes, Redis, Secrets, repositories. With CLUSTER, a request goes to the cluster and back; its time is said on standard\nerror. Each finding has the command that mends it. The first one is the cause: those after it may be its\nconsequences. When nothing is found, standard error\nsays what was looked at. Exit code 0 without findings, 1 with findings.',
  arguments: ['[CLUSTER]'],
  flags: {
    output: outputFlag(),
    'principal-address': stringFlag({
      usage: "host:port at which agents reach the principal; default: the agent's own, or the load balancer's",
    }),
  },
  run: async (flags, ctl) => {
    const [cluster = ''] = ctl.args;
    // Loaded when it runs: other commands start faster without it.
    const { examine } = await import('../doctor/examine.ts');
    const { findings, lookedAt, notLookedAt, roundTrip } = await examine(ctl, {
      cluster,
      address: flags['principal-address'],
    });
    const document = { findings, lookedAt, notLookedAt, ...(roundTrip === undefined ? {} : { roundTrip }) };
    ctl.print(inFormat(document, flags.output, () => findings.map(findingText).join('\n')));
    if (flags.output === 'text') {
      if (findings.length === 0) {
        ctl.say(`Nothing found. Looked at: ${lookedAt.join(', ')}.`);
        if (notLookedAt.length > 0) {
          ctl.say(`Not looked at: ${notLookedAt.join(', ')}.`);
        }
      }
      if (roundTrip !== undefined) {
        ctl.say(`${cluster}: ${roundTripText(roundTrip)}`);
      }
    }
    if (findings.length > 0) {
      throw new ExitError(1);
    }
  },
});

function findingText({ id, cluster, what, where, mend }: Diagnosis, index: number): string {
  const subject = cluster === '' ? '' : `${cluster}: `;
  return printableLines(`${index + 1}. ${subject}${what} (${id})\n   where: ${where}\n   mend:  ${mend}\n`);
}

const roundTripText = (trip: RoundTrip) =>
  'ms' in trip
    ? `a request to the cluster and back took ${trip.ms} ms`
    : `no request went to the cluster and back: ${trip.notTaken}`;
