import type { IncomingMessage, ServerResponse } from 'node:http';
import { Session } from 'node:inspector/promises';
import { pipeline } from 'node:stream/promises';
import { getHeapSnapshot } from 'node:v8';
import { type Logger, sleep } from '../base/index.ts';
import { boundedServer, type HttpLimits } from '../http/index.ts';
import { FatalError } from './errors.ts';
import type { HttpEndpoint } from './http.ts';

const defaultSeconds = 30;
const maxSeconds = 600;

const localHosts = new Set(['127.0.0.1', 'localhost', '[::1]']);

/** For a few operators, who wait long for a profile and load a large one through a port-forward. */
const limits: HttpLimits = {
  connections: 10,
  connectionsPerNetwork: 10,
  requestsUnderWay: 2,
  headersMs: 5_000,
  requestMs: 10_000,
  idleMs: 10_000,
  stallMs: 60_000,
  answerMs: 3 * maxSeconds * 1_000,
};

const help = `Profiles of this process. Fetch one with a port-forward to the pod, then open it in Chrome's developer tools.

  /debug/pprof/profile?seconds=30   CPU profile (.cpuprofile): which functions use the CPU
  /debug/pprof/allocs?seconds=30    sampled allocations (.heapprofile): which functions allocate memory
  /debug/pprof/heap                 heap snapshot (.heapsnapshot): which objects are in memory. The process pauses meanwhile.
                                    The snapshot contains all of the memory, secrets included: keep it confidential
  /debug/pprof/report               versions, memory, stack and open handles as JSON, without the environment

Example: curl -o agent.cpuprofile 'http://127.0.0.1:PORT/debug/pprof/profile?seconds=10'
`;

/**
 * Profiling for operators on 127.0.0.1, under the paths where a Go program has its own (`/debug/pprof/`), in the formats of
 * Node's tools. One profile at a time: a second request gets 503.
 * @throws FatalError when the port cannot be had
 */
export async function serveProfiles(options: {
  readonly port: number;
  readonly logger: Pick<Logger, 'warn'>;
}): Promise<HttpEndpoint> {
  let isBusy = false;
  const exclusively = async (response: ServerResponse, make: () => Promise<void>) => {
    if (isBusy) {
      return text(response, 503, 'another profile is in progress\n');
    }
    isBusy = true;
    try {
      await make();
    } finally {
      isBusy = false;
    }
  };
  const routes: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => Promise<void> | void>> =
    {
      '/debug/pprof/': (_, response) => text(response, 200, help),
      '/debug/pprof/profile': (request, response) => exclusively(response, () => sendCpuProfile(request, response)),
      '/debug/pprof/allocs': (request, response) => exclusively(response, () => sendAllocations(request, response)),
      '/debug/pprof/heap': (_, response) => exclusively(response, () => sendHeap(response)),
      '/debug/pprof/report': (_, response) => json(response, report()),
    };
  const bounded = boundedServer({ what: 'profiles', limits, logger: options.logger }, (request, response) => {
    if (!isFromHere(request)) {
      return text(response, 403, 'profiles are for http://127.0.0.1 and http://localhost, and not for other sites\n');
    }
    const [asked = ''] = (request.url ?? '').split('?', 1);
    const path = asked === '/debug/pprof' ? '/debug/pprof/' : asked;
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) {
      return text(response, 404, 'see /debug/pprof/\n');
    }
    Promise.resolve()
      .then(() => route(request, response))
      .catch((error: Error) => {
        if (response.headersSent) {
          response.destroy();
        } else {
          text(response, 500, `${error.message}\n`);
        }
      });
  });
  const port = await bounded.listen({ port: options.port, host: '127.0.0.1' }).catch((cause: Error) => {
    throw new FatalError(`cannot serve profiles on port ${options.port}: ${cause.message}`, { cause });
  });
  bounded.server.unref();
  return { port, close: () => bounded.close() };
}

/**
 * Whether a request names this machine, and does not come from another site's page: any page in an operator's browser reaches a
 * port-forward, under a name of its own that leads to 127.0.0.1, too.
 */
function isFromHere({ headers }: IncomingMessage): boolean {
  const host = (headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  return localHosts.has(host) && headers['sec-fetch-site'] !== 'cross-site';
}

async function sendCpuProfile(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const session = connected();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await during(request, response);
    const { profile } = await session.post('Profiler.stop');
    attachment(response, 'cpuprofile', JSON.stringify(profile));
  } finally {
    session.disconnect();
  }
}

async function sendAllocations(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const session = connected();
  try {
    await session.post('HeapProfiler.startSampling');
    await during(request, response);
    const { profile } = await session.post('HeapProfiler.stopSampling');
    attachment(response, 'heapprofile', JSON.stringify(profile));
  } finally {
    session.disconnect();
  }
}

async function sendHeap(response: ServerResponse): Promise<void> {
  const snapshot = getHeapSnapshot();
  response.writeHead(200, headers('heapsnapshot'));
  await pipeline(snapshot, response);
}

/** The diagnostic report without what may hold secrets: the environment and the command line. */
function report(): unknown {
  process.report.excludeEnv = true;
  const full = process.report.getReport() as { header?: { commandLine?: unknown } };
  if (full.header !== undefined) {
    delete full.header.commandLine;
  }
  return full;
}

function connected(): Session {
  const session = new Session();
  session.connect();
  return session;
}

/** Waits for as long as the request asks for, or until whoever asked has gone. */
async function during(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const asked = Number(new URLSearchParams((request.url ?? '').split('?')[1]).get('seconds') ?? defaultSeconds);
  const seconds = Number.isFinite(asked) && asked > 0 ? Math.min(asked, maxSeconds) : defaultSeconds;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  await sleep(seconds * 1_000, gone.signal);
}

function headers(extension: string): Record<string, string> {
  return {
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="${process.pid}-${Date.now()}.${extension}"`,
  };
}

function attachment(response: ServerResponse, extension: string, body: string): void {
  response.writeHead(200, headers(extension));
  response.end(body);
}

function text(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(body);
}

function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}
