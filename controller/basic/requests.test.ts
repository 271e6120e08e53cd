import { describe, expect, it } from 'vitest';
import { mergePatchBetween } from '../../lib/argocd/index.ts';
import { type Feedback, feedbackOf } from './feedback.ts';
import { keys } from './names.ts';
import { planRequests } from './requests.ts';
import type { Application, Operation, Payload, PullWork } from './resources.ts';
import { idOf, payloadFor, workFor } from './work.ts';

const now = new Date('2026-01-02T03:04:05Z');
const target = { cluster: 'c1', namespace: 'argocd', name: 'guestbook' };

function application(change: Partial<Application> = {}): Application {
  const annotations = { [keys.cluster]: 'c1' };
  return {
    metadata: { namespace: 'argocd', name: 'guestbook', uid: '01234567', resourceVersion: '7', annotations },
    ...change,
  };
}
const operation = (id?: string): Operation => ({
  sync: { revision: 'HEAD' },
  ...(id === undefined ? {} : { info: [{ name: keys.operation, value: id }] }),
});
const copy = (id?: string) =>
  payloadFor(application(), target, id === undefined ? {} : { operation: { id, operation: operation(id) } });
const plan = (one: Application, payload?: Payload, feedback: Feedback = {}) =>
  planRequests(one, { payload, feedback }, 'new', now);

describe('an operation', () => {
  it('gets its name on the hub before it is sent, and shows as running', () => {
    const planned = plan(application({ operation: operation() }), copy());
    expect(planned.isBeginning).toBe(true);
    expect(planned.requests.operation).toBeUndefined();
    expect(planned.application).toMatchObject({
      operation: operation('new'),
      status: {
        operationState: { phase: 'Running', startedAt: '2026-01-02T03:04:05Z', message: expect.stringContaining('c1') },
      },
    });
  });

  it.each<[string, string | undefined, string | undefined, Feedback, object]>([
    ['is sent under its name', 'a', undefined, {}, { sent: 'a', isBusy: false, isTakenOff: false }],
    ['stays in the copy until it has arrived', 'a', 'a', {}, { sent: 'a', isBusy: true, isTakenOff: false }],
    [
      'stays there while it is under way',
      'a',
      'a',
      { operationArrived: 'a', operationPending: 'a' },
      { sent: 'a', isBusy: true, isTakenOff: false },
    ],
    [
      'is not over because an earlier one is',
      'b',
      'b',
      { operationArrived: 'a', operationTaken: 'a' },
      { sent: 'b', isBusy: true, isTakenOff: false },
    ],
    [
      'goes from the hub when it is over, and stays in the copy until then',
      'a',
      'a',
      { operationArrived: 'a', operationTaken: 'a' },
      { sent: 'a', isBusy: true, isTakenOff: true },
    ],
    ['then goes from the copy', undefined, 'a', { operationArrived: 'a' }, { isBusy: false, isTakenOff: false }],
    [
      'is not broken off when somebody takes it from the hub while it is under way',
      undefined,
      'a',
      { operationArrived: 'a', operationPending: 'a' },
      { sent: 'a', isBusy: true, isTakenOff: false },
    ],
    ['is withdrawn when it has not arrived', undefined, 'a', {}, { isBusy: false, isTakenOff: false }],
    [
      'waits for the one before it',
      'b',
      'a',
      { operationArrived: 'a', operationPending: 'a' },
      { sent: 'a', isBusy: true, isTakenOff: false },
    ],
    ['follows the one before it', 'b', 'a', { operationArrived: 'a' }, { sent: 'b', isBusy: false, isTakenOff: false }],
  ])('%s', (_, onHub, carried, feedback, expected) => {
    const planned = plan(
      application(onHub === undefined ? {} : { operation: operation(onHub) }),
      copy(carried),
      feedback,
    );
    const { requests, isBusy, application: next } = planned;
    const isTakenOff = next !== undefined && next.operation === undefined;
    expect({ ...(requests.operation ? { sent: requests.operation.id } : {}), isBusy, isTakenOff }).toEqual(expected);
  });
});

describe('a refresh', () => {
  const asking = (how: string) => {
    const one = application();
    return { ...one, metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, [keys.refresh]: how } } };
  };
  const bringing = (how: string) => payloadFor(asking(how), target, { refresh: { id: '5', how } });

  it('is sent under a name, which it keeps', () => {
    expect(plan(asking('hard'), copy()).requests.refresh).toEqual({ id: '7', how: 'hard' });
    expect(plan(asking('hard'), bringing('hard')).requests.refresh).toEqual({ id: '5', how: 'hard' });
    expect(plan(asking('normal'), bringing('hard')).requests.refresh).toEqual({ id: '7', how: 'normal' });
  });

  it('is over when the copy has arrived and its application controller has taken it off', () => {
    const isOver = (feedback: Feedback) =>
      plan(asking('hard'), bringing('hard'), feedback).application?.metadata.annotations;
    expect(isOver({})).toBeUndefined();
    expect(isOver({ refreshArrived: '5', refreshPending: 'hard' })).toBeUndefined();
    expect(isOver({ refreshArrived: '5' })).toEqual({ [keys.cluster]: 'c1' });
    expect(plan(application(), bringing('hard')).requests.refresh).toBeUndefined();
  });
});

