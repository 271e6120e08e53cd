import { type BackoffOptions, backoffDelay, compareVersions, type Logger, sleep } from '../../base/index.ts';
import type { KubeClient } from '../client.ts';
import type { ListOptions } from '../client-options.ts';
import { ApiError, ConnectionError, isGone } from '../errors.ts';
import type { KubeObject, ResourceType } from '../types.ts';
import type { WatchEvent } from '../watch.ts';
import type { Answers } from './answers.ts';

/** Receives the reports of a reflector. */
export interface ReflectorSink<T extends KubeObject> {
  /**
   * Called with each object of a list that is not complete yet; the result replaces it. Thus the pages of a long list need
   * not stay in memory in full. `wentBack`: the list is older than what was reported before, so that an equal version may
   * have another content.
   */
  listed(object: T, wentBack: boolean): T;
  /**
   * The complete state, from a list. `wentBack`: the list is older than what was reported or answered before.
   * @param reached the version up to which everything was reported before; undefined: nothing was
   */
  replaced(objects: T[], wentBack: boolean, reached: string | undefined): void;
  /** One change since. */
  changed(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void;
  /** A list or watch failed; it will be repeated. */
  failed(error: unknown): void;
}

/** Counters since the start. */
export interface ReflectorStats {
  /** Complete lists; more than one means that changes may have been skipped over. */
  lists: number;
  /** Watches that the server accepted. */
  watches: number;
  events: number;
  bookmarks: number;
  /** Failed lists and failed or broken watches. */
  errors: number;
  /** Why the last list or watch failed; undefined while the last one works. */
  problem?: string | undefined;
}

/** What a reflector needs of a client; one that does not tell when its server answers again is asked after each delay. */
export type ReflectedClient = Pick<KubeClient, 'listPage' | 'watch'> &
  Partial<Pick<KubeClient, 'answers' | 'answersAgain'>>;

/** Options of `reflect`. */
export interface ReflectorOptions<T extends KubeObject> {
  client: ReflectedClient;
  type: ResourceType<T>;
  selection: ListOptions;
  pageSize: number;
  backoff: BackoffOptions;
  /** What the server answered to this client beside lists and watches. */
  answers: Answers;
  /** Longest life of one watch in seconds; each gets a random one between this and half of it. */
  watchSeconds: number;
  sink: ReflectorSink<T>;
  stats: ReflectorStats;
  logger: Logger | undefined;
  signal: AbortSignal;
}

/** A watch that ends sooner than this without an event counts as failed, so that the next one waits for the back-off. */
const shortestWatchMs = 1_000;

/**
 * Mirrors a kind until aborted: list once, then watch from there, one watch after the other. A list is repeated only
 * when the server no longer knows what happened since the version we have, or has gone back behind it. Resumes at once after a
 * watch that ended in good order, and with back-off after a failure; a watch that works resets the back-off, and so does a
 * server that could not be reached and answers again.
 */
export async function reflect<T extends KubeObject>(options: ReflectorOptions<T>): Promise<void> {
  const { type, stats, logger, signal, backoff, watchSeconds } = options;
  let version: string | undefined;
  /** The last version we had, also when it is of no use any more. */
  let reached: string | undefined;
  /** The server may be another one since the last watch, or be restored from a backup. */
  let isDoubtful = false;
  let failures = 0;
  /** Of these: how often the history was gone. */
  let relists = 0;
  while (!signal.aborted) {
    try {
      if (version === undefined) {
        const listed = await listAll(options, reached);
        stats.lists++;
        options.sink.replaced(listed.items, listed.wentBack, reached);
        options.answers.listed();
        version = listed.resourceVersion;
        reached = version;
        stats.problem = undefined;
      } else if (isDoubtful) {
        await checkHistory(options, version);
      }
      isDoubtful = true;
      const since = version;
      const startedAt = performance.now();
      const seconds = Math.ceil((watchSeconds / 2) * (1 + Math.random()));
      const watch = await openWatch(options, since, seconds);
      stats.watches++;
      for await (const event of watch) {
        failures = 0;
        relists = 0;
        stats.problem = undefined;
        version = take(event, version, options);
        reached = version;
      }
      const lasted = performance.now() - startedAt;
      if (version === since && lasted < shortestWatchMs) {
        throw new Error('the watch ended as soon as it had begun');
      }
      isDoubtful = lasted < seconds * 1_000;
      failures = 0;
      relists = 0;
    } catch (error) {
      if (signal.aborted) {
        break;
      }
      stats.errors++;
      stats.problem = error instanceof Error ? error.message : String(error);
      options.sink.failed(error);
      const mustRelist = isGone(error) || isVersionFromTheFuture(error);
      if (mustRelist) {
        version = undefined;
      }
      // A server that says so has come back, if it was away.
      relists += mustRelist ? 1 : 0;
      failures = mustRelist ? relists : failures + 1;
      const delayMs = relists === 1 && mustRelist ? 0 : backoffDelay(failures, backoff);
      const fields = { error, kind: type.kind, relist: mustRelist, failures, retryInMs: Math.round(delayMs) };
      if (failures <= 2) {
        logger?.debug(fields, 'watch interrupted');
      } else {
        logger?.warn(fields, 'cannot list or watch');
      }
      const wasAway = error instanceof ConnectionError && !error.sent;
      if (!wasAway || options.client.answersAgain === undefined) {
        await sleep(delayMs, signal);
      } else if (await options.client.answersAgain(delayMs, signal)) {
        failures = 0;
      }
    }
  }
}

function take<T extends KubeObject>(event: WatchEvent<T>, version: string, options: ReflectorOptions<T>): string {
  const { stats, sink, answers } = options;
  if (event.type === 'BOOKMARK') {
    stats.bookmarks++;
    if (isBefore(event.resourceVersion, version)) {
      throw wentBack(event.resourceVersion, version);
    }
    const reached = event.resourceVersion || version;
    answers.shown(reached);
    return reached;
  }
  stats.events++;
  sink.changed(event.type, event.object);
  const reached = event.object.metadata.resourceVersion ?? version;
  answers.shown(reached, event.type === 'DELETED' ? event.object : undefined);
  return reached;
}

function openWatch<T extends KubeObject>(
  options: ReflectorOptions<T>,
  resourceVersion: string,
  timeoutSeconds: number,
) {
  const { client, type, selection, signal } = options;
  return client.watch(type, { ...selection, resourceVersion, timeoutSeconds, signal });
}

/**
 * Asks which version the server has. A server that was restored from a backup accepts a watch from a version that it has not
 * reached yet, and says nothing until it has. One object is enough, of whatever labels: to find one with labels that few
 * have, a server reads them all. Rights may depend on the name, which is a field.
 * @throws ApiError Gone when the server's version is before ours, or before one that it answered
 */
async function checkHistory<T extends KubeObject>(options: ReflectorOptions<T>, version: string): Promise<void> {
  const { client, type, selection, signal } = options;
  const { namespace, fieldSelector } = selection;
  const latest = options.answers.latest(version);
  const page = await client.listPage(type, { namespace, fieldSelector, limit: 1, metadataOnly: true, signal });
  if (isBefore(page.resourceVersion, latest)) {
    throw wentBack(page.resourceVersion, latest);
  }
}

/**
 * All pages of one snapshot. When the continue token expires, the list starts again from the first page;
 * when that fails too, the list is read without pages.
 */
async function listAll<T extends KubeObject>(
  options: ReflectorOptions<T>,
  reached: string | undefined,
): Promise<{ items: T[]; resourceVersion: string; wentBack: boolean }> {
  const { client, type, selection, pageSize, answers, signal } = options;
  answers.listBegins();
  const latest = answers.latest(reached);
  for (let attempt = 1; ; attempt++) {
    const limit = attempt <= 2 ? pageSize : undefined;
    const items: T[] = [];
    let token: string | undefined;
    let resourceVersion: string | undefined;
    try {
      do {
        const page = await client.listPage(type, { ...selection, limit, continue: token, signal });
        resourceVersion ??= page.resourceVersion;
        const wentBack = isBefore(resourceVersion, latest);
        for (const item of page.items) {
          items.push(options.sink.listed(item, wentBack));
        }
        token = page.continue;
      } while (token);
      const wentBack = isBefore(resourceVersion, latest) || items.some((item) => answers.contradict(item));
      return { items, resourceVersion, wentBack };
    } catch (error) {
      if (!isGone(error) || token === undefined) {
        throw error;
      }
      options.logger?.debug({ error, kind: type.kind, attempt }, 'the list expired, starting again');
    }
  }
}

/** The server's history ends before our version: its data was restored from a backup. */
function isVersionFromTheFuture(error: unknown): boolean {
  return (
    error instanceof ApiError && (error.details?.causes?.some((c) => c.reason === 'ResourceVersionTooLarge') ?? false)
  );
}

/** False when they cannot be compared, or one is unknown. */
function isBefore(version: string, other: string | undefined): boolean {
  return (compareVersions(version, other) ?? 0) < 0;
}

function wentBack(now: string, before: string | undefined): ApiError {
  return new ApiError({ status: 410, message: `the server went back from resource version ${before} to ${now}` });
}
