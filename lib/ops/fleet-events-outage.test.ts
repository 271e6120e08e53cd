import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { effort, until } from '../base/testing.ts';
import { createLogger, fleetEventPrefix, fleetEvents } from './index.ts';

// A sink that is away for a while, by the clock: with THOROUGH=1 for a minute at a time.

const awayMs = effort(1_000, 60_000);
/** The longest delay before the next try, the time that a request may take, and a busy machine. */
const patient = { timeoutMs: 120_000 };
/** Events that wait: by default, and with fewer where there is no time to fill that. */
const bound = effort(100, 1_000);
const capacity = effort(1, 0) === 1 ? { capacity: bound } : {};

/** How a sink is away. */
type Absence = 'its port is closed' | 'it takes connections and says nothing' | 'it answers with 503';

interface Taken {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly body: string;
}

/** A sink that can be away. */
class Sink {
  readonly taken: Taken[] = [];
  /** Requests while it was away. */
  tries = 0;
  /** Takes the next event, and ends the connection without an answer. */
  losesNextAnswer = false;
  #port = 0;
  #server: Server | undefined;
  #absence: Absence | undefined;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async open(): Promise<void> {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }

  async leave(absence: Absence): Promise<void> {
    this.#absence = absence;
    if (absence === 'its port is closed') {
      this.close();
    }
  }

  /** Comes back; connections of before are gone. */
  async comeBack(): Promise<void> {
    const wasClosed = this.#absence === 'its port is closed';
    this.#absence = undefined;
    if (wasClosed) {
      await this.open();
    } else {
      this.#server?.closeAllConnections();
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await request.toArray()).join('');
    if (this.#absence !== undefined) {
      this.tries++;
      return this.#absence === 'it answers with 503' ? void response.writeHead(503).end() : undefined;
    }
    const header = (name: string) => String(request.headers[`ce-${name}`]);
    this.taken.push({ id: header('id'), type: header('type'), subject: header('subject'), body });
    if (this.losesNextAnswer) {
      this.losesNextAnswer = false;
      response.destroy();
    } else {
      response.writeHead(202).end();
    }
  }
}

test.concurrent.for<Absence>(['its port is closed', 'it takes connections and says nothing', 'it answers with 503'])(
  'a sink is away (%s): all that fits arrives in its order, and what does not is counted',
  { timeout: 600_000 },
  async (absence, { onTestFinished }) => {
    const sink = new Sink();
    await sink.open();
    const stop = new AbortController();
    const flags = { 'events-sink-url': sink.url, 'events-sink-token-path': '', 'events-mode': 'binary' };
    const registry = new Registry();
    const logger = createLogger({ level: 'fatal' });
    const events = fleetEvents({ flags, source: '/test', metrics: 'argocd_principal', registry, logger, ...capacity });
    const running = events?.run(stop.signal);
    onTestFinished(async () => {
      sink.close();
      stop.abort();
      await running;
    });

    /** Is away for that long while so many events happen, and comes back. */
    const outage = async (round: string, count: number): Promise<string[]> => {
      await sink.leave(absence);
      const began = performance.now();
      const subjects = Array.from({ length: count }, (_, index) => `agents/${round}-${index}`);
      for (const [index, subject] of subjects.entries()) {
        events?.report('agent-connected', subject, {});
        await delay(Math.max(0, began + (index * awayMs) / count - performance.now()));
      }
      await delay(Math.max(0, began + awayMs - performance.now()));
      await sink.comeBack();
      return subjects;
    };
    const figures = async (what: string, work: () => Promise<unknown>) => {
      const began = performance.now();
      await work();
      const seconds = ((performance.now() - began) / 1_000).toFixed(1);
      console.info(
        `${absence} for ${awayMs / 1_000} s: ${what} ${seconds} s after its return, ${sink.tries} requests until then`,
      );
    };

    /** What came, each event once. */
    const taken = () => [...new Map(sink.taken.map((one) => [one.id, one])).values()];
    const isSent = async () => (await registry.metrics()).includes('argocd_principal_fleet_events_pending 0');

    const fitting = await outage('fitting', bound * 0.9);
    // It has the first event already when it comes again.
    sink.losesNextAnswer = true;
    await figures(`${fitting.length} events have arrived`, () => until('all of them', isSent, patient));
    expect(taken().map(({ subject }) => subject)).toEqual(fitting);
    expect(sink.taken[1]?.id).toBe(sink.taken[0]?.id);
    expect(await registry.metrics()).toContain('argocd_principal_fleet_events_lost 0');

    sink.taken.length = 0;
    const many = await outage('many', bound * 1.3);
    const lost = many.length - bound;
    expect(await registry.metrics()).toContain(`argocd_principal_fleet_events_lost ${lost}`);
    await figures(`${bound} of ${many.length} events have arrived`, () =>
      until('all that fit, and the count of the others', isSent, patient),
    );
    const last = taken().at(-1);
    expect(taken().map(({ subject }) => subject)).toEqual([...many.slice(0, bound), 'events']);
    expect(last).toMatchObject({ type: `${fleetEventPrefix}events-dropped`, body: JSON.stringify({ dropped: lost }) });
  },
);
