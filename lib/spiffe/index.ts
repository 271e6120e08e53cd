export { endpointProblem, followWorkload, type WorkloadFields } from './workload.ts';
