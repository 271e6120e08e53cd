import { isEqual, mergePatchBetween } from '../../lib/base/index.ts';
import { ApiError, isRetryable, keyOf, parseKey, type Requeue } from '../../lib/kube/index.ts';
import { ForeignObjectError, fieldManager } from '../hub/index.ts';
import type { BasicDeps, BasicEventReason } from './basic-deps.ts';
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
 * Reconciles one Application of the hub: its ManifestWork and its status. Every decision is computed from the objects as
 * they are, so a reconcile after an interruption continues where the previous one ended.
 */
export class ApplicationReconciler {
  readonly #deps: BasicDeps;
  /** When a change began to wait for a running operation (`performance.now()`), by the Application's key. */
  readonly #heldSince = new Map<string, number>();

  constructor(deps: BasicDeps) {
    this.#deps = deps;
  }

  /**
   * Reconciles the Application `namespace/name`. It may not exist any more.
   * @returns when to reconcile again, if a time is known
   * @throws errors of the API server; the work queue retries
   */
  async reconcile(key: string, signal: AbortSignal): Promise<Requeue | undefined> {
    const { caches, client } = this.#deps;
    const works = caches.works.byIndex('application', key);
    const application = caches.applications.get(parseKey(key));
    if (application === undefined) {
      this.#heldSince.delete(key);
      // The cache holds only labelled Applications. The server knows whether this one was deleted or lost its label.
      const live = await client.get(pullApplications, parseKey(key), signal);
      // This controller takes Argo CD's finalizers off a deleted Application only after its work is gone. An Application
      // that is gone and still has a work lost its finalizers to somebody else, or never had any. Its resources stay.
      if (live === undefined) {
        await this.#retire(works, [], 'its Application is gone', signal);
      } else if (live.metadata.labels?.[pullKeys.pull] === undefined) {
        await this.#remove(works, 'its label was removed', signal);
        await this.#report(live, live, { feedback: {} }, signal);
      }
      return undefined;
    }
    const intent = pullIntentOf(application);
    const claim = claimOfAgent(application, this.#deps);
    if (application.metadata.deletionTimestamp) {
      const isForeign = intent.kind === 'none' || claim !== undefined;
      return isForeign && works.length === 0 ? undefined : await this.#finalize(application, works, signal);
    }
    if (intent.kind === 'none') {
      this.#heldSince.delete(key);
      await this.#remove(works, 'it is not for a managed cluster any more', signal);
      await this.#report(application, application, { feedback: {} }, signal);
      return undefined;
    }
    const obstacle =
      intent.kind === 'invalid' ? intent.problem : (claim ?? obstacleTo(application, intent.target, this.#deps));
    if (intent.kind === 'invalid' || obstacle !== undefined) {
      await this.#refuse(application, works, obstacle ?? '', signal);
      return undefined;
    }
    return await this.#reconcileTarget(application, intent.target, works, signal);
  }

  async #reconcileTarget(
    application: PullApplication,
    target: PullTarget,
    works: PullWork[],
    signal: AbortSignal,
  ): Promise<Requeue | undefined> {
    const { now, newId } = this.#deps;
    const existing = await this.#workOf(application, target, signal);
    if (existing.work?.metadata.deletionTimestamp) {
      return undefined; // the deletion of the work triggers another reconcile
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

  /**
   * Writes the work and removes the works that it replaces. A write that would disturb a running operation is postponed
   * for at most `patienceMs`.
   */
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
    const desiredPayload = payloadFor(application, target, plan.requests);
    let payload = nextPayload(plan, payloadIn(existing.work), desiredPayload);
    if (payload === undefined) {
      const since = this.#heldSince.get(key) ?? performance.now();
      this.#heldSince.set(key, since);
      const left = since + patienceMs - performance.now();
      if (left > 0) {
        return { requeueAfterMs: left };
      }
      logger.warn(
        { application: key, cluster: target.cluster },
        'wrote a change although an operation is still running',
      );
      payload = desiredPayload;
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
      logger.info({ application: key, work: keyOf(object) }, 'wrote the ManifestWork');
    }
    const place = placeKey(target);
    const others = works.filter(
      (work) => work.metadata.namespace !== target.cluster || work.metadata.name !== existing.name,
    );
    // A work with the same copy is removed only after the new work owns the copy. Earlier, it would delete the copy.
    const replaced = others.filter((work) => placeOfWork(work) !== place || applied(object).tried);
    await this.#remove(replaced, 'another work has its place', signal);
    return undefined;
  }

  /** The work of an Application, with its name. `work` is undefined when it does not exist yet. */
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

  /** Finalizes a deleted Application: first its copy and the resources that Argo CD deployed are removed. */
  async #finalize(application: PullApplication, works: PullWork[], signal: AbortSignal): Promise<Requeue | undefined> {
    const { client, caches, logger } = this.#deps;
    this.#heldSince.delete(keyOf(application));
    const finalizers = application.metadata.finalizers ?? [];
    await this.#retire(works, finalizers, 'its Application is being deleted', signal);
    if (!finalizers.some(isArgoCdFinalizer)) {
      return undefined;
    }
    // A cluster that is gone cannot remove anything.
    const waiting = works.filter(({ metadata }) => caches.managedClusters.get({ name: metadata.namespace ?? '' }));
    const [first] = waiting;
    if (first) {
      const problem = `waiting until managed cluster ${first.metadata.namespace} has removed it; ManifestWork ${keyOf(first)} is there until then`;
      await this.#report(application, application, { feedback: {}, problem }, signal);
      return undefined;
    }
    const intent = pullIntentOf(application);
    if (intent.kind === 'valid' && caches.managedClusters.get({ name: intent.target.cluster })) {
      // The cache may not show a work yet that was written a moment ago.
      const { work } = await this.#workOf(application, intent.target, signal);
      if (work && applicationKeyOf(work) === keyOf(application)) {
        return { requeueAfterMs: 200 };
      }
    }
    const { namespace, name, uid, resourceVersion } = application.metadata;
    const left = finalizers.filter((one) => !isArgoCdFinalizer(one));
    const patch = { metadata: { uid, resourceVersion, finalizers: left.length > 0 ? left : null } };
    await client.mergePatch(pullApplications, { namespace, name }, patch, { fieldManager, signal });
    logger.info({ application: keyOf(application) }, 'took the Argo CD finalizers off a deleted Application');
    return undefined;
  }

  /**
   * Removes the works of an Application that is deleted or being deleted. First each copy gets the last finalizers of
   * the Application: they decide whether the cluster deletes the deployed resources. Users often change the finalizers
   * right before they delete the Application, and the work agent may see only the last of several changes.
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
        const isNotArgoCds = (one: string) => !isArgoCdFinalizer(one);
        const had = payload.metadata.finalizers ?? [];
        const last = [...had.filter(isNotArgoCds), ...finalizers.filter(isArgoCdFinalizer)];
        if (!isEqual(had.toSorted(), last.toSorted())) {
          const desired = withFinalizers(work, payload, last);
          await this.#deps.works.ensure(pullWorks, desired, work, { exact: ['spec.workload'], guarded: true, signal });
          logger.info(
            { work: keyOf(work), finalizers: last },
            'wrote the last finalizers of the Application to its copy',
          );
          continue;
        }
        // A work of generation 1 has no earlier version that the cluster could have applied.
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
      this.#deps.logger.info({ application: applicationKeyOf(work), work: keyOf(work), why }, 'deleted a ManifestWork');
    }
  }

  /**
   * Reports that an Application cannot be delivered. Its existing copies stay: a typing error must not take an
   * Application down. Only works of clusters that no longer exist are removed.
   */
  async #refuse(application: PullApplication, works: PullWork[], problem: string, signal: AbortSignal): Promise<void> {
    const isStranded = ({ metadata }: PullWork) =>
      this.#deps.caches.managedClusters.get({ name: metadata.namespace ?? '' }) === undefined;
    await this.#remove(works.filter(isStranded), 'its ManagedCluster is gone', signal);
    this.#warn(application, 'NotPulled', problem);
    await this.#report(application, application, { feedback: {}, problem }, signal);
  }

  /** Records a warning Event, unless the condition already reports the same problem. */
  #warn(application: PullApplication, reason: BasicEventReason, problem: string): void {
    if (application.status?.conditions?.some(({ type, message }) => type === problemCondition && message === problem)) {
      return;
    }
    this.#deps.events.warning(application, reason, problem);
    this.#deps.logger.warn({ application: keyOf(application), problem }, 'an Application cannot be delivered');
  }

  /** Writes the status, and the changes from `application` to `next`, in one patch. Writes nothing when nothing differs. */
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
    // The patch was computed from this version. A newer version is a conflict and leads to another reconcile.
    const guarded = { ...patch, metadata: { ...metadata, uid, resourceVersion } };
    const options = { fieldManager, signal, planned: application };
    await this.#deps.client.patch(pullApplications, { namespace, name }, guarded, options);
  }
}

/** Whether the API server refuses a write for a lasting reason. Such errors are reported to the user. */
function isRefusal(error: unknown): error is Error {
  return error instanceof ForeignObjectError || (error instanceof ApiError && !isRetryable(error));
}

/** A copy of the work whose Application has these finalizers instead. */
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
