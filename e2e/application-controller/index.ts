/** A stand-in for Argo CD's application controller. */
export {
  type Deed,
  type DeedKind,
  type PlayedApplication,
  PlayedApplicationController,
  type PlayedControllerOptions,
} from './application-controller.ts';
export { hasResourcesFinalizer } from './rules.ts';
export { WorkloadBook } from './workloads.ts';
