export { type Compared, compareWithArgoCD, comparisonMs } from './oracle.ts';
