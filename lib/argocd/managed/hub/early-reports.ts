import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import { isSameOperation } from '../../operation-state.ts';
import { triggersOf } from '../../triggers.ts';
import { type AgentReport, type DeliveredRequests, operationMark, triggerMark } from './agent-report.ts';

interface EarlyReport {
  readonly report: AgentReport;
  /** What it can be an answer to, of what was on its way: the operation that it shows a run of, and refreshs. */
  readonly answers: DeliveredRequests;
}

/**
 * Status reports that came while a request was on its way. Agents of the original send what they have to send in any order,
 * so the report of what became of a request may overtake its acknowledgement, and nothing follows it; what it does not
 * mention would then stand on the hub for ever. Such a report is processed again after the acknowledgement.
 *
 * It may as well be older than the request. Then a refresh is taken off the hub before it is done, which is harmless:
 * agents keep it until it is. An operation is taken off only if the report shows a run of it. To what users request later, it
 * is no answer.
 */
export class EarlyReports {
  /** By resource id of the hub's object. At most one for each Application with a request. */
  readonly #reports = new Map<string, EarlyReport>();

  /**
   * A report came; `hub` is the object before it is written there.
   * @param hasShown whether the hub's object has told of an operation that began then, and no later one
   */
  came(report: AgentReport, hub: Application | undefined, hasShown: (startedAt: string) => boolean): void {
    if (hub === undefined) {
      return;
    }
    const id = idOf(hub);
    if (report.message.type === 'error') {
      // The report came before what has failed, and would hide it. What it answers, the next one does.
      this.#reports.delete(id);
    }
    if (report.message.type !== 'status-update') {
      return;
    }
    const { delivered } = report;
    const triggers = triggersOf(hub);
    const awaits = hub.operation !== undefined || Object.keys(triggers).length > 0;
    if (!awaits || (delivered.operation !== undefined && delivered.triggers !== undefined)) {
      this.#reports.delete(id);
      return;
    }
    const state = report.message.object.status?.operationState;
    const { startedAt } = state ?? {};
    const isShown = typeof startedAt === 'string' && hasShown(startedAt);
    const isNew = startedAt !== hub.status?.operationState?.startedAt && !isShown;
    const showsRun = isNew && hub.operation !== undefined && isSameOperation(state?.operation, hub.operation);
    this.#reports.set(id, {
      report,
      answers: {
        operation: showsRun ? operationMark(hub) : undefined,
        triggers: triggers[annotations.hydrate] === undefined ? triggerMark(hub) : undefined,
      },
    });
  }

  /** An event about this hub object is acknowledged: the report to process again, given what the agent has received by now. */
  acknowledged(resourceId: string, delivered: (report: AgentReport) => DeliveredRequests): AgentReport | undefined {
    const early = this.#reports.get(resourceId);
    if (early === undefined) {
      return undefined;
    }
    const { report, answers } = early;
    const now = delivered(report);
    if (now.operation === undefined || now.triggers === undefined) {
      return undefined;
    }
    this.#reports.delete(resourceId);
    // It takes the place of the report as it came, which may not be written yet: what it was an answer to, it is still.
    const answered = {
      operation: report.delivered.operation ?? answers.operation,
      triggers: report.delivered.triggers ?? answers.triggers,
    };
    return { ...report, delivered: answered };
  }

  /** What was on its way over a lost connection is on its way again, and will be answered anew. */
  clear(): void {
    this.#reports.clear();
  }
}

function idOf({ metadata }: Application): string {
  return `${metadata.name}_${metadata.uid}`;
}
