import { parseArgs } from 'node:util';
import { type ProviderName, providerNames } from '../provider/index.ts';
import { down, keepUp } from './detached.ts';
import { runDemo } from './story.ts';

const help = `Usage: npm run demo [-- OPTIONS]

Starts a hub and two managed clusters on this machine, enrolls them by "helm install" and one GitOpsCluster, and shows
an Application reaching both, live. Ctrl-C stops everything; once more does so at once.

Options:
  --provider NAME   local (the usual one): everything as processes of this machine, without containers;
            kind: clusters by kind, OCM by clusteradm, the image built from the Dockerfile and loaded into them
  --exit    end after the last step instead of waiting for Ctrl-C; the exit code is 0 when every step succeeded
  --keep    leave the fleet up in the background; prints the kubeconfigs and what to try
  --down    end a fleet that --keep left up
  --help    this text
`;

const values = parse();
const colour = values.colour || (process.stdout.isTTY && process.stdout.hasColors() && !process.env.NO_COLOR);

if (values.help) {
  process.stdout.write(help);
} else if ([values.exit, values.keep, values.down].filter(Boolean).length > 1) {
  refuse('Say one of --exit, --keep, --down.');
} else if (!isProvider(values.provider)) {
  refuse(`--provider: ${providerNames.join(' or ')}, not ${values.provider}.`);
} else if (values.provider !== 'local' && (values.keep || values.down)) {
  refuse('--keep and --down are for --provider local.');
} else if (values.down) {
  process.exitCode = await down();
} else if (values.keep) {
  process.exitCode = await keepUp(colour);
} else {
  const code = await runDemo({
    provider: values.provider,
    until: values.exit ? 'done' : 'interrupted',
    detached: values.serve,
    colour,
  });
  // Everything has ended. Node's own clean-up has been seen to spin for ever over a handle that never closes.
  process.exit(code);
}

function parse() {
  try {
    return parseArgs({
      options: {
        provider: { type: 'string', default: 'local' },
        exit: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        down: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        // Set by --keep for the process that it leaves behind.
        serve: { type: 'boolean', default: false },
        colour: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    refuse((error as Error).message);
    process.exit();
  }
}

function isProvider(name: string): name is ProviderName {
  return (providerNames as readonly string[]).includes(name);
}

function refuse(reason: string): void {
  process.stderr.write(`${reason}\n\n${help}`);
  process.exitCode = 2;
}