/**
 * Hub, work and cluster as OCM and Argo CD have them, with everything that takes time taking any time: what the cluster
 * tells may be late, the agent may sleep through any number of versions of the work, the controller may die after any write.
 */
class Fleet {
  hub: Application = application({ spec: { destination: {} } });
  work: PullWork | undefined;
  live: (Payload & { status: { operation?: Operation }; hash: string }) | undefined;
  told: Feedback = {};
  readonly ran: string[] = [];
  readonly begun: string[] = [];
  #ids = 0;
  #busy = false;

  /** The controller looks once; `writes` is how many writes it lives for. */
  look(writes = 2): void {
    const payload = this.work?.spec.workload.manifests[0] as Payload | undefined;
    const planned = planRequests(this.hub, { payload, feedback: this.told }, `id${++this.#ids}`, now);
    if (!planned.isBeginning) {
      const next = payloadFor(this.hub, target, planned.requests);
      const isHeld = planned.isBusy && payload && mergePatchBetween(payload, next) !== undefined;
      if (!isHeld && JSON.stringify(next) !== JSON.stringify(payload)) {
        if (writes-- <= 0) return;
        this.work = workFor(this.hub, target, next);
      }
    }
    if (planned.application && writes > 0) this.hub = planned.application;
  }

  /** The work agent applies what there is. */
  apply(): void {
    const payload = this.work?.spec.workload.manifests[0] as Payload | undefined;
    if (!payload) return;
    const hash = JSON.stringify(payload);
    if (this.live?.hash === hash) return;
    // What another owner has taken off comes back with a new version; what the new version lacks is removed.
    this.live = { ...structuredClone(payload), status: this.live?.status ?? {}, hash };
    if (!this.live.operation) this.#busy = false;
  }

  /** Argo CD begins or ends the operation. */
  run(): void {
    if (!this.live?.operation) return;
    const id = idOf(this.live.operation) ?? '?';
    if (this.#busy) {
      this.ran.push(id);
      delete this.live.operation;
      this.#busy = false;
      return;
    }
    this.begun.push(id);
    this.live.status = { operation: this.live.operation };
    this.#busy = true;
  }

  /** Feedback comes back. */
  tell(): void {
    if (!this.live) return;
    const value = (name: string, string: string | undefined) =>
      string === undefined ? [] : [{ name, fieldValue: { type: 'String', string } }];
    const values = [
      ...value('operationArrived', this.live.metadata.annotations?.[keys.operation]),
      ...value('operationPending', idOf(this.live.operation)),
      ...value('operationTaken', idOf(this.live.status.operation)),
    ];
    const manifests = [
      {
        resourceMeta: { ordinal: 0, name: 'guestbook', namespace: 'argocd' },
        conditions: [],
        statusFeedback: { values },
      },
    ];
    if (this.work) this.told = feedbackOf({ ...this.work, status: { resourceStatus: { manifests } } });
  }
}

/** A generator of numbers below 2³², the same for the same seed (mulberry32). */
function dice(seed: number): (sides: number) => number {
  let state = seed >>> 0;
  return (sides) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % sides;
  };
}

describe('8.3 H: operations', () => {
  it('run once each, in order, whatever is late, missed or killed', () => {
    const first = Math.floor(Math.random() * 2 ** 31);
    for (let round = 0; round < 300; round++) {
      const seed = first + round;
      const roll = dice(seed);
      const fleet = new Fleet();
      let asked = 0;
      for (let step = 0; step < 120; step++) {
        const what = roll(8);
        if (what === 0 && fleet.hub.operation === undefined) {
          asked++;
          fleet.hub = { ...fleet.hub, operation: { sync: { revision: 'HEAD' } } };
        } else if (what === 1) {
          fleet.hub = { ...fleet.hub, spec: { destination: {}, version: step } };
        } else if (what === 2) fleet.look(roll(3));
        else if (what === 3) fleet.apply();
        else if (what === 4) fleet.run();
        else if (what === 5) fleet.tell();
        else fleet.look();
      }
      for (let step = 0; step < 12; step++) {
        fleet.look();
        fleet.apply();
        fleet.run();
        fleet.tell();
      }
      const why = `seed ${seed}`;
      expect(fleet.ran.length, why).toBe(asked);
      expect(fleet.begun, why).toEqual(fleet.ran);
      expect(new Set(fleet.ran).size, why).toBe(asked);
      expect(fleet.hub.operation, why).toBeUndefined();
      expect(fleet.live?.spec, why).toMatchObject(
        fleet.hub.spec?.version === undefined ? {} : { version: fleet.hub.spec.version },
      );
    }
  });
});
