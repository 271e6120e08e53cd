import { isEqual, mergePatchBetween } from '../../lib/base/index.ts';
import { ApiError, isRetryable, keyOf, parseKey, type Requeue } from '../../lib/kube/index.ts';
import { ForeignObjectError, fieldManager } from '../hub/index.ts';
import type { BasicDeps } from './basic-deps.ts';
import { placeOfWork } from './caches.ts';
import { applied, feedbackOf } from './feedback.ts';
import { isArgoCdFinalizer, problemCondition, pullKeys, pullWorkName } from './names.ts';
import { claimOfAgent, obstacleTo } from './obstacle.ts';
import { nextPayload, planRequests } from './requests.ts';
import {
  type Payload,
  type PullApplication,
  type PullWork,
  payloadIn,
  pullApplications,
  pullWorks,
} from './resources.ts';
import { type PullReport, statusFor } from './status.ts';
import { type PullTarget, placeKey, pullIntentOf } from './target.ts';
import { applicationKeyOf, payloadFor, workFor } from './work.ts';

/**
 * Brings one Application of the hub, its work and its status into line. All of it is worked out of what is there: after
 * any interruption the next look continues where the last one ended.
 */
export class ApplicationReconciler {
  readonly #deps: BasicDeps;
  /** Since when a change of an Application waits for an operation, by the Application's key. */
  readonly #heldSince = new Map<string, number>();

  constructor(deps: BasicDeps) {
    this.#deps = deps;
  }

