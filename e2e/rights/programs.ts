import type { KubeClient } from '../../lib/kube/index.ts';
import { type ApiRequest, requestsOf, takenAway } from './audit.ts';
import { comesLate, describeGrant, type Grant, impliedBy, onlyWidely, superfluous } from './grants.ts';
import { RightsWitness } from './witness.ts';

/** Where programs run under a service account. */
export interface Workplace {
  cluster: { client: KubeClient; auditLog: string };
  account: { namespace: string; name: string };
}

/** What one program was given and what it asked for, wherever it ran. */
export interface Conduct {
  program: string;
  /** What it was refused, other than by having lost its rights before it ended: `patch secrets in argocd`. */
  refused: string[];
  /** What it was given and did not need. */
  superfluous: string[];
  /** What it did with nothing but a right to do it to whatever there may be. */
  widely: ApiRequest[];
}

/** Watches over the rights of programs during a scenario. */
export class RightsReview {
  readonly #places: { program: string; place: Workplace; witness: RightsWitness }[];

  private constructor(places: { program: string; place: Workplace; witness: RightsWitness }[]) {
    this.#places = places;
  }

  /** Begins, for programs by name; one that runs in several places is judged by all of them together. */
  static async start(programs: Readonly<Record<string, readonly Workplace[]>>): Promise<RightsReview> {
    const places = Object.entries(programs).flatMap(([program, all]) => all.map((place) => ({ program, place })));
    return new RightsReview(
      await Promise.all(
        places.map(async (one) => ({ ...one, witness: await RightsWitness.start(one.place.cluster.client) })),
      ),
    );
  }

  /** What there is to say so far, sorted. */
  async conduct(): Promise<Conduct[]> {
    interface Entry {
      grants: Map<string, Grant>;
      requests: ApiRequest[];
      refused: ApiRequest[];
    }
    const all = new Map<string, Entry>();
    for (const { program, place, witness } of this.#places) {
      const entry: Entry = all.get(program) ?? { grants: new Map(), requests: [], refused: [] };
      all.set(program, entry);
      const given = witness.grantsTo(place.account);
      for (const grant of given) {
        entry.grants.set(describeGrant(grant), grant);
      }
      const { namespace, name } = place.account;
      const requests = await requestsOf(place.cluster.auditLog, `system:serviceaccount:${namespace}:${name}`);
      entry.requests.push(...requests);
      const taken = await takenAway(place.cluster.auditLog);
      entry.refused.push(...requests.filter((request) => !request.allowed && !comesLate(request, given, taken)));
    }
    return [...all].map(([program, { grants, requests, refused }]) => {
      const given = [...grants.values()];
      return {
        program,
        refused: refused.map(describeRequest),
        superfluous: superfluous(given, [...requests, ...impliedBy(requests, given)]).map(describeGrant),
        widely: onlyWidely(given, requests),
      };
    });
  }

  /** Stops watching. */
  async stop(): Promise<void> {
    await Promise.all(this.#places.map(({ witness }) => witness.stop()));
  }
}

/** A request as it is written in messages: `patch secrets x in argocd`. */
export function describeRequest({ verb, group, resource, namespace, name }: ApiRequest): string {
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${kind}${name && ` ${name}`}${namespace && ` in ${namespace}`}`;
}
