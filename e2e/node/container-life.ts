import { rfc3339 } from '../../lib/kube/index.ts';
import { type ContainerExit, ContainerRun, type ContainerSurroundings } from './container.ts';
import { ContainerError } from './errors.ts';
import type { ContainerLog } from './logs.ts';
import { ProbeLoop } from './probes.ts';
import type { ContainerFacts } from './status.ts';
import type { ContainerState, ContainerStatus, KubeletContainer, KubeletPod, Probe } from './types.ts';

/** When a container that ended is started again. */
export interface RestartBackoff {
  /** The first restart is immediate, the second comes after this, and so on with doubled waits. */
  initialMs: number;
  maxMs: number;
  /** A run this long makes the next failure a first one again. */
  resetAfterMs: number;
}

/** What a container's life reports to its pod. */
export interface ContainerNews {
  /** Something changed: the pod's status may be another now. */
  changed(): void;
  normal(reason: string, message: string): void;
  warning(reason: string, message: string): void;
}

/** One container of a pod, over all its runs. */
export class ContainerLife {
  readonly container: KubeletContainer;
  readonly #isInit: boolean;
  readonly #around: ContainerSurroundings;
  readonly #backoff: RestartBackoff;
  readonly #news: ContainerNews;
  #state: ContainerState = { waiting: { reason: 'ContainerCreating' } };
  #lastState: ContainerState = {};
  #restartCount = 0;
  #attempt = 0;
  #failures = 0;
  #startAt = 0;
  /** When it was last seen whether the time to start has come. */
  #lookedAt = 0;
  #ready = false;
  #started = false;
  #stopping = false;
  #run: ContainerRun | undefined;
  #logs: ContainerLog[] = [];
  #probes: ProbeLoop[] = [];
  #pod: KubeletPod;

  constructor(options: {
    container: KubeletContainer;
    isInit: boolean;
    pod: KubeletPod;
    around: ContainerSurroundings;
    backoff: RestartBackoff;
    news: ContainerNews;
  }) {
    this.container = options.container;
    this.#isInit = options.isInit;
    this.#pod = options.pod;
    this.#around = options.around;
    this.#backoff = options.backoff;
    this.#news = options.news;
    this.#remember(options.pod);
  }

  /** What the pod's status says of this container. */
  get facts(): ContainerFacts {
    return {
      container: this.container,
      state: this.#state,
      lastState: this.#lastState,
      restartCount: this.#restartCount,
      ready: this.#ready,
      started: this.#started,
      containerId: this.#attempt > 0 ? this.#id() : undefined,
    };
  }

  /** The run under way. */
  get run(): ContainerRun | undefined {
    return this.#run;
  }

  /** The log of the latest run, or of the one before. */
  log(previous: boolean): ContainerLog | undefined {
    return this.#logs.at(previous ? -2 : -1);
  }

  /** When `proceed` is needed even if nothing changes, in milliseconds since the epoch. */
  get nextAt(): number {
    return this.#state.waiting && this.#startAt > this.#lookedAt ? this.#startAt : Number.POSITIVE_INFINITY;
  }

  /** Says why the container does not start yet. */
  wait(reason: string): void {
    if (this.#state.waiting && !this.#lastState.terminated) {
      this.#state = { waiting: { reason } };
    }
  }

