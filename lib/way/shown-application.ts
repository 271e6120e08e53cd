import { type KubeObject, resourceType } from '../kube/index.ts';

/** An Application of Argo CD, with what is shown of it. */
export interface ShownApplication extends KubeObject {
  readonly spec?: {
    readonly destination?: { readonly name?: string; readonly server?: string };
    readonly project?: string;
  };
  readonly operation?: unknown;
  readonly status?: {
    readonly sync?: { readonly status?: string; readonly revision?: string };
    readonly health?: { readonly status?: string; readonly message?: string; readonly lastTransitionTime?: string };
    readonly reconciledAt?: string;
    readonly operationState?: {
      readonly phase?: string;
      readonly message?: string;
      readonly startedAt?: string;
      readonly finishedAt?: string;
    };
    readonly conditions?: readonly {
      readonly type: string;
      readonly message: string;
      readonly lastTransitionTime?: string;
    }[];
  };
}

/** argoproj.io/v1alpha1 Application, with what is shown of it. */
export const shownApplications = resourceType<ShownApplication>({
  group: 'argoproj.io',
  version: 'v1alpha1',
  kind: 'Application',
  plural: 'applications',
  namespaced: true,
});