  /** One look at the Application `namespace/name`, which may be gone. */
  async reconcile(key: string, signal: AbortSignal): Promise<Requeue | undefined> {
    const { caches, client } = this.#deps;
    const works = caches.works.byIndex('application', key);
    const application = caches.applications.get(parseKey(key));
    if (application === undefined) {
      this.#heldSince.delete(key);
      // Without the label it is not in the cache: only the server can tell what became of it.
      const live = await client.get(pullApplications, parseKey(key), signal);
      // While its finalizers hold an Application, it is released here, after its work. So of one that is gone and has a
      // work, somebody took them off, or it never had any: what it deployed stays.
      if (live === undefined) {
        await this.#retire(works, [], 'its Application is gone', signal);
      } else if (live.metadata.labels?.[pullKeys.pull] === undefined) {
        await this.#remove(works, 'its label was removed', signal);
        await this.#report(live, live, { feedback: {} }, signal);
      }
      return undefined;
    }
    const wish = pullIntentOf(application);
    const claim = claimOfAgent(application, this.#deps);
    if (application.metadata.deletionTimestamp) {
      const isOthers = wish.kind === 'none' || claim !== undefined;
      return isOthers && works.length === 0 ? undefined : await this.#leave(application, works, signal);
    }
    if (wish.kind === 'none') {
      this.#heldSince.delete(key);
      await this.#remove(works, 'it is not for a managed cluster any more', signal);
      await this.#report(application, application, { feedback: {} }, signal);
      return undefined;
    }
    const obstacle = wish.kind === 'wrong' ? wish.problem : (claim ?? obstacleTo(application, wish.target, this.#deps));
    if (wish.kind === 'wrong' || obstacle !== undefined) {
      await this.#refuse(application, works, obstacle ?? '', signal);
      return undefined;
    }
    return await this.#carry(application, wish.target, works, signal);
  }

  async #carry(
    application: PullApplication,
    target: PullTarget,
    works: PullWork[],
    signal: AbortSignal,
  ): Promise<Requeue | undefined> {
    const { now, newId } = this.#deps;
    const existing = await this.#workOf(application, target, signal);
    if (existing.work?.metadata.deletionTimestamp) {
      return undefined; // its end leads here again
    }
    const isSamePlace = existing.work !== undefined && placeOfWork(existing.work) === placeKey(target);
    const carrier = isSamePlace
      ? { payload: payloadIn(existing.work), feedback: feedbackOf(existing.work) }
      : { payload: undefined, feedback: {} };
    const plan = planRequests(application, carrier, newId(), now());
    let requeue: Requeue | undefined;
    let refusal: Error | undefined;
    try {
      if (!plan.isBeginning) {
        requeue = await this.#deliver(application, target, existing, plan, works, signal);
      }
    } catch (error) {
      if (!isRefusal(error)) {
        throw error;
      }
      refusal = error;
    }
    const { problem } = existing.work ? applied(existing.work) : {};
    const onCluster = problem && `managed cluster ${target.cluster} does not take it: ${problem}`;
    const report: PullReport = {
      feedback: carrier.feedback,
      cluster: target.cluster,
      problem: refusal ? `the hub does not take its ManifestWork: ${refusal.message}` : onCluster,
    };
    if (report.problem) {
      this.#warn(application, 'NotApplied', report.problem);
    }
    await this.#report(application, plan.application ?? application, report, signal);
    if (refusal) {
      throw refusal;
    }
    return requeue;
  }

  /** Writes the work, unless that would disturb an operation that is under way, and removes those that it replaces. */
  async #deliver(
    application: PullApplication,
    target: PullTarget,
    existing: { name: string; work: PullWork | undefined },
    plan: ReturnType<typeof planRequests>,
    works: PullWork[],
    signal: AbortSignal,
  ): Promise<Requeue | undefined> {
    const { logger, patienceMs } = this.#deps;
    const key = keyOf(application);
    const wanted = payloadFor(application, target, plan.requests);
    let payload = nextPayload(plan, payloadIn(existing.work), wanted);
    if (payload === undefined) {
      const since = this.#heldSince.get(key) ?? performance.now();
      this.#heldSince.set(key, since);
      const left = since + patienceMs - performance.now();
      if (left > 0) {
        return { requeueAfterMs: left };
      }
      logger.warn(
        { application: key, cluster: target.cluster },
        'a change no longer waits for the operation under way',
      );
      payload = wanted;
    }
    this.#heldSince.delete(key);
    const desired = workFor(application, target, payload, existing.name);
    const cached = this.#deps.caches.works.get(desired.metadata);
    const { changed, object } = await this.#deps.works.ensure(pullWorks, desired, cached, {
      exact: ['spec.workload'],
      guarded: true,
      signal,
    });
    if (changed) {
      logger.info({ application: key, work: keyOf(object) }, 'sent to its cluster');
    }
    const place = placeKey(target);
    const others = works.filter(
      (work) => work.metadata.namespace !== target.cluster || work.metadata.name !== existing.name,
    );
    // One that brings the same copy goes when the copy has its new owner: it would take the copy with it.
    const replaced = others.filter((work) => placeOfWork(work) !== place || applied(object).tried);
    await this.#remove(replaced, 'another work has its place', signal);
    return undefined;
  }

  /** The work of an Application, or the name that it will have. */
  async #workOf(application: PullApplication, target: PullTarget, signal: AbortSignal) {
    const { caches, works } = this.#deps;
    const key = keyOf(application);
    for (const isTaken of [false, true]) {
      const at = { namespace: target.cluster, name: pullWorkName(application.metadata, isTaken) };
      const work = await works.current(pullWorks, at, caches.works.get(at), signal);
      if (work === undefined || applicationKeyOf(work) === key || isTaken) {
        return { name: at.name, work };
      }
    }
    throw new Error(`Application ${key}: no name for its work`);
  }

  /** The Application is being deleted: its copy goes first, and what Argo CD deployed by it. */
  async #leave(application: PullApplication, works: PullWork[], signal: AbortSignal): Promise<Requeue | undefined> {
    const { client, caches, logger } = this.#deps;
    this.#heldSince.delete(keyOf(application));
    const finalizers = application.metadata.finalizers ?? [];
    await this.#retire(works, finalizers, 'its Application is being deleted', signal);
    if (!finalizers.some(isArgoCdFinalizer)) {
      return undefined;
    }
    // A cluster that is gone will not remove anything.
    const waiting = works.filter(({ metadata }) => caches.managedClusters.get({ name: metadata.namespace ?? '' }));
    const [first] = waiting;
    if (first) {
      const problem = `waiting until managed cluster ${first.metadata.namespace} has removed it; ManifestWork ${keyOf(first)} is there until then`;
      await this.#report(application, application, { feedback: {}, problem }, signal);
      return undefined;
    }
    const wish = pullIntentOf(application);
    if (wish.kind === 'wanted' && caches.managedClusters.get({ name: wish.target.cluster })) {
      // A work that was written a moment ago may not be in the cache yet.
      const { work } = await this.#workOf(application, wish.target, signal);
      if (work && applicationKeyOf(work) === keyOf(application)) {
        return { requeueAfterMs: 200 };
      }
    }
    const { namespace, name, uid, resourceVersion } = application.metadata;
    const left = finalizers.filter((one) => !isArgoCdFinalizer(one));
    const patch = { metadata: { uid, resourceVersion, finalizers: left.length > 0 ? left : null } };
    await client.mergePatch(pullApplications, { namespace, name }, patch, { fieldManager, signal });
    logger.info({ application: keyOf(application) }, 'gone from its cluster, and from the hub');
    return undefined;
  }

  /**
   * Removes works whose Application goes, or is gone, with these finalizers. By them the cluster decides what becomes of
   * what it deployed, so the copy must have them before it goes: someone who deletes an Application often sets or takes
   * off the finalizer a moment before, and the work agent may only see the last of several changes.
   */
  async #retire(
    works: readonly PullWork[],
    finalizers: readonly string[],
    why: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { caches, logger } = this.#deps;
    for (const work of works) {
      if (work.metadata.deletionTimestamp) {
        continue;
      }
      const payload = payloadIn(work);
      if (payload && caches.managedClusters.get({ name: work.metadata.namespace ?? '' })) {
        const isOthers = (one: string) => !isArgoCdFinalizer(one);
        const had = payload.metadata.finalizers ?? [];
        const wanted = [...had.filter(isOthers), ...finalizers.filter(isArgoCdFinalizer)];
        if (!isEqual(had.toSorted(), wanted.toSorted())) {
          const desired = withFinalizers(work, payload, wanted);
          await this.#deps.works.ensure(pullWorks, desired, work, { exact: ['spec.workload'], guarded: true, signal });
          logger.info(
            { work: keyOf(work), finalizers: wanted },
            'its copy gets the last finalizers of its Application',
          );
          continue;
        }
        // Of the first generation there is no other version that the cluster could have.
        if ((work.metadata.generation ?? 1) > 1 && !applied(work).tried) {
          continue;
        }
      }
      await this.#remove([work], why, signal);
    }
  }

  async #remove(works: readonly PullWork[], why: string, signal: AbortSignal): Promise<void> {
    for (const work of works) {
      if (work.metadata.deletionTimestamp) {
        continue;
      }
      await this.#deps.works.remove(pullWorks, work, signal);
      this.#deps.logger.info({ application: applicationKeyOf(work), work: keyOf(work), why }, 'removed a work');
    }
  }

  /**
   * It cannot go where it asks to go. What it has on a cluster stays: a slip of the pen must not take an Application down.
   * Only the works of clusters that are gone are of no use to anybody.
   */
  async #refuse(application: PullApplication, works: PullWork[], problem: string, signal: AbortSignal): Promise<void> {
    const isStranded = ({ metadata }: PullWork) =>
      this.#deps.caches.managedClusters.get({ name: metadata.namespace ?? '' }) === undefined;
    await this.#remove(works.filter(isStranded), 'its ManagedCluster is gone', signal);
    this.#warn(application, 'NotPulled', problem);
    await this.#report(application, application, { feedback: {}, problem }, signal);
  }

  /** Says what is wrong, once: as long as the condition is there, everybody has been told. */
  #warn(application: PullApplication, reason: string, problem: string): void {
    if (application.status?.conditions?.some(({ type, message }) => type === problemCondition && message === problem)) {
      return;
    }
    this.#deps.events.warning(application, reason, problem);
    this.#deps.logger.warn({ application: keyOf(application), problem }, 'an Application does not reach its cluster');
  }

  /** Writes what differs: of the Application what `next` says, and its status. */
  async #report(
    application: PullApplication,
    next: PullApplication,
    report: PullReport,
    signal: AbortSignal,
  ): Promise<void> {
    const status = statusFor(next, report, this.#deps.now());
    const desired: PullApplication = Object.keys(status).length > 0 ? { ...next, status } : next;
    const patch = mergePatchBetween(application, desired);
    if (patch === undefined) {
      return;
    }
    const { namespace, name, uid, resourceVersion } = application.metadata;
    const { metadata } = patch as { metadata?: object };
    // What differs was worked out from this version: another one is a conflict, and looked at again.
    const guarded = { ...patch, metadata: { ...metadata, uid, resourceVersion } };
    await this.#deps.client.mergePatch(pullApplications, { namespace, name }, guarded, { fieldManager, signal });
  }
}

/** Whether the hub refuses a write for a reason that its next try will not change: something to tell the user. */
function isRefusal(error: unknown): error is Error {
  return error instanceof ForeignObjectError || (error instanceof ApiError && !isRetryable(error));
}

/** The same work, with other finalizers on its copy. */
function withFinalizers(work: PullWork, payload: Payload, finalizers: readonly string[]): PullWork {
  const { finalizers: _, ...metadata } = payload.metadata;
  const copy = {
    ...payload,
    metadata: { ...metadata, ...(finalizers.length > 0 ? { finalizers: [...finalizers] } : {}) },
  };
  const { namespace, name, labels, annotations } = work.metadata;
  return {
    metadata: {
      name,
      ...(namespace ? { namespace } : {}),
      ...(labels ? { labels } : {}),
      ...(annotations ? { annotations } : {}),
    },
    spec: { ...work.spec, workload: { manifests: [copy] } },
  };
}
