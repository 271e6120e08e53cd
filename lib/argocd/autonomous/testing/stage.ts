import {
  AgentParts,
  type Application,
  AutonomousApplications,
  type Message,
  Mirrors,
  type MirrorsOptions,
  type MirrorTrouble,
  type PeerConnection,
  PrincipalParts,
} from '../../index.ts';
import { joinParts, nameOf, type Talk } from '../../testing/join.ts';
import { Lab, LabCluster } from '../../testing/lab.ts';

/** A principal with the mirrors of an autonomous agent, alone or joined with it. */
export class StagePrincipal implements Talk {
  readonly said: Message[] = [];
  readonly acknowledged: string[] = [];
  readonly troubles: MirrorTrouble[] = [];
  readonly mirrors: Mirrors;
  readonly parts: PrincipalParts;
  readonly stop = new AbortController();
  readonly #hub: LabCluster;
  readonly #agent: string;

  constructor(lab: Lab, { agent = 'a', ...more }: Partial<MirrorsOptions> & { readonly agent?: string } = {}) {
    this.#hub = lab.hub;
    this.#agent = agent;
    const common = { ...lab.common('p'), random: dice() };
    const onTrouble = (trouble: MirrorTrouble) => void this.troubles.push(trouble);
    this.mirrors = new Mirrors({ applications: lab.hub, principalUid: 'p', onTrouble, ...common, ...more });
    this.parts = new PrincipalParts({ managed: [], autonomous: [this.mirrors], ...common });
    this.parts.start(this.stop.signal);
    this.parts.expect(agent, 'autonomous');
  }

  /** A peer that acknowledges everything at once, and says nothing but what the test lets it say. */
  connect(): PeerConnection {
    const connection: PeerConnection = {
      send: (message) => {
        this.said.push(message);
        this.parts.acknowledged(this.#agent, message);
        return true;
      },
      acknowledge: (message) => void this.acknowledged.push(nameOf(message)),
    };
    this.parts.connected(this.#agent, 'autonomous', connection);
    return connection;
  }

  /** The agent says something. */
  hear(message: Message): void {
    this.parts.receive(this.#agent, message);
  }

  mirror(name = 'shop'): Application | undefined {
    return this.#hub.objects.get({ namespace: this.#agent, name });
  }
}

/** An autonomous agent called `a`, alone or joined with a principal. */
export class StageAgent implements Talk {
  readonly said: Message[] = [];
  readonly acknowledged: string[] = [];
  readonly cluster: LabCluster;
  readonly applications: AutonomousApplications;
  readonly parts: AgentParts;
  readonly stop = new AbortController();

  constructor(lab: Lab, cluster = new LabCluster('agent', lab.time), namespace = 'argocd') {
    this.cluster = cluster;
    const common = { ...lab.common('a'), random: dice() };
    this.applications = new AutonomousApplications({ applications: cluster, namespace, ...common });
    this.parts = new AgentParts({ mode: 'autonomous', kinds: [this.applications], ...common });
    this.parts.start(this.stop.signal);
  }

  /** A peer that acknowledges everything at once, and says nothing but what the test lets it say. */
  connect(): PeerConnection {
    const connection: PeerConnection = {
      send: (message) => {
        this.said.push(message);
        this.parts.acknowledged(message);
        return true;
      },
      acknowledge: (message) => void this.acknowledged.push(nameOf(message)),
    };
    this.parts.connected(connection, { agent: 'a', principalNamespace: 'argocd' });
    return connection;
  }

  hear(message: Message): void {
    this.parts.receive(message);
  }

  application(name = 'shop'): Application | undefined {
    return this.cluster.objects.get({ namespace: 'argocd', name });
  }
}

/** Joins the two by a connection that loses nothing, until the returned function is called. */
export function join(lab: Lab, principal: StagePrincipal, agent: StageAgent): () => void {
  return joinParts(lab.time, principal, agent, { name: 'a', mode: 'autonomous' });
}

/** A laboratory with both sides, joined. */
export function joined(options: Partial<MirrorsOptions> = {}) {
  const lab = new Lab();
  const principal = new StagePrincipal(lab, options);
  const agent = new StageAgent(lab);
  const part = join(lab, principal, agent);
  return { lab, principal, agent, part };
}

/** An Application as somebody makes it on an autonomous agent's cluster. */
export function ownApplication(
  metadata: Partial<Application['metadata']> = {},
  rest: Partial<Application> = {},
): Application {
  return {
    metadata: { namespace: 'argocd', name: 'shop', ...metadata },
    spec: {
      project: 'default',
      source: { path: 'p0' },
      destination: { server: 'https://kubernetes.default.svc', namespace: 'shop' },
    },
    ...rest,
  };
}

/** Numbers that differ, as those of life do: what is said again is known by one. */
function dice(): () => number {
  let state = 1;
  return () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