  /** Starts the container if it should run, does not, and its time has come. */
  async proceed(pod: KubeletPod): Promise<void> {
    this.#pod = pod;
    this.#lookedAt = Date.now();
    if (this.#run || this.#stopping || this.#state.terminated || this.#lookedAt < this.#startAt) {
      return;
    }
    const { image } = this.container;
    if (this.#state.waiting?.reason === 'ErrImagePull') {
      const message = `Back-off pulling image "${image}": ErrImagePull: ${this.#state.waiting.message}`;
      this.#state = { waiting: { reason: 'ImagePullBackOff', message } };
      this.#news.normal('BackOff', `Back-off pulling image "${image}"`);
      this.#startAt = Number.MAX_SAFE_INTEGER; // the table of images does not change
      return;
    }
    try {
      const run = await ContainerRun.start(pod, this.container, this.#attempt + 1, this.#around);
      this.#began(run);
    } catch (error) {
      this.#refused(error);
    }
  }

  /** Stops the container for good: SIGTERM, and SIGKILL after the grace period. Resolves when it has ended. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    this.#endProbes();
    await this.#terminate(graceMs);
    if (this.#state.waiting && !this.#state.terminated) {
      const at = rfc3339(new Date());
      this.#state = this.#lastState.terminated
        ? { terminated: this.#lastState.terminated }
        : { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown', startedAt: at, finishedAt: at } };
    }
  }

  /** Whether nothing of the container runs. */
  get stopped(): boolean {
    return this.#run === undefined;
  }

  async #terminate(graceMs: number): Promise<void> {
    const run = this.#run;
    if (!run) {
      return;
    }
    if (graceMs > 0) {
      this.#news.normal('Killing', `Stopping container ${this.container.name}`);
    }
    const sleep = this.container.lifecycle?.preStop?.sleep?.seconds;
    const kill = setTimeout(() => run.kill(), graceMs);
    const term = setTimeout(() => run.signal('SIGTERM'), Math.min((sleep ?? 0) * 1000, graceMs));
    await run.exited;
    clearTimeout(kill);
    clearTimeout(term);
  }

  #began(run: ContainerRun): void {
    if (this.#lastState.terminated) {
      this.#restartCount++;
    }
    this.#attempt++;
    this.#run = run;
    this.#logs = [...this.#logs.slice(-1), run.log];
    this.#state = { running: { startedAt: rfc3339(run.startedAt) } };
    this.#started = this.container.startupProbe === undefined;
    this.#ready = this.#started && this.container.readinessProbe === undefined;
    this.#news.normal('Started', `Started container ${this.container.name}`);
    this.#watchProbes(run);
    run.exited.then((exit) => this.#ended(run, exit));
    this.#news.changed();
  }

