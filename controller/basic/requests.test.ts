import { describe, expect, it } from 'vitest';
import { Random } from '../../e2e/random/index.ts';
import { type Feedback, feedbackOf } from './feedback.ts';
import { pullKeys } from './names.ts';
import { nextPayload, planRequests } from './requests.ts';
import type { Operation, Payload, PullApplication, PullWork } from './resources.ts';
import { operationId, payloadFor, workFor } from './work.ts';

const now = new Date('2026-01-02T03:04:05Z');
const target = { cluster: 'c1', namespace: 'argocd', name: 'guestbook' };

function application(change: Partial<PullApplication> = {}): PullApplication {
  const annotations = { [pullKeys.cluster]: 'c1' };
  return {
    metadata: { namespace: 'argocd', name: 'guestbook', uid: '01234567', resourceVersion: '7', annotations },
    ...change,
  };
}
const operation = (id?: string): Operation => ({
  sync: { revision: 'HEAD' },
  ...(id === undefined ? {} : { info: [{ name: pullKeys.operation, value: id }] }),
});
const copy = (id?: string) =>
  payloadFor(application(), target, id === undefined ? {} : { operation: { id, operation: operation(id) } });
const plan = (one: PullApplication, payload?: Payload, feedback: Feedback = {}) =>
  planRequests(one, { payload, feedback }, 'new', now);

