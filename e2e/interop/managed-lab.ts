import { type ArgoObject, admitAgent, type PrincipalHub, pairApplications, startHub } from '../pair/index.ts';
import { asMade, type Until, untilWith } from './checks.ts';
import { seededRandom } from './dice.ts';
import { fastPace } from './event-writer.ts';
import { goPayload } from './go-event.ts';
import { GoManagedAgent } from './go-managed-agent.ts';
import { GoPeer } from './go-peer.ts';
import { makeMaterial } from './material.ts';
import { type GoObject, recordedEvent } from './templates.ts';

/** Our principal as a process on a real API server, and a managed Go agent that is connected to it. */
export interface ManagedLab {
  readonly hub: PrincipalHub;
  readonly agent: GoManagedAgent;
  readonly until: Until;
  /** Connects the agent as soon as the principal serves. */
  connect(): Promise<void>;
  onHub(name: string): Promise<ArgoObject | undefined>;
  /** Merges into an Application of the hub. */
  edit(name: string, patch: object): Promise<ArgoObject>;
  /** Makes the recorded Application on the hub, under another name, and waits until the agent has it. */
  deploy(name: string, metadata?: object): Promise<ArgoObject>;
  stop(): Promise<void>;
}

/** The name of the recorded managed agent. */
export const agentName = 'agent-managed';

/** Starts them. */
export async function startManagedLab(options: { destinationMapping?: boolean } = {}): Promise<ManagedLab> {
  const random = seededRandom();
  const [go, hub] = await Promise.all([
    GoPeer.start(),
    startHub(options.destinationMapping ? { principal: { args: ['--destination-based-mapping'] } } : {}),
  ]);
  const { client } = hub.hub;
  const until = untilWith(() => `seed ${random.seed}\n${agent.stream.story}\n${hub.principal.output.slice(-4_000)}`);
  await admitAgent(client, agentName);
  const tls = await (await makeMaterial(hub.authority)).client(agentName);
  const address = `127.0.0.1:${hub.principalPort}`;
  const agent = new GoManagedAgent({ go, address, tls, name: agentName, pace: fastPace, random, ...options });
  const connect = () => until(() => agent.connect());
  hub.principal.start();
  await connect();
  const ref = (name: string) => ({ name, namespace: agentName });
  return {
    hub,
    agent,
    until,
    connect,
    onHub: (name) => client.get(pairApplications, ref(name)),
    edit: (name, patch) => client.mergePatch(pairApplications, ref(name), patch),
    async deploy(name, metadata = {}) {
      const which = { dir: 'principal->agent', agent: agentName, target: 'application', type: 'create' } as const;
      const made = asMade(goPayload<GoObject>(recordedEvent('app-managed', which)), name, agentName);
      const object = await client.create(pairApplications, {
        ...made,
        metadata: { ...made.metadata, ...metadata },
      } as ArgoObject);
      await until(() => {
        const copy = agent.cluster.application.get(name);
        if (copy?.metadata.annotations?.['argocd.argoproj.io/source-uid'] !== object.metadata.uid) {
          throw new Error(`the agent has no copy of ${name}`);
        }
      });
      return object;
    },
    async stop() {
      agent.disconnect();
      await Promise.all([go.stop(), hub.stop()]);
    },
  };
}
