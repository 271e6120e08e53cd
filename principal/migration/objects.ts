import type { ApplicationSpec, AppProject } from '../../lib/argocd/index.ts';
import { argoApplications, argoAppProjects } from '../../lib/bridge/index.ts';
import type { KubeObject, ResourceType } from '../../lib/kube/index.ts';

/** A resource that an Application manages, as its status lists it. */
export interface ManagedResource {
  readonly group?: string;
  readonly version: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** An Application, as far as a migration looks at it. */
export interface MovingApplication extends KubeObject {
  spec: ApplicationSpec & { syncPolicy?: { automated?: unknown } };
  status?: {
    sync?: { status?: string };
    health?: { status?: string };
    operationState?: { phase?: string };
    conditions?: { type: string; message: string }[];
    resources?: ManagedResource[];
    reconciledAt?: string;
  };
  operation?: object;
}

/** Applications of hub and cluster. */
export const movingApplications = argoApplications as ResourceType<MovingApplication>;
/** AppProjects of hub and cluster. */
export const movingProjects = argoAppProjects as ResourceType<AppProject & KubeObject>;

/** Whether Argo CD is to carry out something on the Application, or does. */
export function isBusy({ operation, status }: MovingApplication): boolean {
  return operation !== undefined || ['Running', 'Terminating'].includes(status?.operationState?.phase ?? '');
}

/** Sync and health of an Application, for people. */
export function stateOf(application: MovingApplication | undefined): string {
  const { sync, health, conditions = [] } = application?.status ?? {};
  const state =
    application === undefined ? 'it does not exist' : `${sync?.status || 'no status'}, ${health?.status || '-'}`;
  return [state, ...conditions.map(({ type, message }) => `${type}: ${message}`)].join('; ');
}
