import { ExitError, oneOf, printableLines, printYaml, stringFlag } from '../../lib/ops/index.ts';
import { ctlCommand } from '../ctl-command.ts';
import type { Diagnosis } from '../doctor/finding.ts';
import type { RoundTrip } from '../doctor/round-trip.ts';
import { jsonText } from '../output.ts';

/** `doctor`: what is wrong, the cause first. */
export const doctorCommand = ctlCommand({
  name: 'doctor',
  summary: 'Find what is wrong with a hub and its agents, the cause first',
  description:
    'Looks at the hub and, with --agent-context, at the cluster: names, ports, TLS, certificates, clocks, rights, versions,\nmodes, Redis, Secrets, repositories. With CLUSTER, a request goes to the cluster and back; its time is said on standard\nerror. Each finding has the command that mends it. The first one is the cause: those after it may be its\nconsequences. Finds nothing, with exit code 0, when all is well; 1 with findings.',
  arguments: ['[CLUSTER]'],
  flags: {
    output: stringFlag({
      usage: 'format: text, json or yaml',
      default: 'text',
      short: 'o',
      check: oneOf('text', 'json', 'yaml'),
    }),
    'principal-address': stringFlag({
      usage: "host:port at which agents reach the principal; default: the agent's own, or the load balancer's",
    }),
  },
  run: async (flags, ctl) => {
    const [cluster = ''] = ctl.args;
    // Loaded when it runs: other commands start faster without it.
    const { examine } = await import('../doctor/examine.ts');
    const { findings, roundTrip } = await examine(ctl, { cluster, address: flags['principal-address'] });
    if (flags.output !== 'text') {
      const document = { findings, ...(roundTrip === undefined ? {} : { roundTrip }) };
      ctl.print(flags.output === 'json' ? jsonText(document, 2) : printYaml(document));
    } else {
      ctl.print(findings.map(findingText).join('\n'));
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
