import type { MergePatch } from '../../base/index.ts';
import type { Application } from '../application.ts';

/** Why an existing copy is written to. */
export type UpdateReason = 'changed' | 'adopted' | 'principal-changed' | 'source-replaced';

/** What brings the managed cluster nearer to what the hub wants. */
export type Plan =
  | { readonly action: 'none' }
  | { readonly action: 'create'; readonly object: Application }
  /** `refreshes`: the patch asks Argo CD to look, which the hub's user did not ask for. */
  | {
      readonly action: 'update';
      readonly patch: MergePatch;
      readonly reason: UpdateReason;
      readonly refreshes?: boolean;
    }
  /** `Foreground`: the hub's object is being deleted and waits for this; `Background`: a new copy takes its place. */
  | { readonly action: 'delete'; readonly uid: string; readonly propagation: 'Foreground' | 'Background' }
  /** The object is going away; plan again when it is gone. */
  | { readonly action: 'wait' }
  /** The hub's object is being deleted and there is no copy any more: the hub is waiting to hear that. */
  | { readonly action: 'gone'; readonly sourceUid: string }
  | { readonly action: 'refuse'; readonly message: string };
