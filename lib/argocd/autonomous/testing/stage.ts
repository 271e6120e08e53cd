import {
  AgentSync,
  type Application,
  ApplicationMirrors,
  type ApplicationMirrorsOptions,
  ClusterApplications,
  HubSync,
  type Message,
  type MirrorFailure,
  type OperationRevisions,
  type PeerConnection,
} from '../../index.ts';
import { joinPeers, messageName, type RecordedSide } from '../../testing/join.ts';
import { Lab, LabCluster } from '../../testing/lab.ts';

/** A principal with the mirrors of an autonomous agent, alone or joined with it. */
export class StagePrincipal implements RecordedSide {
  readonly sent: Message[] = [];
  readonly acknowledged: string[] = [];
  readonly failures: MirrorFailure[] = [];
  readonly mirrors: ApplicationMirrors;
  readonly sync: HubSync;
  readonly stop = new AbortController();
  readonly #hub: LabCluster;
  readonly #agent: string;

  constructor(
    lab: Lab,
    { agent = 'a', ...more }: Partial<ApplicationMirrorsOptions> & { readonly agent?: string } = {},
  ) {
    this.#hub = lab.hub;
    this.#agent = agent;
    const common = { runtime: { ...(more.runtime ?? lab.common('p').runtime), random: dice() } };
    const onFailure = (failure: MirrorFailure) => void this.failures.push(failure);
    this.mirrors = new ApplicationMirrors({ applications: lab.hub, principalUid: 'p', onFailure, ...more, ...common });
    this.sync = new HubSync({ managed: [], autonomous: [this.mirrors], ...common });
    this.sync.start(this.stop.signal);
    this.sync.expect(agent, 'autonomous');
  }

  /** A peer that acknowledges everything at once and sends only what the test sends. */
  connect(): PeerConnection {
    const connection: PeerConnection = {
      send: (message) => {
        this.sent.push(message);
        this.sync.acknowledged(this.#agent, message);
        return true;
      },
      acknowledge: (message) => void this.acknowledged.push(messageName(message)),
    };
    this.sync.connected(this.#agent, 'autonomous', connection);
    return connection;
  }

  /** The agent sends a message. */
  receive(message: Message): void {
    this.sync.receive(this.#agent, message);
  }

  mirror(name = 'shop'): Application | undefined {
    return this.#hub.objects.get({ namespace: this.#agent, name });
  }
}

/** An autonomous agent called `a`, alone or joined with a principal. */
export class StageAgent implements RecordedSide {
  readonly sent: Message[] = [];
  readonly acknowledged: string[] = [];
  readonly cluster: LabCluster;
  readonly applications: ClusterApplications;
  readonly sync: AgentSync;
  readonly stop = new AbortController();

  /** @param revisions by default any: tests tell operations apart by them */
  constructor(
    lab: Lab,
    cluster = new LabCluster('agent', lab.time),
    namespace = 'argocd',
    revisions: OperationRevisions = 'any',
  ) {
    this.cluster = cluster;
    const common = { runtime: { ...lab.common('a').runtime, random: dice() } };
    this.applications = new ClusterApplications({ applications: cluster, namespace, revisions, ...common });
    this.sync = new AgentSync({ mode: 'autonomous', kinds: [this.applications], ...common });
    this.sync.start(this.stop.signal);
  }

  /** A peer that acknowledges everything at once and sends only what the test sends. */
  connect(): PeerConnection {
    const connection: PeerConnection = {
      send: (message) => {
        this.sent.push(message);
        this.sync.acknowledged(message);
        return true;
      },
      acknowledge: (message) => void this.acknowledged.push(messageName(message)),
    };
    this.sync.connected(connection, { agent: 'a', principalNamespace: 'argocd' });
    return connection;
  }

  receive(message: Message): void {
    this.sync.receive(message);
  }

  application(name = 'shop'): Application | undefined {
    return this.cluster.objects.get({ namespace: 'argocd', name });
  }
}

/** Joins the two by a connection that loses nothing, until the returned function is called. */
export function join(lab: Lab, principal: StagePrincipal, agent: StageAgent): () => void {
  return joinPeers(lab.time, principal, agent, { name: 'a', mode: 'autonomous' });
}

/** A laboratory with both sides, joined. */
export function joined(options: Partial<ApplicationMirrorsOptions> = {}) {
  const lab = new Lab();
  const principal = new StagePrincipal(lab, options);
  const agent = new StageAgent(lab);
  const disconnect = join(lab, principal, agent);
  return { lab, principal, agent, disconnect };
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
