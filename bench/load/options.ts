import { parseArgs } from 'node:util';

/** What the load generator is told to do. */
export interface LoadOptions {
  /** `host:port` of the principal. */
  readonly server: string;
  readonly pki: string;
  readonly agents: readonly string[];
  /** Applications that each agent is to have. */
  readonly applications: number;
  readonly version: string;
  /** Seconds between two reports of the cluster cache by each agent; 0 for none. */
  readonly cacheInfoSeconds: number;
  /** Seconds between two heartbeats of each agent; 0 for none. */
  readonly heartbeatSeconds: number;
  /** Status changes of all agents together, and for how long; without them the generator goes on until it is ended. */
  readonly changes: { readonly perSecond: number; readonly seconds: number } | undefined;
  /** Take commands from standard input and tell everything on standard output, line by line, as JSON. */
  readonly remote: boolean;
}

/** What `--help` prints. */
export const help = `Usage: npm run bench -- load --server HOST:PORT --pki FOLDER [options]

Managed agents by the hundred in one process, against any principal that speaks argocd-agent's protocol and takes
client certificates whose common name is the agent's name (--auth 'mtls:subject:CN=([^,]+)').

  --server HOST:PORT        the principal
  --pki FOLDER              ca.crt, and ca.key or the agents' own <name>.crt and <name>.key; what ca.key issues is kept there
  --agents N                how many (100); each needs a cluster Secret on the hub
  --prefix TEXT             their names are this and a number of four digits: agent-0000, agent-0001 … (agent-)
  --applications N          Applications of each agent: it counts as in sync when it has them (0)
  --version TEXT            the version that agents say they have
  --cache-info SECONDS      interval of cluster cache reports, 10 in the originals (0: none)
  --heartbeat SECONDS       interval of heartbeats (0: none)
  --changes N               status changes per second, of all agents together, once all are in sync (0)
  --seconds N               for how long (30)
  --remote                  commands on standard input and reports on standard output, as JSON lines (see protocol.ts)
`;

/** @throws Error that says what is wrong with the command line */
export function loadOptions(args: string[]): LoadOptions | 'help' {
  const { values } = parseArgs({
    args,
    options: {
      server: { type: 'string', default: '' },
      pki: { type: 'string', default: '' },
      agents: { type: 'string', default: '100' },
      prefix: { type: 'string', default: 'agent-' },
      applications: { type: 'string', default: '0' },
      version: { type: 'string', default: 'load-generator' },
      'cache-info': { type: 'string', default: '0' },
      heartbeat: { type: 'string', default: '0' },
      changes: { type: 'string', default: '0' },
      seconds: { type: 'string', default: '30' },
      remote: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    return 'help';
  }
  if (values.server === '' || values.pki === '') {
    throw new Error('--server and --pki are needed; see --help');
  }
  const perSecond = amount('changes', values.changes);
  return {
    server: values.server,
    pki: values.pki,
    agents: agentNames(amount('agents', values.agents), values.prefix),
    applications: amount('applications', values.applications),
    version: values.version,
    cacheInfoSeconds: amount('cache-info', values['cache-info']),
    heartbeatSeconds: amount('heartbeat', values.heartbeat),
    changes: perSecond === 0 ? undefined : { perSecond, seconds: amount('seconds', values.seconds) },
    remote: values.remote,
  };
}

/** The names of so many agents. */
export function agentNames(count: number, prefix = 'agent-'): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(4, '0')}`);
}

/** A number from a command line that is not negative. @throws Error that names the option */
export function amount(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0 || text.trim() === '') {
    throw new Error(`--${option} takes a number, not "${text}"`);
  }
  return value;
}
