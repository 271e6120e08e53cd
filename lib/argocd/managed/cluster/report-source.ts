import type { Snapshot } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { annotations } from '../../names.ts';
import { reportDigest, withAgentError, withAgentWarning } from '../status.ts';

/** What an agent adds to the status of a copy. */
export interface ReportAdditions {
  /** Why the copy is not what the principal wants. */
  readonly problem: string | undefined;
  /** A warning about it, although it is as desired. */
  readonly warning: string | undefined;
  /** The refresh annotation is the agent's own: on the hub it would be a user's request. */
  readonly ownRefresh: boolean;
}

/** Makes reports of copies; a copy that did not change, with equal remarks, makes the same report. */
export class ReportSource {
  readonly #today: () => Date;
  readonly #versionOf: (copy: Application) => string;
  readonly #reports = new WeakMap<Application, { additions: ReportAdditions; snapshot: Snapshot<Application> }>();

  constructor(today: () => Date, versionOf: (copy: Application) => string) {
    this.#today = today;
    this.#versionOf = versionOf;
  }

  /** What there is to report of a copy. */
  of(copy: Application, additions: ReportAdditions): Snapshot<Application> {
    const known = this.#reports.get(copy);
    if (known !== undefined && isSame(known.additions, additions)) {
      return known.snapshot;
    }
    const { problem, warning, ownRefresh } = additions;
    const shown = ownRefresh ? withoutRefresh(copy) : copy;
    const status = shown.status ?? {};
    const object =
      problem !== undefined
        ? { ...shown, status: withAgentError(status, problem, this.#today()) }
        : warning !== undefined
          ? { ...shown, status: withAgentWarning(status, warning, this.#today()) }
          : shown;
    const snapshot = {
      uid: copy.metadata.uid ?? '',
      version: this.#versionOf(copy),
      digest: `${problem ?? warning ?? ''}/${reportDigest(shown)}`,
      object,
    };
    this.#reports.set(copy, { additions, snapshot });
    return snapshot;
  }
}

function isSame(a: ReportAdditions, b: ReportAdditions): boolean {
  return a.problem === b.problem && a.warning === b.warning && a.ownRefresh === b.ownRefresh;
}

function withoutRefresh(copy: Application): Application {
  const { [annotations.refresh]: _, ...others } = copy.metadata.annotations ?? {};
  return { ...copy, metadata: { ...copy.metadata, annotations: others } };
}
