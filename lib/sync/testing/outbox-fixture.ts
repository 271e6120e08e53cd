import { VirtualTime } from '../../../simulation/virtual-time.ts';
import type { FairTurns } from '../../base/index.ts';
import { type OutboundEvent, Outbox, type OutboxOptions, type ResourceKey, type Snapshot } from '../index.ts';

/** The key of an Application of this name, in the namespace of all of these tests. */
export const keyOfApp = (name: string): ResourceKey => ({ kind: 'Application', namespace: 'ns', name });

/** An outbox with a source to write to and a link that remembers what was sent. */
export class OutboxFixture {
  readonly time = new VirtualTime();
  readonly sent: OutboundEvent<string>[] = [];
  readonly source = new Map<string, Snapshot<string>>();
  readonly outbox: Outbox<string>;
  /** How long each state that arrived was on its way, in milliseconds. */
  readonly lags: number[] = [];
  idle = 0;
  room = Number.POSITIVE_INFINITY;

  constructor({
    random = () => 0,
    turns,
    ...options
  }: Partial<OutboxOptions<string>> & { random?: () => number; turns?: FairTurns<object> } = {}) {
    this.outbox = new Outbox<string>({
      source: { read: ({ name }) => this.source.get(name) },
      runtime: { clock: this.time, random, delivered: ({ lagMs }) => void this.lags.push(lagMs), turns },
      onIdle: () => this.idle++,
      ...options,
    });
  }

  connect(): void {
    this.outbox.connected({
      send: (delivery) => {
        if (this.room === 0) {
          return false;
        }
        this.room--;
        this.sent.push(delivery);
        return true;
      },
    });
  }

  set(name: string, uid: string, version: number, state = `s${version}`): void {
    this.source.set(name, { uid, version: String(version), digest: state, object: state });
    this.outbox.changed(keyOfApp(name));
  }

  remove(name: string): void {
    this.source.delete(name);
    this.outbox.changed(keyOfApp(name));
  }

  /** Takes what was sent since the last call. */
  take(): string[] {
    return this.sent.splice(0).map((one) => `${one.type === 'intent' ? one.intent : one.type} ${one.eventId}`);
  }

  ack(eventId: string): boolean {
    const resourceId = eventId.split('_').slice(0, 2).join('_');
    return this.outbox.acknowledged(resourceId, eventId);
  }
}