describe('an operation', () => {
  it('gets its id on the hub before it is sent, and shows as running', () => {
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

describe('the termination of an operation', () => {
  const state = (id: string, phase = 'Terminating') => ({
    operationState: { phase, startedAt: '2026-01-02T03:00:00Z', operation: operation(id) },
  });
  const terminated = (id: string, of = id) => application({ operation: operation(id), status: state(of) });
  const running: Feedback = {
    operationArrived: 'a',
    operationPending: 'a',
    operationTaken: 'a',
    operationStatePhase: 'Running',
  };

  it.each<[string, Feedback, boolean]>([
    ['is carried when the feedback shows that the operation runs', running, true],
    ['waits until the operation has arrived', {}, false],
    ['waits until it has begun', { operationArrived: 'a', operationPending: 'a', operationTaken: 'z' }, false],
    ['is not carried when it has ended', { ...running, operationStatePhase: 'Succeeded' }, false],
  ])('%s', (_, feedback, isCarried) => {
    const { requests, isBusy } = plan(terminated('a'), copy('a'), feedback);
    expect(requests.operation?.isEnding ?? false).toBe(isCarried);
    expect(isBusy).toBe(true);
  });

  it('changes only the phase, and stays in the copy until the operation has ended', () => {
    const bringing = payloadFor(application(), target, {
      operation: { id: 'a', operation: operation('a'), isEnding: true },
    });
    expect(bringing.status).toEqual({ operationState: { phase: 'Terminating' } });
    const again = plan(terminated('a'), bringing, { ...running, operationStatePhase: 'Terminating' });
    expect(payloadFor(terminated('a'), target, again.requests)).toEqual(bringing);
    // The feedback may be older than the arrival of the termination.
    const before = { ...running, operationPending: '', operationStatePhase: 'Succeeded' };
    expect(plan(terminated('a'), bringing, before).application).toBeUndefined();
    const after = { ...running, operationArrived: 'a/end', operationPending: '', operationStatePhase: 'Failed' };
    const over = plan(terminated('a'), bringing, after);
    expect(over.application?.operation).toBeUndefined();
    expect(payloadFor(terminated('a'), target, over.requests)).toEqual(bringing);
    const done = plan(application(), bringing, { operationArrived: 'a/end', operationTaken: 'a' });
    expect(payloadFor(application(), target, done.requests).status).toBeUndefined();
  });

  it('withdraws what was not sent yet', () => {
    const { requests, application: next } = plan(terminated('b'), copy(), {});
    expect(requests.operation).toBeUndefined();
    expect(next?.operation).toBeUndefined();
    expect(next?.status?.operationState).toMatchObject({
      phase: 'Failed',
      message: 'terminated before it was sent to managed cluster c1',
      finishedAt: '2026-01-02T03:04:05Z',
    });
    const waiting = plan(terminated('b'), copy('a'), running);
    expect(waiting.requests.operation).toMatchObject({ id: 'a' });
    expect(waiting.requests.operation?.isEnding).toBeUndefined();
    expect(waiting.application?.operation).toBeUndefined();
  });

  it('of an earlier operation does not affect the next one', () => {
    expect(plan(terminated('a', 'z'), copy('a'), running).requests.operation?.isEnding).toBeUndefined();
    expect(plan(terminated('b', 'z'), copy(), {}).requests.operation).toMatchObject({ id: 'b' });
  });
});

describe('a refresh', () => {
  const asking = (how: string) => {
    const one = application();
    return {
      ...one,
      metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, [pullKeys.refresh]: how } },
    };
  };
  const bringing = (how: string) => payloadFor(asking(how), target, { refresh: { id: '5', how } });

  it('is sent with an id, which it keeps', () => {
    expect(plan(asking('hard'), copy()).requests.refresh).toEqual({ id: '7', how: 'hard' });
    expect(plan(asking('hard'), bringing('hard')).requests.refresh).toEqual({ id: '5', how: 'hard' });
    expect(plan(asking('normal'), bringing('hard')).requests.refresh).toEqual({ id: '7', how: 'normal' });
  });

  it('is done when the copy has arrived and its application controller has removed it', () => {
    const isOver = (feedback: Feedback) =>
      plan(asking('hard'), bringing('hard'), feedback).application?.metadata.annotations;
    expect(isOver({})).toBeUndefined();
    expect(isOver({ refreshArrived: '5', refreshPending: 'hard' })).toBeUndefined();
    expect(isOver({ refreshArrived: '5' })).toEqual({ [pullKeys.cluster]: 'c1' });
    expect(plan(application(), bringing('hard')).requests.refresh).toBeUndefined();
  });
});

/**
 * Hub, work and cluster as OCM and Argo CD have them, with arbitrary delays: feedback may be late, the work agent may miss
 * any number of versions of the work, the controller may die after any write.
 */
class Fleet {
  hub: PullApplication = application({ spec: { destination: {} } });
  work: PullWork | undefined;
  live: (Omit<Payload, 'status'> & { status: { operation?: Operation; phase?: string }; hash: string }) | undefined;
  feedback: Feedback = {};
  readonly ran: string[] = [];
  readonly begun: string[] = [];
  /** Operations that were terminated on the cluster, and those withdrawn on the hub. */
  readonly ended: string[] = [];
  withdrawn = 0;
  #ids = 0;
  #busy = false;

  /** Runs one reconcile; the controller dies after `writes` writes. */
  reconcile(writes = 2): void {
    const payload = this.work?.spec.workload.manifests[0] as Payload | undefined;
    const planned = planRequests(this.hub, { payload, feedback: this.feedback }, `id${++this.#ids}`, now);
    if (!planned.isBeginning) {
      const next = nextPayload(planned, payload, payloadFor(this.hub, target, planned.requests));
      if (next && JSON.stringify(next) !== JSON.stringify(payload)) {
        if (writes-- <= 0) {
          return;
        }
        this.work = workFor(this.hub, target, next);
      }
    }
    if (planned.application && writes > 0) {
      if (planned.application.status?.operationState?.message?.startsWith('terminated before')) {
        this.withdrawn++;
      }
      this.hub = planned.application;
    }
  }

  /** Terminates the operation on the hub, as Argo CD's API server does. */
  terminate(): void {
    const state = this.hub.status?.operationState;
    if (this.hub.operation === undefined || state === undefined) {
      return;
    }
    this.hub = { ...this.hub, status: { operationState: { ...state, phase: 'Terminating' } } };
  }

  /** The work agent applies the current work. */
  apply(): void {
    const payload = this.work?.spec.workload.manifests[0] as Payload | undefined;
    if (!payload) {
      return;
    }
    const hash = JSON.stringify(payload);
    if (this.live?.hash === hash) {
      return;
    }
    // A field that another owner removed comes back with a new version. A field that the new version lacks is removed.
    const { status: ending, ...content } = structuredClone(payload);
    const phase = ending && { phase: ending.operationState.phase };
    this.live = { ...content, status: { ...this.live?.status, ...phase }, hash };
    if (!this.live.operation) {
      this.#busy = false;
    }
  }

  /** Argo CD begins or ends the operation. */
  run(): void {
    if (!this.live?.operation) {
      return;
    }
    const id = operationId(this.live.operation) ?? '?';
    const isEnding = this.live.status.phase === 'Terminating';
    if (this.#busy || isEnding) {
      // A termination of an operation that has ended is carried out again. It deploys nothing.
      if (this.#busy) {
        this.ran.push(id);
      }
      if (isEnding) {
        this.ended.push(id);
      }
      delete this.live.operation;
      this.live.status = { ...this.live.status, phase: isEnding ? 'Failed' : 'Succeeded' };
      this.#busy = false;
      return;
    }
    this.begun.push(id);
    this.live.status = { operation: this.live.operation, phase: 'Running' };
    this.#busy = true;
  }

  /** Status feedback reaches the hub. */
  report(): void {
    if (!this.live) {
      return;
    }
    const value = (name: string, string: string | undefined) =>
      string === undefined ? [] : [{ name, fieldValue: { type: 'String', string } }];
    const values = [
      ...value('operationArrived', this.live.metadata.annotations?.[pullKeys.operation]),
      ...value('operationPending', operationId(this.live.operation)),
      ...value('operationTaken', operationId(this.live.status.operation)),
      ...value('operationStatePhase', this.live.status.phase),
    ];
    const manifests = [
      {
        resourceMeta: { ordinal: 0, name: 'guestbook', namespace: 'argocd' },
        conditions: [],
        statusFeedback: { values },
      },
    ];
    if (this.work) {
      this.feedback = feedbackOf({ ...this.work, status: { resourceStatus: { manifests } } });
    }
  }
}

describe('operations', () => {
  it('ocm defect H9: run once each, in order, with any delay, missed version or killed controller', () => {
    const first = Math.floor(Math.random() * 2 ** 31);
    let ended = 0;
    for (let round = 0; round < 300; round++) {
      const seed = first + round;
      const random = new Random(seed);
      const roll = (sides: number) => random.integer(0, sides - 1);
      const fleet = new Fleet();
      let requested = 0;
      for (let step = 0; step < 120; step++) {
        const what = roll(9);
        if (what === 0 && fleet.hub.operation === undefined) {
          requested++;
          fleet.hub = { ...fleet.hub, operation: { sync: { revision: 'HEAD' } } };
        } else if (what === 1) {
          fleet.hub = { ...fleet.hub, spec: { destination: {}, version: step } };
        } else if (what === 2) {
          fleet.reconcile(roll(3));
        } else if (what === 3) {
          fleet.apply();
        } else if (what === 4) {
          fleet.run();
        } else if (what === 5) {
          fleet.report();
        } else if (what === 6) {
          fleet.terminate();
        } else {
          fleet.reconcile();
        }
      }
      for (let step = 0; step < 12; step++) {
        fleet.reconcile();
        fleet.apply();
        fleet.run();
        fleet.report();
      }
      const why = `seed ${seed}`;
      expect(fleet.ran.length + fleet.withdrawn, why).toBe(requested);
      expect(fleet.begun, why).toEqual(fleet.ran);
      expect(new Set(fleet.ran).size, why).toBe(fleet.ran.length);
      expect(fleet.live?.status.phase ?? 'never begun', why).not.toMatch(/Running|Terminating/);
      ended += fleet.ended.length;
      expect(fleet.hub.operation, why).toBeUndefined();
      expect(fleet.live?.spec, why).toMatchObject(
        fleet.hub.spec?.version === undefined ? {} : { version: fleet.hub.spec.version },
      );
    }
    expect(ended).toBeGreaterThan(0);
  });
});