  #ended(run: ContainerRun, exit: ContainerExit): void {
    this.#endProbes();
    this.#run = undefined;
    this.#ready = false;
    this.#started = false;
    const ranMs = Date.now() - run.startedAt.getTime();
    this.#failures = ranMs >= this.#backoff.resetAfterMs ? 1 : this.#failures + 1;
    this.#terminated(
      {
        exitCode: exit.exitCode,
        ...(exit.signal === undefined ? {} : { signal: exit.signal }),
        reason: exit.exitCode === 0 ? 'Completed' : 'Error',
        startedAt: rfc3339(run.startedAt),
        finishedAt: rfc3339(new Date()),
        containerID: this.#id(),
      },
      `back-off ${this.#delayMs() / 1000}s restarting failed container=${this.container.name} pod=${this.#pod.metadata.name}_${this.#pod.metadata.namespace}(${this.#pod.metadata.uid})`,
    );
  }

  #terminated(terminated: NonNullable<ContainerState['terminated']>, message: string): void {
    if (this.#stopping || !this.#restarts(terminated.exitCode)) {
      this.#state = { terminated };
    } else {
      const delayMs = this.#delayMs();
      this.#lastState = { terminated };
      this.#startAt = Date.now() + delayMs;
      this.#state = { waiting: { reason: 'CrashLoopBackOff', message } };
      if (delayMs > 0) {
        this.#news.warning('BackOff', message);
      }
    }
    this.#news.changed();
  }

  #restarts(exitCode: number): boolean {
    const policy = this.#pod.spec.restartPolicy ?? 'Always';
    if (this.container.restartPolicy === 'Always') {
      return true;
    }
    if (policy === 'Never') {
      return false;
    }
    return exitCode !== 0 || (policy === 'Always' && !this.#isInit);
  }

  #delayMs(): number {
    if (this.#failures <= 1) {
      return 0;
    }
    return Math.min(this.#backoff.maxMs, this.#backoff.initialMs * 2 ** (this.#failures - 2));
  }

  #refused(error: unknown): void {
    const reason = error instanceof ContainerError ? error.reason : 'RunContainerError';
    const message = error instanceof Error ? error.message : String(error);
    const isNew = this.#state.waiting?.message !== message;
    if (isNew) {
      this.#news.warning('Failed', `Error: ${message}`);
    }
    if (reason === 'StartError') {
      this.#attempt++;
      this.#failures++;
      if (this.#lastState.terminated) {
        this.#restartCount++;
      }
      const at = rfc3339(new Date());
      this.#terminated({ exitCode: 128, reason, message, startedAt: at, finishedAt: at }, message);
      return;
    }
    this.#state = { waiting: { reason, message } };
    // A missing Secret or ConfigMap is tried again when it appears; the rest after a while.
    if (reason === 'ErrImagePull' || reason === 'RunContainerError') {
      this.#startAt = Date.now() + 1_000;
    }
    if (reason === 'InvalidImageName') {
      this.#startAt = Number.MAX_SAFE_INTEGER;
    }
  }

  #watchProbes(run: ContainerRun): void {
    const { startupProbe } = this.container;
    if (!startupProbe) {
      this.#watchRunning(run);
      return;
    }
    this.#probe(run, startupProbe, true, (passed, message) => {
      if (!passed) {
        this.#unhealthy(run, 'Startup', message);
      }
      if (!passed || this.#started) {
        return;
      }
      this.#started = true;
      this.#ready = this.container.readinessProbe === undefined;
      this.#endProbes();
      this.#watchRunning(run);
      this.#news.changed();
    });
  }

  #watchRunning(run: ContainerRun): void {
    const { readinessProbe, livenessProbe } = this.container;
    if (readinessProbe) {
      this.#probe(run, readinessProbe, true, (passed, message) => {
        if (!passed) {
          this.#news.warning('Unhealthy', `Readiness probe failed: ${message}`);
        }
        if (this.#ready === passed) {
          return;
        }
        this.#ready = passed;
        this.#news.changed();
      });
    }
    if (livenessProbe) {
      this.#probe(run, livenessProbe, false, (passed, message) => {
        if (!passed) {
          this.#unhealthy(run, 'Liveness', message);
        }
      });
    }
  }

  #unhealthy(run: ContainerRun, which: string, message: string): void {
    this.#endProbes();
    this.#news.warning('Unhealthy', `${which} probe failed: ${message}`);
    if (this.#run === run) {
      void this.#terminate((this.#pod.spec.terminationGracePeriodSeconds ?? 30) * 1000);
    }
  }

  #probe(run: ContainerRun, probe: Probe, eager: boolean, verdict: (passed: boolean, message: string) => void): void {
    const target = {
      container: this.container,
      locate: (port: number) => {
        const substitute = run.substitutes.get(port);
        return substitute === undefined
          ? { host: this.#around.place.address, port }
          : { host: '127.0.0.1', port: substitute };
      },
      inside: (command: string[]) => run.inside(command),
    };
    this.#probes.push(new ProbeLoop(probe, target, eager, verdict));
  }

  #endProbes(): void {
    for (const probe of this.#probes) {
      probe.stop();
    }
    this.#probes = [];
  }

  #id(): string {
    return `process://${this.#pod.metadata.uid}/${this.container.name}/${this.#attempt}`;
  }

  /** Takes over the count of a node that has gone together with the container's processes. */
  #remember(pod: KubeletPod): void {
    const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
    const before: ContainerStatus | undefined = all.find((status) => status.name === this.container.name);
    if (!before?.containerID) {
      return;
    }
    this.#restartCount = before.restartCount;
    const startedAt =
      before.state.running?.startedAt ?? before.state.terminated?.startedAt ?? pod.metadata.creationTimestamp;
    this.#lastState = {
      terminated: before.state.terminated ?? {
        exitCode: 137,
        reason: 'ContainerStatusUnknown',
        message: 'The container could not be located when the pod was terminated',
        startedAt: startedAt ?? rfc3339(new Date()),
        finishedAt: rfc3339(new Date()),
      },
    };
  }
}
