import { spawn } from 'node:child_process';
import http from 'node:http';
import https from 'node:https';
import { connect } from 'node:net';
import { afterRunning } from './patience.ts';
import type { KubeletContainer, Probe } from './types.ts';

/** What a probe needs to know of the container that it looks at. */
export interface ProbeTarget {
  container: KubeletContainer;
  /** Where a port of the container is reached on this machine. */
  locate(port: number): { host: string; port: number };
  /** A command that runs another command inside the container. */
  inside(command: string[]): { command: string; args: string[] };
}

/** Tries a probe once. Resolves to undefined on success, else to what a kubelet says. Never rejects. */
export async function tryProbe(probe: Probe, target: ProbeTarget): Promise<string | undefined> {
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000;
  if (probe.httpGet) {
    return tryHttp(probe.httpGet, target, timeoutMs);
  }
  if (probe.tcpSocket) {
    return tryTcp(target.locate(portNumber(probe.tcpSocket.port, target.container)), timeoutMs);
  }
  if (probe.grpc) {
    return tryTcp(target.locate(probe.grpc.port), timeoutMs);
  }
  if (probe.exec) {
    return tryCommand(target.inside(probe.exec.command ?? []), timeoutMs);
  }
  return 'the probe has no action';
}

/** The number of a port that may be given by its name. */
export function portNumber(port: number | string, container: KubeletContainer): number {
  if (typeof port === 'number') {
    return port;
  }
  const named = container.ports?.find((candidate) => candidate.name === port)?.containerPort;
  return named ?? Number.parseInt(port, 10);
}

function tryHttp(
  get: NonNullable<Probe['httpGet']>,
  target: ProbeTarget,
  timeoutMs: number,
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const at = target.locate(portNumber(get.port, target.container));
  const secure = get.scheme?.toUpperCase() === 'HTTPS';
  const headers = Object.fromEntries((get.httpHeaders ?? []).map((header) => [header.name, header.value]));
  const path = get.path ? (get.path.startsWith('/') ? get.path : `/${get.path}`) : '/';
  const options = { ...at, path, agent: false, headers: { 'user-agent': 'kube-probe/1.36', ...headers } };
  const request = secure ? https.get({ ...options, rejectUnauthorized: false }) : http.get(options);
  const callOff = afterRunning(timeoutMs, () => request.destroy(new Error('context deadline exceeded')));
  request.once('response', (response) => {
    response.resume();
    const status = response.statusCode ?? 0;
    resolve(status >= 200 && status < 400 ? undefined : `HTTP probe failed with statuscode: ${status}`);
    response.once('close', callOff);
  });
  request.on('error', (error) => {
    callOff();
    resolve(`Get "${secure ? 'https' : 'http'}://${at.host}:${at.port}${path}": ${error.message}`);
  });
  return promise;
}

function tryTcp(at: { host: string; port: number }, timeoutMs: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect(at);
  const callOff = afterRunning(timeoutMs, () => socket.destroy(new Error('i/o timeout')));
  socket.once('connect', () => {
    resolve(undefined);
    socket.destroy();
  });
  socket.once('error', (error) => resolve(`dial tcp ${at.host}:${at.port}: ${error.message}`));
  socket.once('close', callOff);
  return promise;
}

function tryCommand(run: { command: string; args: string[] }, timeoutMs: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const child = spawn(run.command, run.args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const collect = (chunk: Buffer) => {
    if (output.length < 2000) {
      output += chunk.toString();
    }
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const callOff = afterRunning(timeoutMs, () => {
    resolve(`command timed out after ${timeoutMs / 1000}s`);
    child.kill('SIGKILL');
  });
  child.once('error', (error) => resolve(error.message));
  child.once('close', (code) => {
    callOff();
    resolve(code === 0 ? undefined : output.trim() || `command exited with code ${code}`);
  });
  return promise;
}

/**
 * Runs a probe for as long as its container runs and tells when its verdict changes: after `successThreshold`
 * successes or `failureThreshold` failures in a row.
 */
export class ProbeLoop {
  readonly #probe: Probe;
  readonly #target: ProbeTarget;
  readonly #verdict: (passed: boolean, message: string) => void;
  readonly #eager: boolean;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #passedOnce = false;
  #successes = 0;
  #failures = 0;
  /** Failures before this moment do not count. */
  #countFrom: number;

  /**
   * @param eager look four times a second, without the initial delay, until the first success, which saves every test
   *   seconds. Failures still count as they would at the probe's own pace.
   */
  constructor(probe: Probe, target: ProbeTarget, eager: boolean, verdict: (passed: boolean, message: string) => void) {
    this.#probe = probe;
    this.#target = target;
    this.#eager = eager;
    this.#verdict = verdict;
    const delayMs = (probe.initialDelaySeconds ?? 0) * 1000;
    this.#countFrom = Date.now() + delayMs;
    this.#timer = setTimeout(() => this.#round(), eager ? 50 : delayMs);
  }

  /** Stops; no verdict comes after. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #round(): Promise<void> {
    const begun = Date.now();
    const problem = await tryProbe(this.#probe, this.#target);
    if (this.#stopped) {
      return;
    }
    const periodMs = (this.#probe.periodSeconds ?? 10) * 1000;
    const waitMs = this.#eager && problem !== undefined && !this.#passedOnce ? Math.min(250, periodMs) : periodMs;
    this.#timer = setTimeout(() => this.#round(), Math.max(0, begun + waitMs - Date.now()));
    if (problem === undefined) {
      this.#passedOnce = true;
      this.#failures = 0;
      this.#successes++;
      if (this.#successes >= (this.#probe.successThreshold ?? 1)) {
        this.#verdict(true, '');
      }
    } else if (begun >= this.#countFrom) {
      this.#countFrom = begun + periodMs - 100;
      this.#successes = 0;
      this.#failures++;
      if (this.#failures >= (this.#probe.failureThreshold ?? 3)) {
        this.#verdict(false, problem);
      }
    }
  }
}
