import type { MergePatch } from '../../base/index.ts';
import type { Application } from '../application.ts';

/** Why an existing object is written to. */
export type UpdateReason = 'changed' | 'adopted' | 'principal-changed' | 'source-replaced' | 'given-back';

/** What brings an object nearer to what is desired. */
export type Plan<T = Application> =
  | { readonly action: 'none' }
  /** `verifies`: the plan is asked again afterwards, because the API server may make something else of the object. */
  | { readonly action: 'create'; readonly object: T; readonly verifies?: boolean }
  /** `refreshes`: the patch makes Argo CD refresh the Application, which no user requested. */
  | {
      readonly action: 'update';
      readonly patch: MergePatch;
      readonly reason: UpdateReason;
      readonly refreshes?: boolean;
    }
  /** `Foreground`: the source's object is being deleted and waits for this; `Background`: nobody waits for the end. */
  | { readonly action: 'delete'; readonly uid: string; readonly propagation: 'Foreground' | 'Background' }
  /** The object is being deleted; plan again when it is gone. */
  | { readonly action: 'wait' }
  /** The source's object is being deleted and there is no copy any more: the source waits for the report of that. */
  | { readonly action: 'gone'; readonly sourceUid: string }
  /** `mayPass`: it may be possible later, with nothing else changed. */
  | { readonly action: 'refuse'; readonly message: string; readonly mayPass?: boolean };
