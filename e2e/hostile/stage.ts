import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { configMaps, type KubeObject, namespaces, type ResourceType, secrets } from '../../lib/kube/index.ts';
import { issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import {
  admitAgent,
  application,
  type HubPrincipal,
  metricsNow,
  namespace,
  type PrincipalHub,
  type Program,
  pairApplications,
  pairAppProjects,
  startHub,
} from '../pair/index.ts';
import { type AttackCall, Attacker } from './attacker.ts';
import { Witness } from './witness.ts';

/** The attacker's name as an agent. */
export const evil = 'evil';
/** The agent that must not notice anything. */
export const other = 'witness';
/** The attacker as an autonomous agent, and another one whose name begins like its own. */
export const rogue = 'rogue';
export const neighbour = 'rogue-next';

const agents = [evil, other, rogue, neighbour];

/** Where a principal may grow to under attack, in MiB. One message may have 200 MiB, and is there several times while it is read. */
const mostMegabytes = 1_200;
/** What an attack may make the principals write to their logs, in characters. */
const mostLogged = 600_000;

/**
 * A hub with two principals, one for each mapping, an agent that behaves and one that does not. What is not the attacker's:
 * Applications of the witness in its namespace and in Argo CD's, a project, Secrets, ConfigMaps, namespaces.
 */
export class Stage {
  readonly hub: PrincipalHub;
  readonly byDestination: HubPrincipal;
  readonly #certificates: ReadonlyMap<string, KeyCertificate>;
  readonly #witness: Witness;
  #attackers: Attacker[] = [];
  #untouched: ReadonlyMap<string, string> = new Map();
  #logged = 0;

  private constructor(
    hub: PrincipalHub,
    byDestination: HubPrincipal,
    certificates: ReadonlyMap<string, KeyCertificate>,
  ) {
    this.hub = hub;
    this.byDestination = byDestination;
    this.#certificates = certificates;
    this.#witness = new Witness({
      client: hub.hub.client,
      port: hub.principalPort,
      ca: hub.authority.certificate,
      certificate: this.certificateOf(other),
      ref: { namespace: other, name: 'witness' },
    });
  }

  /** Everything runs and the witness is in step when it resolves. `args` are for both principals. */
  static async open(args: readonly string[] = []): Promise<Stage> {
    const hub = await startHub({ principal: { args } });
    const byDestination = await hub.newPrincipal({ args: ['--destination-based-mapping', ...args] });
    const { client } = hub.hub;
    const issue = (commonName: string) =>
      issueCertificate({ authority: hub.authority, commonName, usages: ['client'] });
    const names = [evil, other, rogue, neighbour, 'stranger'];
    const certificates = await Promise.all(names.map(async (name) => [name, await issue(name)] as const));
    await Promise.all(agents.map((name) => admitAgent(client, name)));
    const spec = { destination: { name: other } };
    await Promise.all([
      client.create(pairApplications, application({ name: 'witness', namespace: other, spec })),
      client.create(pairApplications, application({ name: 'guarded', namespace: other, spec })),
      client.create(pairApplications, application({ name: 'guarded', namespace, spec })),
      client.create(
        pairApplications,
        application({ name: 'own', namespace: evil, spec: { destination: { name: evil } } }),
      ),
      client.create(pairAppProjects, {
        metadata: { name: 'guarded', namespace },
        spec: { sourceRepos: ['*'], sourceNamespaces: [other], destinations: [{ name: other, namespace: '*' }] },
      }),
    ]);
    hub.principal.start();
    byDestination.program.start();
    await Promise.all([hub.principal, byDestination.program].map((one) => one.says(/principal serves agents/)));
    const stage = new Stage(hub, byDestination, new Map(certificates));
    await stage.#witness.exchange(() => stage.details());
    await stage.takeStock();
    return stage;
  }

  async close(): Promise<void> {
    this.#dismiss();
    await this.#witness.stop();
    await this.hub.stop();
  }

  /** From now on, what is there now has to stay as it is. */
  async takeStock(): Promise<void> {
    this.#untouched = await this.others();
  }

  /** What the principals said last. */
  details(): string {
    return `${this.hub.principal.output.slice(-3_000)}\n---\n${this.byDestination.program.output.slice(-1_000)}`;
  }

  /**
   * To be called after every attack: nobody else noticed, and what is not the attacker's is as it was.
   */
  async expectPeace(): Promise<void> {
    this.#dismiss();
    for (const program of [this.hub.principal, this.byDestination.program]) {
      expect(program.pid, `a principal died:\n${this.details()}`).toBeDefined();
      expect(await peakMegabytes(program), 'memory of a principal').toBeLessThan(mostMegabytes);
    }
    const logged = this.hub.principal.output.length + this.byDestination.program.output.length;
    expect(logged - this.#logged, 'characters logged').toBeLessThan(mostLogged);
    this.#logged = logged;
    await this.#witness.exchange(() => this.details());
    expect(this.#witness.connections, 'connections of the witness').toBe(1);
    expect(await this.others()).toEqual(this.#untouched);
  }

  /** The witness's round trip right now, in milliseconds. */
  exchange(): Promise<number> {
    return this.#witness.exchange(() => this.details());
  }

  /** The client certificate of an agent. */
  certificateOf(name: string): KeyCertificate {
    const found = this.#certificates.get(name);
    if (found === undefined) {
      throw new Error(`there is no certificate of ${name}`);
    }
    return found;
  }

  /** A connection of the attacker. `name: undefined`: without a certificate. */
  async attacker(options: { port?: number; name?: string | undefined } = { name: evil }): Promise<Attacker> {
    const { port = this.hub.principalPort, name } = options;
    const attacker = await Attacker.connect({
      port,
      ca: this.hub.authority.certificate,
      ...(name === undefined ? {} : { certificate: this.certificateOf(name) }),
    });
    this.#attackers.push(attacker);
    return attacker;
  }

  /** The attacker as the agent that it is, with an event stream. */
  async agent(
    options: { port?: number; headers?: Record<string, string>; name?: string; mode?: string } = {},
  ): Promise<AttackCall> {
    const { name = evil, mode } = options;
    const attacker = await this.attacker({ ...options, name });
    const { accessToken } = await attacker.login(mode);
    const call = attacker.subscribe(accessToken, options.headers);
    await call.settle();
    return call;
  }

  /** The sum of a metric over its labels. */
  async metric(name: string, port = this.hub.metricsPort): Promise<number> {
    const text = await metricsNow(port);
    return text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** Resource versions of everything that is not the attacker's and does not change by itself. */
  async others(): Promise<Map<string, string>> {
    const { client } = this.hub.hub;
    const versions = async (type: ResourceType<KubeObject>, within?: string) =>
      (await client.list(type, within === undefined ? {} : { namespace: within })).map(
        ({ metadata }) =>
          [`${type.kind} ${metadata.namespace ?? ''}/${metadata.name}`, metadata.resourceVersion ?? ''] as const,
      );
    const all = await Promise.all([
      versions(pairApplications),
      versions(pairAppProjects),
      versions(secrets, namespace),
      versions(configMaps, namespace),
      versions(namespaces),
    ]);
    return new Map(
      all
        .flat()
        .filter(([key]) => !isAttackers(key) && key !== 'Application witness/witness')
        .sort(),
    );
  }

  #dismiss(): void {
    for (const attacker of this.#attackers) {
      attacker.close();
    }
    this.#attackers = [];
  }
}

/** Projects of the hub and of the neighbour under names that begin like the attacker's. */
const notRogues: ReadonlySet<string> = new Set([
  `AppProject argocd/${rogue}-own`,
  `AppProject argocd/${neighbour}-team`,
]);

/** Whether an attacker may have its way with it. */
function isAttackers(key: string): boolean {
  return (
    key.includes(` ${evil}/`) ||
    key.includes(` ${rogue}/`) ||
    (key.startsWith(`AppProject argocd/${rogue}-`) && !notRogues.has(key))
  );
}

async function peakMegabytes({ pid }: Program): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
}
